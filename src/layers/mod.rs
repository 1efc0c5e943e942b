//! What is not retry, one small layer each.

mod attempt_span;

pub use attempt_span::{AttemptSpan, AttemptSpanFuture, AttemptSpanLayer};
