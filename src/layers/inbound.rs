//! What a caller wants, read from its request.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Extensions, HeaderMap, Request};
use tower_layer::Layer;
use tower_service::Service;

use super::hint_header::{HintHeader, Said};
use crate::{Deadline, OutboundHints, Scoped, detach};

/// For servers: reads from a request how long its caller still waits and which of the caller's attempts it is, and hands
/// that to the outgoing calls that are made while it is served ([`OutboundHints`]).
///
/// - They end by the caller's deadline, or earlier: what nobody waits for any more is not asked for.
/// - With [`once_when_caller_retries`](Self::once_when_caller_retries) they are sent once while the caller itself
///   repeats. Two services in a row, three attempts each, then ask the one behind them 3 + 1 + 1 = 5 times, and not
///   3 x 3 = 9.
///
/// For any `Service<Request<_>>`: axum's, hyper's, tonic's. It answers nothing by itself and fails nothing; what is
/// malformed is no hint. Callers are not believed more than they may be: all that they can do is to shorten the time and
/// the attempts that are spent on their own request.
///
/// It also begins a new path: a marker that a retry layer of this process left in the request is removed, as by
/// [`detach`].
///
/// # What is read
///
/// By default all of [`HintHeader`], whose table names the sources; [`headers`](Self::headers) chooses others. Of several
/// that say something, the shortest time and the highest attempt hold, beside a [`Deadline`] and an [`OutboundHints`]
/// already in the request's extensions. Who calls through redial writes them with an
/// [`OutboundHeadersLayer`](super::OutboundHeadersLayer); nothing is written by itself.
///
/// # How the outgoing calls find it
///
/// By themselves, in the task that serves the request. In its extensions there is also an [`OutboundHints`], to be
/// copied to an outgoing request or carried into a spawned task, which the first way does not reach; that page says how.
/// [`by_hand`](Self::by_hand) leaves it at the second way.
///
/// ```
/// use http::{Request, Response};
/// use redial::{OutboundHints, layers::InboundLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ServiceBuilder::new()
///     .layer(InboundLayer::new().once_when_caller_retries())
///     .service_fn(|_: Request<()>| async {
///         let hints = OutboundHints::current();
///         assert_eq!(hints.caller_attempt(), Some(2));
///         assert!(hints.sends_once() && hints.deadline().is_some());
///         Ok::<_, std::convert::Infallible>(Response::new(()))
///     });
/// let request = Request::get("/").header("x-envoy-attempt-count", "2").header("grpc-timeout", "250m").body(())?;
/// server.oneshot(request).await?;
/// # Ok(()) }
/// ```
///
/// # The right order
///
/// Around all that makes calls: what stands above it does not know of it.
///
/// ```
/// # use redial::layers::InboundLayer;
/// # fn stack<S>(tracing: tower::layer::util::Identity, handler: S) -> impl Sized {
/// tower::ServiceBuilder::new()
///     .layer(tracing)
///     .layer(InboundLayer::new()) // a server's: around the handler, which makes the calls
///     .service(handler)
/// # }
/// ```
///
/// # The wrong order
///
/// Above a `buffer` it compiles and reaches nothing by itself, since what stands below runs in a task of its own. In a
/// client's stack it is useless: it reads what *this* process is about to send.
///
/// ```no_run
/// # use redial::layers::InboundLayer;
/// # use http::Request;
/// # fn stack<S>(handler: S) -> impl Sized
/// # where S: tower::Service<Request<()>, Future: Send, Error: Into<redial::BoxError> + Send + Sync> + Send + 'static {
/// tower::ServiceBuilder::new()
///     .layer(InboundLayer::new()) // above the buffer: the handler does not find it
///     .buffer(16)
///     .service(handler)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InboundLayer {
    settings: Arc<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    headers: Vec<HintHeader>,
    once: bool,
    ambient: bool,
}

impl InboundLayer {
    /// Reads all of [`HintHeader`]. Outgoing calls inherit the deadline, and are repeated as their policies say.
    pub fn new() -> Self {
        let settings = Settings { headers: HintHeader::ALL.to_vec(), once: false, ambient: true };
        InboundLayer { settings: Arc::new(settings) }
    }

    /// Reads these headers and no others. With none, the request's extensions alone count.
    pub fn headers(mut self, headers: impl IntoIterator<Item = HintHeader>) -> Self {
        Arc::make_mut(&mut self.settings).headers = headers.into_iter().collect();
        self
    }

    /// Outgoing calls are sent once while the caller's attempt is a repeat. Default: as their policies say.
    ///
    /// For callers that do repeat: what fails within their last attempt, nobody repeats.
    pub fn once_when_caller_retries(mut self) -> Self {
        Arc::make_mut(&mut self.settings).once = true;
        self
    }

    /// Outgoing calls find the hints only in their own extensions, where the handler put them. Default: also by
    /// themselves, in the task that serves the request.
    pub fn by_hand(mut self) -> Self {
        Arc::make_mut(&mut self.settings).ambient = false;
        self
    }
}

impl Default for InboundLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for InboundLayer {
    type Service = Inbound<S>;

    fn layer(&self, inner: S) -> Inbound<S> {
        Inbound { inner, settings: Arc::clone(&self.settings) }
    }
}

/// A service that knows what its callers want; made by [`InboundLayer`].
#[derive(Clone, Debug)]
pub struct Inbound<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S, B> Service<Request<B>> for Inbound<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Scoped<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let hints = self.settings.read(request.headers(), request.extensions());
        detach(request.extensions_mut());
        request.extensions_mut().insert(hints);
        // What is around this server holds in any case.
        let ambient = if self.settings.ambient { hints } else { OutboundHints::current().new_path() };
        // A handler may make its calls before it is polled.
        let future = {
            let _restore = ambient.enter();
            self.inner.call(request)
        };
        Scoped::new_path(ambient, future)
    }
}

impl Settings {
    fn read(&self, headers: &HeaderMap, extensions: &Extensions) -> OutboundHints {
        let said = || self.headers.iter().flat_map(|header| header.read(headers));
        let left: Option<Duration> =
            said().filter_map(|said| if let Said::Left(left) = said { Some(left) } else { None }).min();
        let attempt =
            said().filter_map(|said| if let Said::Attempt(attempt) = said { Some(attempt) } else { None }).max();
        // In process, and by whoever stands above.
        let known = OutboundHints::of(extensions).new_path();
        let mut hints =
            OutboundHints::new().with_caller_attempt(attempt.max(known.caller_attempt()).unwrap_or_default());
        for deadline in [left.map(Deadline::after), extensions.get().copied(), known.deadline()].into_iter().flatten() {
            hints = hints.with_deadline(deadline);
        }
        if self.once || known.asks_once() { hints.once_when_caller_retries() } else { hints }
    }
}
