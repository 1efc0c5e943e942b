//! What a failure comes to, in the end: the caller's own error, or something instead.

mod body;
mod failure;
mod future;

use std::{
    fmt, mem,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::{BoxError, Error};

pub use body::RecoverBody;
pub use failure::Failure;
pub use future::RecoverFuture;

/// The one place where a final failure becomes the caller's own error, or an answer instead.
///
/// Code above a client should not tell a reset from a 503 after three attempts: to it, the service was not available.
/// This layer, outside all others, makes that of both. Its closure is called **once a call, and only for what failed
/// finally**:
///
/// - an error: no answer came, whatever the reason;
/// - an answer that a retry layer would have repeated and could not: attempts, budget or time were spent, nothing said
///   that a repeat is safe, the server asked for too long a wait;
/// - an answer of which a repeat is to be looked into first ([`Class::Verify`](crate::Class::Verify)).
///
/// **A business failure passes unchanged**: a 404 is an answer, and so is a 422, or whatever else the policy calls
/// permanent or nobody listed. [`every_failure`](Self::every_failure) hands the closure those as well.
///
/// The closure is given a [`Failure`], and returns a response or an error of the caller's own type, which is the error
/// of the whole stack:
///
/// ```
/// use http::{Response, StatusCode};
/// use redial::{RecoverLayer, RetryLayer, StandardPolicy, Timeouts, Transient, layers::{Failure, RecoverBody}};
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>, Error = PricesUnavailable>>(_: &S) {}
///
/// /// What callers of this service are to know of the network.
/// #[derive(Debug)]
/// struct PricesUnavailable {
///     perhaps_done: bool,
/// }
///
/// fn recover<B>(failure: Failure<B>) -> Result<Response<RecoverBody<B>>, PricesUnavailable> {
///     if failure.uri().path() == "/prices" {
///         return Ok(Response::new(RecoverBody::from("yesterday's prices")));
///     }
///     Err(PricesUnavailable { perhaps_done: failure.outcome_unknown() })
/// }
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let client = ServiceBuilder::new()
///     .layer(RecoverLayer::new(recover))
///     .layer(RetryLayer::new(StandardPolicy::new("prices", timeouts, Transient::usual())?))
///     .service(client);
/// # infer(&client);
/// # Ok::<(), redial::PolicyError>(())
/// ```
///
/// The closure is not asynchronous: an answer instead is one that is there already. It is called with what readiness
/// came to as well, at the call that follows.
///
/// # The right order
///
/// Outside all others, so that it sees the failure of each.
///
/// # The wrong order
///
/// - Inside the retry layer it would be called once an attempt, and its answer would hide from the policy that there was
///   anything to repeat.
/// - Below a [`TimeoutLayer`](crate::TimeoutLayer), the timeout's error reaches the caller as it is.
/// - Within a block of code ([`redial::retry`](fn@crate::retry)) it is called once an attempt too, and an answer instead
///   hides from the block that there was anything to repeat: recover from what the block comes to.
/// - A response that was handed on is no longer this layer's: a body that breaks later has an error of its own type.
#[derive(Clone)]
pub struct RecoverLayer<H> {
    handler: H,
    which: Which,
}

/// Which answers are failures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// Those that a retry layer gave up on.
    GivenUp,
    /// Those, and every other of 400 or more.
    Every,
}

impl<H> RecoverLayer<H> {
    /// Recovers from final failures by this closure: `Fn(Failure<B>) -> Result<Response<RecoverBody<B>>, E>`, for the
    /// inner response body `B` and an error `E` of the caller's own.
    pub const fn new(handler: H) -> Self {
        RecoverLayer { handler, which: Which::GivenUp }
    }

    /// Hands the closure every answer of 400 or more, business failures included. Default: only those that a retry layer
    /// gave up on.
    pub fn every_failure(mut self) -> Self {
        self.which = Which::Every;
        self
    }
}

impl<H> fmt::Debug for RecoverLayer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoverLayer").field("which", &self.which).finish_non_exhaustive()
    }
}

impl<S, H: Clone> Layer<S> for RecoverLayer<H> {
    type Service = Recover<S, H>;

    fn layer(&self, inner: S) -> Self::Service {
        Recover { inner, layer: self.clone(), readiness: Ok(()) }
    }
}

/// A service whose final failures are the caller's own; made by [`RecoverLayer`].
pub struct Recover<S, H> {
    inner: S,
    layer: RecoverLayer<H>,
    /// What it came to, for the call that follows.
    readiness: Result<(), Error>,
}

impl<S, H> Recover<S, H> {
    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to be changed in place.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, taken out.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Clone, H: Clone> Clone for Recover<S, H> {
    fn clone(&self) -> Self {
        Recover { inner: self.inner.clone(), layer: self.layer.clone(), readiness: Ok(()) }
    }
}

impl<S: fmt::Debug, H> fmt::Debug for Recover<S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recover").field("inner", &self.inner).field("layer", &self.layer).finish_non_exhaustive()
    }
}

impl<S, H, B, RB, E> Service<Request<B>> for Recover<S, H>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    H: Fn(Failure<RB>) -> Result<Response<RecoverBody<RB>>, E> + Clone,
{
    type Response = Response<RecoverBody<RB>>;
    type Error = E;
    type Future = RecoverFuture<S::Future, H>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        if self.readiness.is_ok() {
            // An answer instead is one to a request, so a failure waits for it.
            self.readiness =
                std::task::ready!(self.inner.poll_ready(cx)).map_err(|error| Error::not_ready(error.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let inner = mem::replace(&mut self.readiness, Ok(())).map(|()| self.inner.call(request));
        RecoverFuture::new(inner, self.layer.handler.clone(), self.layer.which, method, uri)
    }
}
