//! What a store of jobs must be able to do.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod sql;
mod wakes;

use std::{
    fmt,
    future::Future,
    time::{Duration, SystemTime},
};

use serde::Serialize;

use crate::{
    Candidates, Claim, Claimed, Enqueued, Error, Failed, Failure, FailureClass, Filter, Held, JobId, JobRow, Lease,
    NewJob, Plan, Recovery, Retention, Stats, Swept, row::maybe_rfc3339,
};

pub use wakes::Wakes;

/// What recovery needs of a store: enough for a table of your own, with workers of your own.
///
/// Any number of sweepers may be at work at once: [`apply`](Self::apply) looks again, in the transaction in which it
/// writes, whether each step still holds, and leaves out those that do not.
pub trait RecoveryStore: Send + Sync {
    /// What a sweep must judge. Bounded: of each provider a few more than `recovery` allows to be recovered.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn candidates(&self, recovery: &Recovery) -> impl Future<Output = Result<Candidates, Error>> + Send;

    /// Carries a plan out, each step as a whole or not at all, and says what was done.
    ///
    /// # Errors
    ///
    /// The database fails; what was not committed is planned again by the next sweep.
    fn apply(&self, plan: &Plan) -> impl Future<Output = Result<Swept, Error>> + Send;

    /// Takes the next tick of this name, where it is due; of several that ask at once, one gets it. The first time it is
    /// due at once. `sweep`, `prune` and names that begin with `every ` or `batch ` are this crate's own.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn tick(&self, name: &str, every: Duration) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// A table of jobs, and the handful of statements that keep its rules. Each is atomic: whatever is killed, whenever, no
/// job is lost and none is doubled.
///
/// Times are those of the database's clock, so that machines need not agree.
pub trait JobStore: RecoveryStore + Clone + 'static {
    /// Enqueues each job, unless its [`Unique`](crate::Unique) forbids it (J6), all in one transaction, and answers in their order.
    ///
    /// A target whose provider named an earliest start, when its newest job failed, keeps it (J10).
    ///
    /// # Errors
    ///
    /// The database fails, and none is enqueued.
    fn enqueue(&self, jobs: &[NewJob]) -> impl Future<Output = Result<Vec<Enqueued>, Error>> + Send;

    /// Enqueues a periodic batch, where the tick of this name is due, and `None` where it is not: tick and jobs are one
    /// transaction, so that many instances may ask, and one that dies loses no batch. The first time it is due at once.
    ///
    /// A target whose newest job is FAILED is left to recovery, which waits, spreads and counts: its job is not enqueued. One
    /// that is DEAD is enqueued, as by [`enqueue`](Self::enqueue), and dies loudly again where nothing has changed.
    ///
    /// # Errors
    ///
    /// The database fails; then the tick is still due.
    fn enqueue_every(
        &self,
        name: &str,
        every: Duration,
        jobs: &[NewJob],
    ) -> impl Future<Output = Result<Option<Vec<Enqueued>>, Error>> + Send;

    /// Takes jobs that may start, the longest due first. Those of paused types and providers are left.
    ///
    /// # Errors
    ///
    /// The database fails; what it had claimed by then comes back as a ghost.
    fn claim(&self, claim: &Claim<'_>) -> impl Future<Output = Result<Vec<Claimed>, Error>> + Send;

    /// Prolongs these leases, and returns those that were still held.
    ///
    /// # Errors
    ///
    /// The database fails: the leases hold until they end.
    fn renew(&self, leases: &[Lease], lease: Duration) -> impl Future<Output = Result<Vec<Lease>, Error>> + Send;

    /// These are COMPLETED; returns those whose lease was still held.
    ///
    /// # Errors
    ///
    /// The database fails. Asking again is safe.
    fn complete(&self, leases: &[Lease]) -> impl Future<Output = Result<Vec<Lease>, Error>> + Send;

    /// This one failed. The same write says DEAD where recovery would give it up (J4, J9), and else when it is due.
    ///
    /// # Errors
    ///
    /// The database fails. Asking again is safe.
    fn fail(
        &self,
        lease: Lease,
        failure: &Failure,
        recovery: &Recovery,
    ) -> impl Future<Output = Result<Failed, Error>> + Send;

    /// Puts this one off, without counting it as an attempt.
    ///
    /// # Errors
    ///
    /// The database fails. Asking again is safe.
    fn snooze(&self, lease: Lease, wait: Duration) -> impl Future<Output = Result<Held, Error>> + Send;

    /// Gives these back as if they had never been claimed, since they were not begun: a worker that shuts down does so.
    /// Returns those whose lease was still held.
    ///
    /// # Errors
    ///
    /// The database fails: they come back as ghosts.
    fn release(&self, leases: &[Lease]) -> impl Future<Output = Result<Vec<Lease>, Error>> + Send;

    /// The same for those that were begun and cancelled: they may have taken effect, so that the next run verifies first
    /// ([`Claimed::unknown_before`], J13).
    ///
    /// # Errors
    ///
    /// As of [`release`](Self::release).
    fn abandon(&self, leases: &[Lease]) -> impl Future<Output = Result<Vec<Lease>, Error>> + Send;

    /// Enqueues a successor of a job that is DEAD and the newest of its target, and counts anew from there:
    /// its failures, and the age of its keys. The keys themselves are those of its chain, so that a step which took effect
    /// is not done again where its provider still knows them.
    ///
    /// # Errors
    ///
    /// There is no such job, it is not DEAD, a later job of its target exists, or the database fails.
    fn revive(&self, id: JobId) -> impl Future<Output = Result<JobId, Error>> + Send;

    /// From now on no job of this type or provider is claimed: for a time, or until [`resume`](Self::resume). What runs,
    /// runs on.
    ///
    /// # Errors
    ///
    /// The name is empty, longer than 100 bytes or has control characters, or the database fails.
    fn pause(&self, scope: &Scope, time: Option<Duration>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Ends a pause, and says whether there was one.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn resume(&self, scope: &Scope) -> impl Future<Output = Result<bool, Error>> + Send;

    /// The pauses in force.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn pauses(&self) -> impl Future<Output = Result<Vec<Pause>, Error>> + Send;

    /// Jobs, the newest first.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn list(&self, filter: &Filter) -> impl Future<Output = Result<Vec<JobRow>, Error>> + Send;

    /// The chain that this job belongs to, the oldest first, 1000 at most. Empty where there is no such job.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn chain(&self, id: JobId) -> impl Future<Output = Result<Vec<JobRow>, Error>> + Send;

    /// How things stand. Every job is counted: on a large table this takes a while.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn stats(&self) -> impl Future<Output = Result<Stats, Error>> + Send;

    /// The same without COMPLETED and FAILED jobs, which are left at none: what is still to be done, and what a person must
    /// look at. Cheap enough to be asked each minute, however long the history.
    ///
    /// # Errors
    ///
    /// The database fails.
    fn backlog(&self) -> impl Future<Output = Result<Stats, Error>> + Send;

    /// Deletes ended jobs that are old enough and count no more, one batch; returns how many. While that is the batch's
    /// size there may be more.
    ///
    /// # Errors
    ///
    /// The batch is 0, or the database fails.
    fn prune(&self, retention: &Retention) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Brings in failures of an older system, so that recovery repairs them: up to a thousand in one transaction, and
    /// between two of them others who write have their turn. Says how many came in, or would, and how many of them are
    /// DEAD: those together are one ERROR, and no hook hears of them, since no runner takes part.
    ///
    /// # Errors
    ///
    /// The database fails. What came in until then stays, its DEAD are told of, and the same import, run again, brings in
    /// the rest.
    fn import(
        &self,
        failures: &[Imported],
        options: &ImportOptions,
    ) -> impl Future<Output = Result<ImportSummary, Error>> + Send;

    /// What tells when a job may have become claimable. By default nothing does, and workers look at an interval.
    fn wakes(&self) -> Wakes {
        Wakes::never()
    }
}

/// What a pause is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Jobs of this type.
    Type(String),
    /// Jobs that depend on this provider.
    Provider(String),
}

/// A pause in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// What is paused.
    pub scope: Scope,
    /// Until when; `None`: until somebody resumes it.
    #[serde(serialize_with = "maybe_rfc3339")]
    pub until: Option<SystemTime>,
}

/// A failure of an older system.
#[derive(Clone)]
pub struct Imported {
    /// The job that would repair it. Its delay does not count.
    pub job: NewJob,
    /// When it failed. No later than now, by the clock of the database: a time to come counts as that.
    pub failed_at: SystemTime,
    /// Of which kind it is. What nothing repairs, such as a business failure, is brought in as DEAD: the gauge and `stats`
    /// count it, and `list --state dead` shows it.
    pub class: FailureClass,
    /// What happened, in words: stored in one line, at most 300 characters, and without the secrets of any URL.
    pub reason: String,
}

// What somebody else wrote may hold the secrets of a URL.
impl fmt::Debug for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Imported")
            .field("job", &self.job)
            .field("failed_at", &self.failed_at)
            .field("class", &self.class)
            .field("reason", &redial::redacted(&self.reason))
            .finish()
    }
}

/// How failures of an older system are brought in. A target that has a job already is left out, so that bringing the same
/// ones in twice does nothing. Of several failures of one target the newest comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Only those that failed at this time or later. All of them by default.
    pub since: Option<SystemTime>,
    /// Within which time they fall due, evenly. Two hours by default.
    pub spread: Duration,
    /// Only counts them. Off by default.
    pub dry_run: bool,
}

/// What an import brought in, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// FAILED: recovery repairs them.
    pub failed: u64,
    /// DEAD: a person must look.
    pub dead: u64,
}

impl ImportSummary {
    /// Both.
    pub fn all(self) -> u64 {
        self.failed + self.dead
    }
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { since: None, spread: Duration::from_secs(2 * 60 * 60), dry_run: false }
    }
}
