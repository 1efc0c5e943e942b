#![doc = include_str!("../README.md")]
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
pub use store::{ImportOptions, ImportSummary, Imported, JobStore, Pause, RecoveryStore, Scope, Wakes};
pub use sweep::{Sweeper, Swept};

/// Any error, boxed: what a handler of yours may return.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
