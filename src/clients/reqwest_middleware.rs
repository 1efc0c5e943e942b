//! reqwest-middleware (feature `reqwest-middleware`, for reqwest-middleware 0.5): the retry layer as a middleware.
//!
//! ```
//! use redial::{StandardPolicy, Timeouts, Transient, reqwest_middleware::RetryMiddleware};
//! use std::time::Duration;
//!
//! async fn order(id: u32) -> Result<String, Box<dyn std::error::Error>> {
//!     let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//!     let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
//!     let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//!
//!     let client = reqwest_middleware::ClientBuilder::new(inner).with(RetryMiddleware::new(policy)).build();
//!     let response = client.get(format!("https://orders.example/{id}")).send().await?;
//!     Ok(response.error_for_status()?.text().await?)
//! }
//! ```
//!
//! What the page of [`redial::reqwest`](crate::reqwest) says of bodies, timeouts and proofs holds here too.
//!
//! # The right order, and the wrong ones
//!
//! Middlewares run in the order in which they are added. What happens once a call is added before this one (a trace of
//! the call, an idempotency key), what happens once an attempt after it (a signer, a trace of each attempt).
//!
//! | on the same client | what happens |
//! | --- | --- |
//! | a second `RetryMiddleware` | it sees the mark in the request and in the middlewares' `Extensions`, sends once and warns |
//! | `reqwest-retry` before this one | repeats what has failed already: each further call of it is sent once, so that its attempts are added and not multiplied (3 + 3, not 12); this one warns |
//! | `reqwest-retry` after this one | cannot copy the stream that it is given and fails every call ("Request object is not cloneable") before anything is sent; with [`RetryMiddleware::whole_bodies`] it can, nothing notices, and requests multiply |
//!
//! # Errors
//!
//! A failed call ends in `reqwest_middleware::Error::Middleware`, and that answers `false` to `is_timeout()` and
//! `is_connect()` whatever is within. Ask ours, by [`as_redial`]:
//!
//! ```
//! # fn handle(error: reqwest_middleware::Error) {
//! if let Some(error) = redial::reqwest_middleware::as_redial(&error) {
//!     let late = error.is_timeout();
//!     let of_reqwest = error.find_source::<reqwest::Error>();
//!     let attempts = error.report().map_or(0, |report| report.attempts().len());
//! # let _ = (late, of_reqwest, attempts);
//! }
//! # }
//! ```

use std::{
    fmt,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use http::{Extensions, Method, Request, Response, StatusCode, uri::Authority};
use reqwest_middleware::{Middleware, Next};
use tower_layer::Layer;
use tower_service::Service;

use super::reqwest::{Asked, ResponseBody, incoming, into_response, prepare, without_secrets};
use crate::{AttemptBody, BoxError, Error, Policy, RetryLayer, StandardPolicy, attempt_number, retry::guard};

/// Repeats requests by a [`Policy`], for a `reqwest_middleware::ClientWithMiddleware`.
///
/// What a request carries for the policy is given `with_extension`: [`RequestOptions`](crate::RequestOptions), a
/// [`Deadline`](crate::Deadline). The answer's extensions hold the [`CallReport`](crate::CallReport).
///
/// The middlewares below see each attempt with a copy of the `Extensions` as they were left by the attempt before; what
/// one that was cut off had put in is lost.
#[derive(Clone)]
pub struct RetryMiddleware<P = StandardPolicy> {
    layer: RetryLayer<P>,
    whole: bool,
    alone: bool,
}

impl<P> RetryMiddleware<P> {
    /// Repeats requests by this policy. Build the client with `.retry(reqwest::retry::never())`.
    pub fn new(policy: P) -> Self {
        RetryMiddleware { layer: RetryLayer::new(policy), whole: false, alone: false }
    }

    /// Makes a request that another retry repeats already an error
    /// ([`Error::is_stacked`](crate::Error::is_stacked)). Default: it is sent once, with one WARN per middleware.
    pub fn refuse_stacking(mut self) -> Self {
        self.layer = self.layer.refuse_stacking();
        self
    }

    /// Hands bodies that are in memory on as they are, and not as a stream. Default: as a stream.
    ///
    /// A middleware below, such as a signer, can read them then (`Body::as_bytes`), and reqwest follows redirects that ask
    /// for the body again. What it costs is what [`Client::whole_bodies`](crate::reqwest::Client::whole_bodies) costs.
    pub fn whole_bodies(mut self) -> Self {
        self.whole = true;
        self
    }

    /// States that an attempt is one request: the client follows no redirects, and no middleware below sends requests of
    /// its own. See [`Adapter::one_request_per_attempt`](crate::reqwest::Adapter::one_request_per_attempt).
    pub fn one_request_per_attempt(mut self) -> Self {
        self.alone = true;
        self
    }
}

impl<P> fmt::Debug for RetryMiddleware<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryMiddleware").field("whole_bodies", &self.whole).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl<P: Policy + Clone + Send + Sync + 'static> Middleware for RetryMiddleware<P> {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let (mut request, original) = prepare(request, extensions.clone(), self.whole)?;
        let call = Spent::of(&request);
        let stacked = attempt_number(request.extensions()).is_some();
        if extensions.get() == Some(&call) {
            self.layer.not_again(&mut request);
        }
        let left = Mutex::new(extensions.clone());
        let (next, original, shared, alone) = (&next, &original, &left, self.alone);
        let attempts = Attempts(move |request: Request<AttemptBody<reqwest::Body>>| async move {
            let mut own = lock(shared).clone();
            guard::hand_on(request.extensions(), &mut own);
            let request = original.attempt(request, alone);
            let asked = (!alone).then(|| Asked::of(request.url()));
            let result = next.clone().run(request, &mut own).await;
            if !stacked {
                guard::unmark(&mut own);
            }
            *lock(shared) = own;
            result.map(|response| incoming(response, asked.as_ref())).map_err(|error| Below(cause(error)))
        });
        let result = self.layer.layer(attempts).call(request).await.map(into_response);
        *extensions = left.into_inner().unwrap_or_else(PoisonError::into_inner);
        if result.as_ref().map_or(true, |response| may_be_repeated(response.status())) {
            extensions.insert(call);
        } else {
            // What comes next is another call.
            extensions.remove::<Spent>();
        }
        result.map_err(reqwest_middleware::Error::middleware)
    }
}

/// This crate's error within one of reqwest-middleware's, where there is one: also where a middleware above wrapped it,
/// if its error has the one that it was given as its `source()`.
pub fn as_redial(error: &reqwest_middleware::Error) -> Option<&Error> {
    let reqwest_middleware::Error::Middleware(error) = error else { return None };
    error.chain().find_map(|link| match link.downcast_ref::<reqwest_middleware::Error>() {
        // Its own `source()` steps over what it holds.
        Some(error) => as_redial(error),
        None => link.downcast_ref(),
    })
}

/// In the middlewares' extensions after a call that somebody above may want to repeat. The next call of the same method
/// and URL with the same extensions is taken for that. Without the query, in which a signature or a number may be another
/// each time.
#[derive(Clone, PartialEq, Eq)]
struct Spent {
    method: Method,
    authority: Option<Authority>,
    path: String,
}

impl Spent {
    fn of<B>(request: &Request<B>) -> Self {
        let (method, uri) = (request.method().clone(), request.uri());
        Spent { method, authority: uri.authority().cloned(), path: uri.path().to_owned() }
    }
}

/// What others take for transient. A `401` is none: who answers its challenge makes another call.
fn may_be_repeated(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// The error that a reqwest-middleware error stands for: its own `source()` steps over it.
fn cause(error: reqwest_middleware::Error) -> BoxError {
    match error {
        reqwest_middleware::Error::Reqwest(error) => without_secrets(error).into(),
        reqwest_middleware::Error::Middleware(error) => match error.downcast::<Error>() {
            Ok(ours) => ours.into(),
            Err(other) => other.into(),
        },
    }
}

fn lock(extensions: &Mutex<Extensions>) -> MutexGuard<'_, Extensions> {
    extensions.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error of the rest of the chain. Not boxed by its type: the compiler would not see that the future can be sent.
struct Below(BoxError);

impl From<Below> for BoxError {
    fn from(below: Below) -> BoxError {
        below.0
    }
}

/// The rest of the chain as a service: always ready, one request a call.
#[derive(Clone)]
struct Attempts<F>(F);

impl<F, A> Service<Request<AttemptBody<reqwest::Body>>> for Attempts<F>
where
    F: Fn(Request<AttemptBody<reqwest::Body>>) -> A,
    A: Future<Output = Result<Response<ResponseBody>, Below>>,
{
    type Response = Response<ResponseBody>;
    type Error = Below;
    type Future = A;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Below>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<AttemptBody<reqwest::Body>>) -> A {
        (self.0)(request)
    }
}
