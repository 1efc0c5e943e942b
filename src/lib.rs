#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::unwrap_used))]

pub mod block;
#[cfg(feature = "cli")]
#[doc(hidden)] // the binary of the same name
pub mod cli;
mod clients;
#[cfg(feature = "contract")]
pub mod contract;
mod deadline;
mod error;
pub mod fault;
#[cfg(all(any(doc, doctest), feature = "reqwest-middleware", feature = "tower-retry"))]
pub mod guide;
mod hints;
pub mod layers;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
pub mod policy;
mod redact;
pub mod retry;
mod scope;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timeout;

pub use block::{Attempt, Failure, retry};
#[cfg(feature = "grpc")]
pub use clients::grpc;
#[cfg(feature = "hyper-rustls")]
pub use clients::hyper;
#[cfg(feature = "reqwest")]
pub use clients::reqwest;
#[cfg(feature = "reqwest-middleware")]
pub use clients::reqwest_middleware;
#[cfg(feature = "tower-retry")]
pub use clients::tower;
pub use deadline::Deadline;
pub use error::{AttemptTimedOut, Error};
pub use fault::{Fault, FaultKind};
pub use hints::OutboundHints;
#[cfg(feature = "idempotency-key")]
pub use layers::IdempotencyKeyLayer;
pub use layers::{BufferResponseLayer, RecoverLayer, ResumeLayer};
pub use policy::{
    Backoff, Budget, Class, Clock, Evidence, GrpcCode, Hint, Hold, HoldScope, Jitter, Outcome, Place, Plan, Policy,
    PolicyError, Reach, RequestHead, RequestOptions, Routes, StandardPolicy, StopReason, Timeouts, Transient, Unit,
    Verdict,
};
#[doc(hidden)] // for `redial-jobs`
pub use redact::redacted;
pub use retry::{
    AnswerBody, AttemptBody, AttemptOutcome, AttemptReport, CallReport, OneRetryPerPath, Replay, RetryLayer, Streamed,
    attempt_number, detach,
};
pub use scope::{Scoped, independent};
pub use timeout::TimeoutLayer;

/// Any error, boxed: what tower, hyper and this crate pass around.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
