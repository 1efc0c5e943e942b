//! The layer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Request;
use tower_layer::Layer;

use super::Retry;
#[cfg(feature = "reqwest-middleware")]
use super::guard;
#[cfg(feature = "reqwest-middleware")]
use crate::RequestOptions;
use crate::{Policy, observe, policy::RequestHead};

/// Repeats requests by a [`Policy`](crate::Policy): attempts, waits, timeouts per attempt and in total, budget,
/// replay of bodies, and one report of it all.
///
/// ```
/// use redial::{RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient};
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let client = ServiceBuilder::new()
///     .layer(TimeoutLayer::new().total(Duration::from_secs(60)).body_idle(Duration::from_secs(10)))
///     .layer(RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?))
///     .service(client);
/// # infer(&client);
/// # Ok::<(), redial::PolicyError>(())
/// ```
///
/// # The right order
///
/// From the outside in: what happens **once a call** stands above the retry layer, what happens **once an attempt**
/// stands below it.
///
/// - Above: [`TimeoutLayer`](crate::TimeoutLayer), idempotency keys, decompression, a trace of the call.
/// - Below: signers (each attempt is signed afresh), a trace of each attempt, rate and concurrency limits.
/// - A redirect layer may stand on either side. Above, each hop is a call of its own with its own attempts; below,
///   an attempt follows all its hops, and a failed hop repeats the chain from its start; no error of a later hop is
///   then taken for "never sent", and a body is sent again by [`AttemptBody::try_clone`](crate::AttemptBody::try_clone).
///
/// An attempt ends at its response head. A body that breaks later is the attempt's own below, with
/// [`BufferResponseLayer`](crate::BufferResponseLayer), and continued above, with [`ResumeLayer`](crate::ResumeLayer); the
/// whole stack is shown in [`layers`](crate::layers).
///
/// # The wrong order
///
/// A second `RetryLayer` on the same path would multiply requests (3 x 3 = 9) and does not compile:
///
/// ```compile_fail,E0277
/// # use redial::{RetryLayer, StandardPolicy};
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
/// # fn stack(policy: StandardPolicy) {
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// let client = tower::ServiceBuilder::new()
///     .layer(RetryLayer::new(policy.clone()))
///     .layer(RetryLayer::new(policy)) // two `RetryLayer`s on one path: requests would multiply
///     .service(client);
/// # infer(&client);
/// # }
/// ```
///
/// Where types are erased between the two (a boxed body, a `dyn` middleware), the inner one notices at run time, sends
/// once, applies nothing of its policy, and says so in one WARN; see [`refuse_stacking`](Self::refuse_stacking). It
/// reads a marker in the request's extensions, which these lose, so that requests do multiply below them:
///
/// - a redirect to another origin (tower-http's `FollowRedirectLayer` hands no extensions across);
/// - a client's own inner stack, such as the retries of a `reqwest` client;
/// - any middleware or handler that builds a new request. A handler's request of its own is a path of its own; where
///   it forwards the very request it was given, [`detach`](crate::detach) says that a new path is meant.
///
/// # On whose behalf
///
/// A call never outlasts a [`Deadline`](crate::Deadline) in its request's extensions, nor that of whoever is being served
/// meanwhile ([`OutboundHints`](crate::OutboundHints)), and is sent once while the caller repeats, where that was chosen.
/// Within a [`redial::retry`](fn@crate::retry) it is an attempt of that block, and sent once.
///
/// # What counts as never sent
///
/// A request without evidence is repeated where its error proves that it was never sent. A layer below that looks at
/// the body, be it only to measure it, may have sent it on by itself, so that its errors prove nothing any more: keep
/// such layers above. One that does so in a task of its own is not noticed, and neither is one below a `buffer`, whose
/// worker calls it: a redirect layer there has a `POST` that was answered sent again where its later hop is refused. A
/// buffer belongs below such a layer, not above it.
///
/// # What the inner service must be
///
/// Any `Service<Request<AttemptBody<B>>> + Clone` whose error is `Into<BoxError>` and whose response is a
/// `Response<impl Body>`, for request bodies `B:` [`Replay`](crate::Replay). Nothing is boxed and nothing is spawned;
/// the service and its future are `Send` where the inner ones are. Timers need a tokio runtime with time enabled.
/// Where the inner service's error is itself boxed (as `buffer`'s is), the compiler does not see that
/// `stack.oneshot(request)` may be spawned ("implementation of `From` is not general enough", as with tower's own
/// layers); `stack.ready().await?.call(request)` says the same and compiles.
#[derive(Clone, Debug)]
pub struct RetryLayer<P> {
    policy: P,
    on_stacking: OnStacking,
}

/// What to do on a path that has a retry layer already.
#[derive(Clone, Debug)]
pub(super) enum OnStacking {
    /// Send once and warn, the first time.
    PassOnce {
        warned: Arc<AtomicBool>,
    },
    Refuse,
}

impl<P> RetryLayer<P> {
    /// Repeats requests by this policy.
    pub fn new(policy: P) -> Self {
        RetryLayer { policy, on_stacking: OnStacking::PassOnce { warned: Arc::default() } }
    }

    /// Makes a request that already passed a retry layer an error ([`Error::is_stacked`](crate::Error::is_stacked)).
    /// Default: it is sent once, with one WARN per layer. A call within a [`redial::retry`](fn@crate::retry) is no error:
    /// it is sent once, as is meant there.
    pub fn refuse_stacking(mut self) -> Self {
        self.on_stacking = OnStacking::Refuse;
        self
    }
}

impl OnStacking {
    /// Says that this request was found to be repeated by another layer.
    pub(super) fn notice<P: Policy, B>(&self, policy: &P, request: &Request<B>) {
        if let OnStacking::PassOnce { warned } = self {
            let first = !warned.swap(true, Ordering::Relaxed);
            observe::stacked(first, || policy.plan(&RequestHead::of(request)));
        }
    }
}

#[cfg(feature = "reqwest-middleware")]
impl<P: Policy> RetryLayer<P> {
    /// This request was repeated already, by somebody above who left no mark: it is sent once, but within the policy's
    /// time, which nobody else may keep. Or refused.
    pub(crate) fn not_again<B>(&self, request: &mut Request<B>) {
        if let OnStacking::Refuse = self.on_stacking {
            return guard::mark(request.extensions_mut(), 1);
        }
        self.on_stacking.notice(&self.policy, request);
        let options = request.extensions_mut().remove::<RequestOptions>().unwrap_or_default();
        request.extensions_mut().insert(options.never_retry());
    }
}

impl<S, P: Clone> Layer<S> for RetryLayer<P> {
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(inner, self.policy.clone(), self.on_stacking.clone())
    }
}
