//! gRPC through tonic (feature `grpc`): a [`channel`] that repeats calls, for a generated client.
//!
//! ```
//! use redial::{GrpcCode, StandardPolicy, Timeouts, Transient};
//! use std::time::Duration;
//! use tonic::transport::Endpoint;
//! # struct OrdersClient<T>(T);
//! # impl<T: tonic::client::GrpcService<tonic::body::Body>> OrdersClient<T> { fn new(channel: T) -> Self { OrdersClient(channel) } }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//! let policy = StandardPolicy::builder("orders", timeouts, Transient::usual().code(GrpcCode::Unavailable))
//!     .idempotent("orders have numbers: the second of two is refused")
//!     .build()?;
//! let channel = Endpoint::from_static("http://orders.example").connect_lazy();
//! // All of its methods answer with one message; of a service that streams, say it by method, or not at all.
//! let channel = redial::grpc::channel(channel, policy).commit(redial::grpc::Commit::Status);
//! let client = OrdersClient::new(channel);
//! # Ok(())
//! # }
//! ```
//!
//! # What is repeated
//!
//! - **A code that the policy names**, and no other: [`Transient::code`](crate::Transient::code). An answer with a status
//!   of HTTP other than 200 and no code, such as a proxy's, is judged by that status where it is listed, and else by the
//!   code that it stands for ([mapping]).
//! - **With evidence.** Every call of gRPC is a `POST`, so no method is evidence, and `UNAVAILABLE` by itself is no proof
//!   that the call was not processed. A repeat needs a statement for the operation
//!   ([`idempotent`](crate::policy::StandardPolicyBuilder::idempotent), by [`Routes`](crate::Routes) such as
//!   `POST /shop.Orders/Get`, without a host: tonic adds that below) or for one request
//!   ([`RequestOptions`](crate::RequestOptions) in its extensions), an idempotency key in its metadata, or a provider who
//!   documents that the code means "not processed": [`rejected_code`](crate::Transient::rejected_code).
//! - **What was never sent**, without evidence: no connection could be made, the stream was refused, or `GOAWAY` left it
//!   out.
//! - **Never after the answer is the caller's**, which it is with its first message, if nothing else is said: see
//!   [`Commit`]. For unary calls, say [`Commit::Status`]: a server that sends its head and then falls silent has committed
//!   the call otherwise, and no timeout of the policy's ends it any more, since a stream may be silent for long. The
//!   caller's own deadline (`request.set_timeout`) bounds the answer too, with any commit.
//!
//! `grpc-retry-pushback-ms` is heeded in the head and in trailers, for codes that are transient: a number is the least
//! wait, anything else means no.
//!
//! A request that is there as a whole, such as every unary one, is repeatable at any size. One that streams is taped up to
//! 64 KiB; a longer one still streams, once.
//!
//! # What an attempt says
//!
//! `grpc-previous-rpc-attempts`, from the second on. And `grpc-timeout`, anew for each attempt, rounded down: what is left
//! of the caller's own (`request.set_timeout`), which is the call's outer deadline too; with [`Commit::Status`] also what
//! is left of the attempt and of the call, whichever ends first. Without either it says nothing, since an attempt ends
//! with the head or the first message, and the server would cut the stream that follows. A malformed `grpc-timeout` is
//! none, and not sent.
//!
//! # What the caller gets
//!
//! - An answer, unchanged: head, messages, trailers. One that took more than one attempt has a
//!   [`CallReport`](crate::CallReport) in the extensions of `tonic::Response`.
//! - Or a [`Status`](tonic::Status). Time that is up is `DEADLINE_EXCEEDED`, a lost or refused connection is
//!   `UNAVAILABLE`; see [the table](crate::Error#impl-From<Error>-for-Status). Where there is
//!   something to report, [`error`] finds it in the status: `status.source()` leads to the `redial::Error`, and from there
//!   to the client's own error. An answer that failed is made such a status too then, though it came in trailers.
//!
//! Events and reports name the code: `error.type` is `UNAVAILABLE`.
//!
//! # The right order
//!
//! Interceptors, signers and traces as with any retry layer: `InterceptedService::new(redial::grpc::channel(channel,
//! policy), interceptor)` asks the interceptor once a call; `redial::grpc::channel(InterceptedService::new(channel,
//! interceptor), policy)` once an attempt, as tokens that expire want it. A status that an interceptor gives is an answer,
//! judged by its code. A [`TimeoutLayer`](crate::TimeoutLayer) stands above, and `.map_err(tonic::Status::from)` above it.
//!
//! # The wrong order
//!
//! A `RetryLayer` above this one, or this one above it, does not compile:
//!
//! ```compile_fail,E0277
//! # use redial::{RetryLayer, StandardPolicy};
//! # use tower::Layer;
//! # fn stack(channel: tonic::transport::Channel, policy: StandardPolicy) {
//! let inner = redial::grpc::channel(channel, policy.clone());
//! tonic::client::Grpc::new(RetryLayer::new(policy).layer(inner)).ready();
//! # }
//! ```
//!
//! `channel(channel(…))` does, as does one that a `MapRequestBodyLayer` makes fit, since tonic's body hides what is in it:
//! the inner one notices, sends once and says so in one WARN.
//!
//! # What tonic does beneath
//!
//! `Channel` repeats no call. It queues calls in a buffer (1024, [`Endpoint::buffer_size`]) and, when its connection is
//! gone, makes a new one for the next call; a failure to do so is handed to one call, which is then known to be unsent. It
//! stops waiting for a head at the `grpc-timeout` it sees, or at [`Endpoint::timeout`] where that is shorter, with
//! `CANCELLED` where this crate is not above it. Waiting for the buffer's first place is the caller's own to bound.
//!
//! # Where it differs from gRFC A6
//!
//! [A6] is gRPC's own design for retries. Names and headers are its; this crate is more careful where it can be:
//!
//! | | A6 | here |
//! | --- | --- | --- |
//! | a retryable code | repeated | repeated with evidence |
//! | an answer is committed | with its head | with its first message or its status, by [`Commit`] |
//! | pushback | instead of the backoff, which starts anew | at least; the policy's own wait is the floor |
//! | what was never sent | repeated without being counted: once, or without end where it never left the client | an attempt like any other; the first repeat is not charged, and not made while the budget is closed |
//! | throttling | tokens a server, `maxTokens`, `tokenRatio` | [`Budget`](crate::Budget) |
//! | what is kept of a request | what the application allows | 64 KiB of a stream; any size of what is there as a whole |
//! | attempts | at most 5, if the client says no more | 3; more, up to 9, for a reason |
//! | the service config, hedging | yes | no |
//!
//! # Limits
//!
//! A layer below that makes calls of its own must not hand on their errors as this call's: that a token was never asked for
//! does not prove that the call which needed it was never sent.
//!
//! Once tonic's client has read a `grpc-status-details-bin` that is not base64, it panics, with this crate and without.
//! Where a status is made here, such details are left out.
//!
//! [mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
//! [A6]: https://github.com/grpc/proposal/blob/master/A6-client-retries.md
//! [`Endpoint::buffer_size`]: tonic::transport::Endpoint::buffer_size
//! [`Endpoint::timeout`]: tonic::transport::Endpoint::timeout

mod answer;
mod attempt;
mod boxed;
mod channel;
mod commit;
mod future;
mod headers;
mod reading;
mod request;
mod status;
mod timeout;

pub use answer::ResponseBody;
pub use channel::{RetryChannel, channel};
pub use commit::Commit;
pub use future::RetryChannelFuture;
pub use status::error;

pub(crate) use answer::AnswerFailed;
use request::RequestBody;
