//! tower's own retry layer (feature `tower-retry`, for tower 0.5), for those who must keep it.
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use redial::{StandardPolicy, TimeoutLayer, Timeouts, Transient, tower::RetryPolicy};
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt, retry::RetryLayer};
//!
//! # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
//! # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
//! let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//! let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
//! let stack = ServiceBuilder::new()
//!     .layer(RetryLayer::new(RetryPolicy::new(policy)))
//!     .layer(TimeoutLayer::new().head(timeouts.attempt)) // an attempt's time is not tower's to keep
//!     .service(client);
//! # infer(&stack);
//! # Ok::<(), redial::PolicyError>(())
//! ```
//!
//! A [`TimeoutLayer`](crate::TimeoutLayer) below is required, and by types (S8): without it, or with it above, the stack
//! does not compile. That it bounds the wait for a head is yours to say, by [`head`](crate::TimeoutLayer::head) or
//! [`total`](crate::TimeoutLayer::total); with `body_idle` alone a server that never answers is waited for without end.
//!
//! ```compile_fail,E0277
//! # use bytes::Bytes;
//! # use http_body_util::Full;
//! # use redial::{StandardPolicy, tower::RetryPolicy};
//! # use tower::{ServiceBuilder, retry::RetryLayer};
//! # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
//! # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
//! # fn stack(policy: StandardPolicy) {
//! let stack = ServiceBuilder::new().layer(RetryLayer::new(RetryPolicy::new(policy))).service(client);
//! # infer(&stack);
//! # }
//! ```
//!
//! `tower::retry::RetryLayer` twice does compile, and sends 5 requests for 3 attempts each: nothing marks a first
//! attempt.
//!
//! # What is kept, and what is lost
//!
//! The decision is the same, made by the same code: verdict, evidence, attempts, the server's word, the hold, the
//! deadline, the budget; the same waits, report and events. Beside [`redial::RetryLayer`](crate::RetryLayer) this is lost,
//! since tower's layer has no place for it:
//!
//! | lost | what follows |
//! | --- | --- |
//! | the attempt's timeout, and the total within an attempt | `TimeoutLayer::head` below; no attempt *begins* after the total |
//! | the watch over the body | neither an error nor a documented rejection proves that a request was never processed: a `POST` without a key is never repeated |
//! | taped bodies | what [`Replay::try_clone`](crate::Replay::try_clone) does not copy (streams, boxed bodies, `String`) is sent once, unseen by the policy |
//! | letting a failed answer go in order | its HTTP/1.1 connection is closed, and the next attempt opens another |
//! | the mark of the first attempt | a retry layer below repeats the first attempt by itself; the later ones are sent once |
//! | holding first tries ([`HoldScope::All`](crate::HoldScope::All)), and a hold that comes while waiting | they are sent |
//! | a look into an error answer's body ([`Verdict::look_into_body`](crate::Verdict::look_into_body)) | it is judged as unclassified |
//! | the event of a cancelled call; what a cancelled wait had reserved is given back all the same | |

mod call;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode, header};
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::{Deadline, Error, OutboundHints, Policy, Replay, attempt_number, hints, policy::RequestHead, retry::guard};

use call::Call;

/// A [`Policy`] of this crate as a [`tower::retry::Policy`].
///
/// Cheap to clone; each call has its own state.
pub struct RetryPolicy<P> {
    policy: P,
    call: Option<Box<Call>>,
}

impl<P> RetryPolicy<P> {
    /// Decides by this policy.
    pub const fn new(policy: P) -> Self {
        RetryPolicy { policy, call: None }
    }
}

impl<P: Clone> Clone for RetryPolicy<P> {
    /// A call that has only begun goes along: tower's service has its own policy copy the first request, and hands a clone
    /// of it to the call.
    fn clone(&self) -> Self {
        let begun = self.call.as_ref().filter(|call| call.is_new());
        RetryPolicy { policy: self.policy.clone(), call: begun.map(|call| Box::new(call.begun())) }
    }
}

impl<P> fmt::Debug for RetryPolicy<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").finish_non_exhaustive()
    }
}

impl<P, B, RB> tower::retry::Policy<Request<B>, Response<RB>, Error> for RetryPolicy<P>
where
    P: Policy + Clone,
    B: Replay,
{
    type Future = Wait;

    fn retry(&mut self, request: &mut Request<B>, result: &mut Result<Response<RB>, Error>) -> Option<Wait> {
        let call = self.call.as_deref_mut()?;
        let wait = call.settle(&self.policy, result)?;
        // Whoever is below: this request is repeated already, and must be over by then.
        request.extensions_mut().insert(Deadline::at(call.deadline));
        guard::mark(request.extensions_mut(), call.attempt());
        if result.as_ref().is_ok_and(|response| response.status() == StatusCode::EXPECTATION_FAILED) {
            // Again, and without the expectation that nobody meets (RFC 9110, 10.1.1).
            request.headers_mut().remove(header::EXPECT);
        }
        Some(Wait { timer: tokio::time::sleep(wait) })
    }

    /// Called before each attempt, with what will be sent.
    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        match self.call.as_mut().filter(|call| !call.is_new()) {
            Some(call) => {
                call.sends();
            }
            // Another retry layer's attempt: it repeats, and this one does not.
            None if attempt_number(request.extensions()).is_some() => return None,
            // A block around it repeats it (D34).
            None if OutboundHints::of(request.extensions()).block().is_some() => {
                hints::notice_stacked();
                return None;
            }
            // A new call; what is there is the beginning of the one before.
            None => {
                let head = RequestHead::of(request);
                let plan = self.policy.plan(&head).held_to(&head);
                self.call = Some(Box::new(Call::of(plan, request)));
            }
        }
        let mut copy = Request::new(request.body().try_clone()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
}

pin_project! {
    /// The wait between two attempts.
    #[must_use = "futures do nothing unless polled"]
    pub struct Wait {
        #[pin]
        timer: Sleep,
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().timer.poll(cx)
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}
