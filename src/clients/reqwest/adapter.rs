//! The adapter: a reqwest client as a tower service of `http`'s types, to stand under a retry layer.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    bodies::{Asked, ResponseBody, Upload, incoming},
    original::Original,
};
use crate::{AttemptBody, Replay};

/// A [`reqwest::Client`] as the innermost service of a stack that has a [`RetryLayer`](crate::RetryLayer).
///
/// It takes `http::Request` with any body in chunks of `Bytes`, among them reqwest's own, and gives back an
/// `http::Response`, which [`into_response`](super::into_response) makes reqwest's again. Version and extensions go
/// along, and with them reqwest's timeout for this request.
///
/// ```
/// use redial::{RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient, reqwest::Adapter};
/// use std::time::Duration;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// async fn call(policy: StandardPolicy) -> Result<http::StatusCode, Box<dyn std::error::Error>> {
///     let client = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
///     let stack = ServiceBuilder::new()
///         .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)))
///         .layer(RetryLayer::new(policy))
///         .service(Adapter::new(client));
///     let request = http::Request::get("https://orders.example/42").body(reqwest::Body::default())?;
///     Ok(stack.oneshot(request).await?.status())
/// }
/// ```
///
/// Wrong is a second `RetryLayer`, which does not compile:
///
/// ```compile_fail,E0277
/// # use redial::{RetryLayer, StandardPolicy, reqwest::Adapter};
/// # fn infer<S: tower::Service<http::Request<reqwest::Body>>>(_: &S) {}
/// # fn stack(policy: StandardPolicy, client: reqwest::Client) {
/// let stack = tower::ServiceBuilder::new()
///     .layer(RetryLayer::new(policy.clone()))
///     .layer(RetryLayer::new(policy)) // two `RetryLayer`s on one path: requests would multiply
///     .service(Adapter::new(client));
/// # infer(&stack);
/// # }
/// ```
///
/// What there is to say of bodies, proofs and reqwest's own retries is on the page of [the module](super).
#[derive(Clone)]
pub struct Adapter {
    client: reqwest::Client,
    alone: bool,
    /// The request that this instance is for, where it was reqwest's to begin with.
    original: Option<Arc<Original>>,
}

impl Adapter {
    /// Sends by this client. Build it with `.retry(reqwest::retry::never())`: nothing of reqwest's own retries is left
    /// under this adapter, and its configuration should say so.
    pub const fn new(client: reqwest::Client) -> Self {
        Adapter { client, alone: false, original: None }
    }

    /// States that an attempt is one request: the client was built with `redirect::Policy::none()`. Then what HTTP/2
    /// says of a refused stream is said of the attempt itself, and proves that it was never processed. Default: it may
    /// be said of a later hop, and proves nothing.
    pub const fn one_request_per_attempt(mut self) -> Self {
        self.alone = true;
        self
    }

    /// For the attempts of this one request.
    pub(super) fn sends(&mut self, original: Original) {
        self.original = Some(Arc::new(original));
    }

    /// The client.
    pub const fn client(&self) -> &reqwest::Client {
        &self.client
    }
}

impl fmt::Debug for Adapter {
    // The client's default headers may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("one_request_per_attempt", &self.alone).finish_non_exhaustive()
    }
}

impl<B> Service<Request<AttemptBody<B>>> for Adapter
where
    B: Replay<Data = Bytes> + Send + Sync + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = reqwest::Error;
    type Future = AdapterFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), reqwest::Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: Request<AttemptBody<B>>) -> AdapterFuture {
        let request = match &self.original {
            Some(original) => Ok(original.attempt(request, self.alone)),
            None => outgoing(request, self.alone),
        };
        match request {
            Ok(request) => {
                let asked = (!self.alone).then(|| Asked::of(request.url()));
                AdapterFuture { state: State::Sent { pending: self.client.call(request), asked } }
            }
            Err(error) => AdapterFuture { state: State::Refused { error: Some(error) } },
        }
    }
}

type Pending = <reqwest::Client as Service<reqwest::Request>>::Future;

pin_project! {
    /// One request of an [`Adapter`].
    #[must_use = "futures do nothing unless polled"]
    pub struct AdapterFuture {
        #[pin]
        state: State,
    }
}

pin_project! {
    #[project = StateProj]
    enum State {
        // Whom, where a redirect may lead to somebody else.
        Sent { #[pin] pending: Pending, asked: Option<Asked> },
        Refused { error: Option<reqwest::Error> },
    }
}

impl fmt::Debug for AdapterFuture {
    // reqwest's shows the whole URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdapterFuture").finish_non_exhaustive()
    }
}

impl Future for AdapterFuture {
    type Output = Result<Response<ResponseBody>, reqwest::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProj::Sent { pending, asked } => {
                let result = ready!(pending.poll(cx)).map_err(without_secrets);
                result.map(|response| incoming(response, asked.as_ref()))
            }
            StateProj::Refused { error } => match error.take() {
                Some(error) => Err(without_secrets(error)),
                None => return Poll::Pending,
            },
        })
    }
}

/// An attempt as reqwest sends it, of which nothing is known but what `http`'s request says.
fn outgoing<B>(request: Request<AttemptBody<B>>, alone: bool) -> Result<reqwest::Request, reqwest::Error>
where
    B: Replay<Data = Bytes> + Send + Sync + Unpin + 'static,
{
    reqwest::Request::try_from(request.map(|body| Upload::wrap(body, alone)))
}

/// The same error, without what its URL may hold of secrets (reqwest's advice in `Error::url_mut`).
pub(in crate::clients) fn without_secrets(mut error: reqwest::Error) -> reqwest::Error {
    if let Some(url) = error.url_mut() {
        url.set_query(None);
        url.set_fragment(None);
        // Only a URL without a host refuses, which has no userinfo either.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    error
}
