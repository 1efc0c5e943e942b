//! The states of a job.

use std::fmt;

use serde::Serialize;

/// The states of a job (J1). No end is silent: one that nobody will repair says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum State {
    /// It waits for a worker, or for its earliest start.
    Pending,
    /// A worker holds its lease.
    Processing,
    /// Its work is done.
    Completed,
    /// Its work is not done; recovery enqueues a successor. The row itself is history, and not changed any more.
    Failed,
    /// Its work is not done, and recovery has given up: a person must look.
    Dead,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [State; 5] = [State::Pending, State::Processing, State::Completed, State::Failed, State::Dead];

    /// As stored, such as `PENDING`.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "PENDING",
            State::Processing => "PROCESSING",
            State::Completed => "COMPLETED",
            State::Failed => "FAILED",
            State::Dead => "DEAD",
        }
    }

    /// The state of this name, whatever its case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether the job still holds its target: no other may be enqueued for it.
    pub const fn is_active(self) -> bool {
        matches!(self, State::Pending | State::Processing)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
