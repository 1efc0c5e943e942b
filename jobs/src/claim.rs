//! How a worker comes to hold a job.

use std::{fmt, time::Duration, time::SystemTime};

use uuid::Uuid;

use crate::JobId;

/// A type of jobs that a worker takes, with the provider that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// [`Job::TYPE`](crate::Job::TYPE).
    pub job_type: String,
    /// [`Job::PROVIDER`](crate::Job::PROVIDER): while it is paused, its jobs are not claimed. Nor are those that were
    /// enqueued for another provider ([`NewJob::provider`](crate::NewJob::provider)) while that one is.
    pub provider: Option<String>,
}

impl Kind {
    /// The type of these jobs.
    pub fn of<J: crate::Job>() -> Self {
        Self { job_type: J::TYPE.to_owned(), provider: J::PROVIDER.map(str::to_owned) }
    }

    /// A type of this name, which depends on no provider.
    pub fn named(job_type: impl Into<String>) -> Self {
        Self { job_type: job_type.into(), provider: None }
    }
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The types that it handles.
    pub kinds: &'a [Kind],
    /// Its name: 100 bytes of it are stored.
    pub worker: &'a str,
    /// How long it holds a job without renewing.
    pub lease: Duration,
    /// How many jobs at most.
    pub max: u32,
}

/// The right to write to a job: its number and a fencing token, which rises with each claim (J8).
///
/// A worker that was taken for dead and comes back holds an older token, or a row that is closed: what it writes is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job.
    pub id: JobId,
    /// Which claim of it.
    pub token: i64,
}

/// Whether a write found the lease still held.
#[must_use = "where the lease is lost, somebody else has the job: what was done meanwhile must be dropped, loudly"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It was held: the write took effect.
    Yes,
    /// It was lost: the write was refused.
    Lost,
}

/// A job in the hands of a worker.
#[derive(Clone)]
#[non_exhaustive]
pub struct Claimed {
    /// The right to write to it.
    pub lease: Lease,
    /// Its type.
    pub job_type: String,
    /// What it is for.
    pub target: String,
    /// The job itself, as JSON.
    pub payload: String,
    /// The provider that it depends on.
    pub provider: Option<String>,
    /// Which of its chain it is; the first is 1. Counted when it is claimed, so that a job that kills its process is
    /// counted too.
    pub attempt: u32,
    /// How often it was put off without counting.
    pub snoozes: u32,
    /// What names its chain: the same for every successor. Idempotency keys are made of it.
    pub chain: Uuid,
    /// When a job of its chain was first claimed, or first since a revival, by the clock of the database: how old the
    /// chain's keys are. Before that none can have been sent.
    pub chain_started: SystemTime,
    /// The first job of its chain.
    pub root: JobId,
    /// The job that it stands in for.
    pub parent: Option<JobId>,
    /// An earlier job of its chain, or an earlier run of this one that was cancelled, may have taken effect, and nothing
    /// says so: verify before repeating (J13).
    pub unknown_before: bool,
    /// The trace context that travels with it.
    pub trace: Option<String>,
    /// When it was enqueued.
    pub created_at: SystemTime,
    /// When it was claimed, by the clock of the database.
    pub claimed_at: SystemTime,
}

// The payload may be personal.
impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed")
            .field("lease", &self.lease)
            .field("job_type", &self.job_type)
            .field("target", &self.target)
            .field("attempt", &self.attempt)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
