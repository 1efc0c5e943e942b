//! reqwest (feature `reqwest`, for reqwest 0.13): a [`Client`] with reqwest's own requests and responses, and the
//! [`Adapter`] for those who stack layers themselves.
//!
//! ```
//! use redial::{StandardPolicy, Timeouts, Transient};
//! use std::time::Duration;
//!
//! async fn order(id: u32) -> Result<String, Box<dyn std::error::Error>> {
//!     let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//!     let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
//!     let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//!
//!     let client = redial::reqwest::client(inner, policy);
//!     let response = client.get(format!("https://orders.example/{id}")).send().await?;
//!     Ok(response.error_for_status()?.text().await?)
//! }
//! ```
//!
//! # The right stack, and the wrong ones
//!
//! One client, one policy. What multiplies, and what becomes of it here:
//!
//! | beside this client | what happens |
//! | --- | --- |
//! | reqwest's own retries (`REFUSED_STREAM` and `GOAWAY`, three tries, unless switched off) | they cannot copy the body they are given, so they do nothing; with [`whole_bodies`](Client::whole_bodies) they can, and three attempts become nine requests |
//! | a [`RetryLayer`](crate::RetryLayer) around this client | it notices by the mark in the request's extensions, sends once and warns |
//! | a loop in the application | nothing notices: declare it ([`elsewhere`](crate::policy::StandardPolicyBuilder::elsewhere)) or remove it |
//!
//! Switch reqwest's off all the same, as above: the next reader then knows who retries.
//!
//! # Timeouts
//!
//! reqwest's own are timers of one attempt, its body included: whichever of `timeout()`, `read_timeout()` and the policy's
//! attempt is the shortest ends it. Give the client a `connect_timeout` shorter than the policy's attempt: it proves
//! that nothing was sent, where the attempt's timeout proves nothing.
//!
//! # Bodies
//!
//! Bytes, forms and JSON are repeatable at any size; a stream, which a multipart form is too, up to 64 KiB; a longer one is sent once, and that is no
//! error. In any case reqwest is handed a stream, by which redial sees how far it got. It cannot copy one, so:
//!
//! - a redirect that asks for the body again (307, 308, or 301 and 302 of another method than `POST`) comes back as
//!   the answer, unless the body is empty;
//! - where that is not wanted, [`Client::whole_bodies`] hands over what is in memory as it is, and pays with every proof
//!   that a request was never sent.
//!
//! # What counts as never processed
//!
//! A connection that was not made, while nothing of the request had been sent. What HTTP/2 says of a stream
//! (`REFUSED_STREAM`, `GOAWAY`), and an answer that the provider documents as "not processed", may be about the hop of a
//! redirect that reqwest followed by itself: a `POST` whose receipt is throttled was done. They count only for a client that
//! follows none, and says so ([`Client::one_request_per_attempt`]). What another host answers after a redirect holds this
//! call, and not the provider's others.
//!
//! A tower `buffer` directly above an [`Adapter`] costs these proofs: it calls reqwest in a task of its own, where reqwest's
//! look at a body is not told from its sending.
//!
//! # Errors
//!
//! [`Error::is_timeout`](crate::Error::is_timeout) and [`is_connect`](crate::Error::is_connect) answer for reqwest's
//! errors too, and [`find_source::<reqwest::Error>()`](crate::Error::find_source) reaches the error itself. Its URL has
//! lost what may be secret: userinfo, query and fragment. (A redirect from `https` to `http`, where the client forbids
//! that, quotes the server's `Location` as it came.)

mod adapter;
mod bodies;
mod check;
mod client;
mod original;
mod request;

pub use adapter::{Adapter, AdapterFuture};
pub use bodies::{ResponseBody, into_response};
pub use check::check;
pub use client::{Client, client};
pub use request::RequestBuilder;

#[cfg(feature = "reqwest-middleware")]
pub(super) use adapter::without_secrets;
#[cfg(feature = "reqwest-middleware")]
pub(super) use bodies::{Asked, incoming};
#[cfg(feature = "reqwest-middleware")]
pub(super) use original::prepare;
