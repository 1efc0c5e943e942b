//! What is counted, and the names it is counted under (feature `metrics`).
//!
//! Through the [`metrics`](https://docs.rs/metrics) facade, as in [`redial::metrics`]. Install the recorder first, then
//! call [`describe`] once.
//!
//! | name | kind | labels | counts |
//! | --- | --- | --- | --- |
//! | `redial_jobs_ended_total` | counter | `type`, `outcome`, `class` | runs that ended |
//! | `redial_jobs_run_seconds` | histogram | `type` | how long runs took, in seconds |
//! | `redial_jobs_verified_total` | counter | `type`, `found` | looks whether the work was done |
//! | `redial_jobs_recovered_total` | counter | | successors that sweeps enqueued |
//! | `redial_jobs_recovered` | gauge | | those of the last sweep |
//! | `redial_jobs_oldest_pending_seconds` | gauge | | how long the job has waited that has been claimable for longest |
//! | `redial_jobs_ghosts` | gauge | | jobs whose lease ran out, which no sweep has found yet |
//! | `redial_jobs_dead` | gauge | | jobs that are DEAD and the newest of their target: the one to alert on |
//! | `redial_jobs_store_errors_total` | counter | `doing` | answers that the database did not give |
//!
//! | label | values |
//! | --- | --- |
//! | `type` | [`Job::TYPE`](crate::Job::TYPE), so as many as there are types |
//! | `outcome` | `completed`, `failed`, `dead`, `snoozed`, `released`, `lost`, `hung` |
//! | `class` | the names of [`FailureClass`](crate::FailureClass); empty for other outcomes |
//! | `found` | `done`, `not-done`, `unsupported`, `error` |
//! | `doing` | `claim`, `renew`, `complete`, `fail`, `sweep` and the like |
//!
//! The gauges of the table are read once a sweep, by every runner that sweeps.
//!
//! ```
//! # // A recorder that keeps nothing stands for an exporter's.
//! # metrics::set_global_recorder(metrics::NoopRecorder)?;
//! redial_jobs::metrics::describe();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Runs that ended.
pub const ENDED: &str = "redial_jobs_ended_total";
/// How long runs took, in seconds.
pub const RUN: &str = "redial_jobs_run_seconds";
/// Looks whether the work was done.
pub const VERIFIED: &str = "redial_jobs_verified_total";
/// Successors that sweeps enqueued.
pub const RECOVERED_TOTAL: &str = "redial_jobs_recovered_total";
/// Successors that the last sweep enqueued.
pub const RECOVERED: &str = "redial_jobs_recovered";
/// How long the job has waited that has been claimable for longest.
pub const OLDEST_PENDING: &str = "redial_jobs_oldest_pending_seconds";
/// Jobs whose lease ran out.
pub const GHOSTS: &str = "redial_jobs_ghosts";
/// Jobs that are DEAD.
pub const DEAD: &str = "redial_jobs_dead";
/// Answers that the database did not give.
pub const STORE_ERRORS: &str = "redial_jobs_store_errors_total";

/// Tells the recorder that is installed now what each name means.
pub fn describe() {
    describe_counter!(ENDED, Unit::Count, "Runs of jobs that ended, by type, outcome and class of failure");
    describe_histogram!(RUN, Unit::Seconds, "How long runs of jobs took");
    describe_counter!(VERIFIED, Unit::Count, "Looks whether a job's work was done already, by what was found");
    describe_counter!(RECOVERED_TOTAL, Unit::Count, "Successors of failed jobs that sweeps enqueued");
    describe_gauge!(RECOVERED, Unit::Count, "Successors that the last sweep enqueued");
    describe_gauge!(OLDEST_PENDING, Unit::Seconds, "How long the longest claimable job has waited");
    describe_gauge!(GHOSTS, Unit::Count, "Jobs whose lease ran out, not yet swept");
    describe_gauge!(DEAD, Unit::Count, "Jobs that are DEAD: a person must look");
    describe_counter!(STORE_ERRORS, Unit::Count, "Failures of the store of jobs, by what was asked of it");
}
