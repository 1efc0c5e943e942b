//! What is not a repeat, a small layer each: a key, a body read within its attempt, a download that goes on, and what a
//! failure comes to in the end.
//!
//! # One stack
//!
//! Each is there by itself or not at all; together they stand in this order:
//!
//! ```
//! use redial::{
//!     BufferResponseLayer, RecoverLayer, ResumeLayer, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient,
//!     layers::Failure,
//! };
//! use std::time::Duration;
//! use tower::ServiceBuilder;
//! # use http_body_util::Full;
//! # use bytes::Bytes;
//! # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
//! # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
//!
//! let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };
//! let stack = ServiceBuilder::new()
//!     .layer(RecoverLayer::new(|failure: Failure<_>| failure.into_answer()))
//!     .layer(TimeoutLayer::new().total(Duration::from_secs(600)))
//!     .layer(ResumeLayer::new())
//!     .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)));
//! # #[cfg(feature = "idempotency-key")]
//! let stack = stack.layer(redial::IdempotencyKeyLayer::new());
//! let client = stack
//!     .layer(RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?))
//!     .layer(BufferResponseLayer::new(64 * 1024))
//!     .service(client);
//! # infer(&client);
//! # Ok::<(), redial::PolicyError>(())
//! ```
//!
//! | layer | why there | anywhere else |
//! | --- | --- | --- |
//! | [`RecoverLayer`] | sees the final failure, whoever's it is | further in, what fails above it reaches the caller as it is |
//! | [`TimeoutLayer`](crate::TimeoutLayer) with `total` | the whole download, resumes included | below the resume layer, each part has its own total |
//! | [`ResumeLayer`] | each resumed request is a call, with its own attempts | below the retry layer, each is sent once, past policy and budget |
//! | [`TimeoutLayer`](crate::TimeoutLayer) with `body_idle`, and `head` if any | a stall becomes an error that is resumed | above, a stall ends the download, and `head` ends its resumes |
//! | `IdempotencyKeyLayer` | a key per call | below the retry layer it does nothing |
//! | [`RetryLayer`](crate::RetryLayer) | | |
//! | [`BufferResponseLayer`] | the body is part of the attempt | above, a broken body is the end |
//!
//! Beside these, [`AttemptSpanLayer`] and [`OutboundHeadersLayer`] stand below the retry layer, once an attempt, the first
//! of them above a [`BufferResponseLayer`], and
//! [`InboundLayer`] stands in a server, around the handler.
//!
//! `TimeoutLayer` may stand there twice, since it bounds two things: the outer one the whole, the inner one a silence.

mod attempt_span;
mod buffer_response;
mod hint_header;
#[cfg(feature = "idempotency-key")]
mod idempotency_key;
mod inbound;
mod outbound_headers;
mod recover;
mod resume;

pub use attempt_span::{AttemptSpan, AttemptSpanFuture, AttemptSpanLayer};
pub use buffer_response::{BufferResponse, BufferResponseFuture, BufferResponseLayer, BufferedBody};
pub use hint_header::HintHeader;
#[cfg(feature = "idempotency-key")]
pub use idempotency_key::{IdempotencyKey, IdempotencyKeyLayer};
pub use inbound::{Inbound, InboundLayer};
pub use outbound_headers::{OutboundHeaders, OutboundHeadersLayer};
pub use recover::{Failure, Recover, RecoverBody, RecoverFuture, RecoverLayer};
pub use resume::{NotResumed, Resume, ResumeBody, ResumeFuture, ResumeLayer};
