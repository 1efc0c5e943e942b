#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::unwrap_used))]

#[cfg(feature = "cli")]
#[doc(hidden)] // the binary of the same name
pub mod cli;
#[cfg(feature = "contract")]
pub mod contract;
mod deadline;
mod error;
pub mod fault;
pub mod layers;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
pub mod policy;
mod redact;
pub mod retry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timeout;

pub use deadline::Deadline;
pub use error::{AttemptTimedOut, Error};
pub use fault::{Fault, FaultKind};
pub use policy::{
    Backoff, Budget, Class, Clock, Evidence, Hint, Hold, HoldScope, Jitter, Outcome, Plan, Policy, PolicyError, Reach,
    RequestHead, RequestOptions, Routes, StandardPolicy, StopReason, Timeouts, Transient, Unit, Verdict,
};
pub use retry::{
    AnswerBody, AttemptBody, AttemptOutcome, AttemptReport, CallReport, OneRetryPerPath, Replay, RetryLayer, Streamed,
    attempt_number, detach,
};
pub use timeout::TimeoutLayer;

/// Any error, boxed: what tower, hyper and this crate pass around.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
