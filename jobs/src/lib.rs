//! The second line of defence.
//!
//! A retry at the level of HTTP absorbs what lasts seconds. When a provider is down for an hour its attempts are spent,
//! and the work is lost unless something remembers it. This crate remembers: a job that failed is a row in a table of
//! yours, and a sweep enqueues its successor, again and again, until the work is done or a limit says that a person must
//! look.
//!
//! - [`Job`]: what is to be done, for which target, and how long it may take.
//! - [`Jobs`]: where jobs are enqueued; at most one is active for each target, whatever runs concurrently.
//! - [`Recovery`]: how often and how many times a failed job is repaired.
//! - [`JobStore`]: the handful of atomic statements on which all of it stands; [`SqlStore`] has them for SQLite and for
//!   PostgreSQL.
//!
//! # What is promised
//!
//! A job runs **at least once**, and jobs of different targets in no particular order. Whatever may take effect twice
//! must be guarded: by the idempotency key of the job's chain, or by [`Job::verify`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::unwrap_used))]

mod claim;
mod class;
#[cfg(feature = "cli")]
#[doc(hidden)] // the binary of the same name
pub mod cli;
mod death;
mod enqueue;
mod error;
mod failure;
mod id;
mod job;
mod job_error;
mod jobs;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
mod plan;
mod recovery;
mod retention;
mod row;
mod runner;
mod state;
mod store;
mod sweep;

pub use claim::{Claim, Claimed, Held, Kind, Lease};
pub use class::{DeadReason, FailureClass};
pub use death::Death;
pub use enqueue::{Enqueued, NewJob, Origin};
pub use error::Error;
pub use failure::{AttemptRecord, Failed, Failure};
pub use id::JobId;
pub use job::{Job, Unique, Verified, VerifyContext};
pub use job_error::JobError;
pub use jobs::Jobs;
pub use plan::{Burial, Candidate, Candidates, Health, Plan, Step, Stuck, WaitReason, plan};
pub use recovery::{Recovery, WorstCase};
pub use retention::Retention;
pub use row::{Filter, JobRow, Stats, TypeStats};
pub use runner::{JobContext, Runner};
pub use state::State;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use store::sql::{SqlOptions, SqlPool, SqlStore, SqlTransaction};
pub use store::{ImportOptions, Imported, JobStore, Pause, RecoveryStore, Scope, Wakes};
pub use sweep::{Sweeper, Swept};

/// Any error, boxed: what a handler of yours may return.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
