//! Again: the layer that repeats a request, and what it keeps to do so.

pub(crate) mod after;
pub(crate) mod another_host;
mod answer_body;
mod attempts;
mod call;
pub(crate) mod course;
pub(crate) mod current;
mod drain;
mod failure;
mod future;
pub(crate) mod guard;
mod head;
mod layer;
mod promise;
pub(crate) mod reading;
mod replay;
mod report;
mod service;
mod settle;
mod source;
mod tape;
mod trail;

pub use answer_body::AnswerBody;
pub use future::RetryFuture;
pub use guard::{OneRetryPerPath, attempt_number, detach};
pub use layer::RetryLayer;
pub use replay::{AttemptBody, Replay, Streamed};
pub use report::{AttemptOutcome, AttemptReport, CallReport};
pub use service::Retry;

pub(crate) use failure::{BodyFailed, UploadRevoked};
#[cfg(feature = "grpc")]
pub(crate) use guard::AttemptEnds;
