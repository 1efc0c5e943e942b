//! Scripted servers and services, for the tests of whatever retries (feature `testing`).
//!
//! A [`Script`] says what each request gets: a [`Reply`], which is an answer or a fault, as data. Who plays it:
//!
//! | | protocol | clock | for |
//! | --- | --- | --- | --- |
//! | [`Server::http1`], [`Server::http2`] | real ones, on loopback | real | whole clients, with their pools and connections |
//! | [`service`] | none: a tower service | any, paused too | policies, waits, deadlines, layers |
//!
//! All three record every request they see, as [`Seen`]. [`Events`] captures what this crate says about a call, and
//! [`error`] makes its errors, for the tests of code that handles them.
//!
//! ```
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use redial::testing::{Events, Reply, Server};
//! use redial::{RetryLayer, StandardPolicy, Timeouts, Transient};
//! use std::time::Duration;
//! use tower::{Layer, ServiceExt};
//!
//! # // In your crate: #[tokio::test]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("an order")]);
//! let events = Events::capture();
//!
//! let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//! let client = RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?)
//!     .layer(Client::builder(TokioExecutor::new()).build_http());
//! let request = Request::put(server.url("/orders/7")).body(Full::<Bytes>::from("one more"))?;
//! let response = client.oneshot(request).await?;
//!
//! assert_eq!(response.status(), 200);
//! let seen = server.seen();
//! seen.sent(3);
//! assert!(seen.requests.iter().all(|request| request.body.is("one more")), "{seen}");
//! events.no_error();
//! # Ok(())
//! # }
//! ```
//!
//! # Faults
//!
//! What the client sees is what [`Fault::read`](crate::Fault::read) says of its error. The same for a server and a
//! service, except where it says so.
//!
//! | fault | the client sees | unsent |
//! | --- | --- | --- |
//! | [`Server::refusing`], [`Reply::not_connected`] (service) | `connect` | yes |
//! | [`Resolver`] | `dns` | yes |
//! | [`Server::tls_refused`] | `tls`, permanent | yes |
//! | [`Server::silent`], [`Reply::stall`], [`stall_within`](Reply::stall_within) | its own timeout, or nothing | |
//! | [`Reply::close`], [`half_head`](Reply::half_head), [`close_within`](Reply::close_within), [`close_on_reuse`](Reply::close_on_reuse) | `closed` | |
//! | [`Reply::reset`], [`reset_within`](Reply::reset_within) | `reset` | |
//! | [`break_within`](Reply::break_within); over HTTP/2 a wrong `Content-Length` | `protocol` | |
//! | [`Reply::refused_stream`] | `refused-stream` | yes |
//! | [`Reply::reset_stream`] with another reason, [`reset_stream_within`](Reply::reset_stream_within) | `reset` | |
//! | [`Reply::goaway`] that leaves the stream out | `goaway` | yes, if the request's body was read |
//! | [`Reply::goaway`] with the stream within | `closed` | |
//! | [`Script::max_concurrent_streams`] of 0 | its own timeout, or nothing; `refused-stream` at first | at first |
//!
//! # Limits
//!
//! No TLS but for its refusal, no upgrades, no `100 Continue`, no port whose queue is full. Answers of HTTP/1.1 come
//! one after the other, as hyper's client asks for them.

#![allow(clippy::panic, reason = "a test kit says what is wrong by panicking")]

pub mod error;

mod answer;
mod body;
mod events;
mod http1;
mod http1_read;
mod http2;
mod mint;
mod reason;
mod record;
mod reply;
mod report;
mod resolver;
mod script;
mod seen;
mod server;
mod service;
mod wire;

pub use body::ReplyBody;
pub use events::{Event, Events};
pub use reason::{LastStream, Reason};
pub use reply::Reply;
pub use report::ReportBuilder;
pub use resolver::{NotResolved, Resolver};
pub use script::{Readiness, Script};
pub use seen::{Seen, SeenBody, SeenRequest};
pub use server::Server;
pub use service::{NotReady, ScriptFuture, ScriptService, service};
