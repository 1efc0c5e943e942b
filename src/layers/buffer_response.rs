//! The response body as part of the attempt.

mod body;
mod future;

use std::task::{Context, Poll};

use http::{Method, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::{BoxError, Error};

pub use body::BufferedBody;
pub use future::BufferResponseFuture;

/// Reads the response body before it hands the response on: below a retry layer, a body that breaks or stalls is then a
/// failed attempt, and repeated like any other.
///
/// A retry layer alone ends an attempt at the response head, since a body may be endless; what breaks afterwards is the
/// caller's. With this layer the attempt ends with the body, and its timeout
/// ([`Timeouts::attempt`](crate::Timeouts)) covers it.
///
/// ```
/// use redial::{BufferResponseLayer, RetryLayer, StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?))
///     .layer(BufferResponseLayer::new(256 * 1024))
///     .service(client);
/// # infer(&client);
/// # Ok::<(), redial::PolicyError>(())
/// ```
///
/// # What is buffered
///
/// The body of a success (2xx) that is no longer than the limit. Handed on as they come are:
///
/// - a body of which the head says that it is longer: it is not begun to be read;
/// - a body that turns out to be longer: what was read is handed out first, then the rest as it comes, and what breaks
///   there is the caller's as without this layer;
/// - an answer of any other status, and one with `Retry-After`: its head is its message, which must not be lost because
///   its body breaks. A 503 that says when to come back stays one;
/// - a stream of events (`text/event-stream`, `multipart/x-mixed-replace`): it has no end to wait for. Neither has an
///   endless answer of another type, and of that nobody can know: it is cut off by the attempt's timeout, and repeated.
///   Keep this layer off such paths;
/// - an upgrade (101, or the answer to `CONNECT`).
///
/// Frames, trailers and size are those of the response. Memory: per response at most the limit, and the one frame that
/// crosses it; a frame counts as 64 bytes at least.
///
/// # What a broken body means
///
/// The fault is what broke it: `reset`, `closed`, `timeout` and so on, as of an attempt without an answer. Since the
/// head had arrived, the request was processed and nothing proves otherwise: a `GET` is repeated, a `POST` only with
/// evidence, which its server's idempotency key can be.
///
/// # The right order
///
/// Inside the retry layer, with nothing between but an
/// [`AttemptSpanLayer`](crate::layers::AttemptSpanLayer), whose span then covers the body, and outside what transforms bodies (decompression below it counts and limits the
/// decompressed ones).
///
/// # The wrong order
///
/// Outside the retry layer the body breaks after the last attempt is over: its error is the call's end, nothing is
/// repeated, and the caller has waited for a whole body that could have streamed. Below a
/// [`ResumeLayer`](crate::ResumeLayer) it is right: small answers are repeated, long downloads stream and are resumed.
#[derive(Clone, Copy, Debug)]
pub struct BufferResponseLayer {
    limit: usize,
}

impl BufferResponseLayer {
    /// Buffers bodies of up to so many bytes.
    pub const fn new(limit: usize) -> Self {
        BufferResponseLayer { limit }
    }
}

impl<S> Layer<S> for BufferResponseLayer {
    type Service = BufferResponse<S>;

    fn layer(&self, inner: S) -> Self::Service {
        BufferResponse { inner, limit: self.limit }
    }
}

/// A service whose responses are read before they are handed on; made by [`BufferResponseLayer`].
#[derive(Clone, Debug)]
pub struct BufferResponse<S> {
    inner: S,
    limit: usize,
}

impl<S> BufferResponse<S> {
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

impl<S, B, RB> Service<Request<B>> for BufferResponse<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    // It is read before it is moved into its response.
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Response = Response<BufferedBody<RB>>;
    type Error = Error;
    type Future = BufferResponseFuture<S::Future, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(|error| Error::not_ready(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let limit = if request.method() == Method::CONNECT { None } else { Some(self.limit) };
        BufferResponseFuture::new(self.inner.call(request), limit)
    }
}
