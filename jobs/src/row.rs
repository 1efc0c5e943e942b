//! Jobs as a person sees them.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::{AttemptRecord, DeadReason, FailureClass, JobId, Origin, State};

/// A job, as it is stored. Times are those of the database's clock.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct JobRow {
    /// Its number.
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// What it is for.
    pub target: String,
    /// The job itself, as JSON.
    pub payload: String,
    /// Where it stands.
    pub state: State,
    /// The provider that it depends on.
    pub provider: Option<String>,
    /// Where it came from.
    pub origin: Origin,
    /// Which of its chain it is; the first is 1.
    pub attempt: u32,
    /// How often it was put off without counting.
    pub snoozes: u32,
    /// Its earliest start.
    #[serde(serialize_with = "rfc3339")]
    pub run_at: SystemTime,
    /// Who has it, or had it last.
    pub worker: Option<String>,
    /// How often it was claimed: the fencing token.
    pub token: i64,
    /// Until when its worker holds it.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub lease_until: Option<SystemTime>,
    /// How it failed. `None` as well where a later release wrote a class that this one does not know.
    pub failure: Option<FailureClass>,
    /// The same in words.
    pub error: Option<String>,
    /// The attempts of HTTP that were made.
    pub history: Vec<AttemptRecord>,
    /// Whether the work may have taken effect although nothing says so.
    pub outcome_unknown: bool,
    /// Why recovery gave it up. `None` as well where a later release wrote a reason that this one does not know.
    pub dead: Option<DeadReason>,
    /// When recovery looks at it. `None`: nothing is left to do.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub retry_at: Option<SystemTime>,
    /// The earliest start of a successor, where the provider named one.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub not_before: Option<SystemTime>,
    /// The job that it stands in for.
    pub parent: Option<JobId>,
    /// The first job of its chain.
    pub root: JobId,
    /// What names its chain.
    pub chain: Uuid,
    /// Since when its chain's keys may have been sent: its first claim, or the first one since a revival. `None`: there was
    /// none yet.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub chain_started: Option<SystemTime>,
    /// The trace context that travels with it.
    pub trace: Option<String>,
    /// When it was enqueued.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: SystemTime,
    /// When it was last claimed.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub started_at: Option<SystemTime>,
    /// When it ended.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub finished_at: Option<SystemTime>,
}

// The payload may be personal.
impl fmt::Debug for JobRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRow")
            .field("id", &self.id)
            .field("job_type", &self.job_type)
            .field("target", &self.target)
            .field("state", &self.state)
            .field("attempt", &self.attempt)
            .field("failure", &self.failure)
            .field("error", &self.error)
            .field("dead", &self.dead)
            .field("retry_at", &self.retry_at)
            .field("parent", &self.parent)
            .finish_non_exhaustive()
    }
}

/// A time as `2026-12-01T04:15:00.123Z`.
pub(crate) fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    match jiff::Timestamp::try_from(*time) {
        Ok(time) => serializer.collect_str(&time),
        Err(_) => serializer.serialize_none(),
    }
}

pub(crate) fn maybe_rfc3339<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => rfc3339(time, serializer),
        None => serializer.serialize_none(),
    }
}

/// Which jobs are listed. The newest first, 100 by default, 1000 at most.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this state only.
    pub state: Option<State>,
    /// Of this type only.
    pub job_type: Option<String>,
    /// For this target only.
    pub target: Option<String>,
    /// Older than this one: the next page.
    pub before: Option<JobId>,
    /// How many at most.
    pub limit: Option<u32>,
}

/// How things stand.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// By type.
    pub types: BTreeMap<String, TypeStats>,
    /// How long the job has waited that has been claimable for longest.
    pub oldest_pending: Option<Duration>,
    /// Jobs whose lease ran out, which no sweep has found yet.
    pub ghosts: u64,
    /// FAILED jobs that recovery has still to look at.
    pub due: u64,
}

impl Stats {
    /// Jobs of this state, of all types.
    pub fn count(&self, state: State) -> u64 {
        self.types.values().map(|of_type| of_type.count(state)).sum()
    }
}

/// How things stand with one type.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TypeStats {
    /// Jobs that wait.
    pub pending: u64,
    /// Jobs that a worker holds.
    pub processing: u64,
    /// Jobs that are done.
    pub completed: u64,
    /// Jobs that failed, and are history.
    pub failed: u64,
    /// Jobs that were given up and are the newest of their target: a person must look. One that was revived, or whose
    /// target was enqueued anew, is history and not counted.
    pub dead: u64,
}

impl TypeStats {
    /// Jobs of this state.
    pub fn count(&self, state: State) -> u64 {
        match state {
            State::Pending => self.pending,
            State::Processing => self.processing,
            State::Completed => self.completed,
            State::Failed => self.failed,
            State::Dead => self.dead,
        }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn set(&mut self, state: State, count: u64) {
        match state {
            State::Pending => self.pending = count,
            State::Processing => self.processing = count,
            State::Completed => self.completed = count,
            State::Failed => self.failed = count,
            State::Dead => self.dead = count,
        }
    }
}
