//! A broken download goes on where it broke.

mod asking;
mod body;
mod download;
mod future;
mod given_up;
mod range;
mod request;

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    BoxError,
    policy::{Backoff, PolicyError},
};

pub use body::ResumeBody;
pub use future::ResumeFuture;
pub use given_up::NotResumed;

use request::Asked;

/// Continues a broken download: asks for what is left of it by `Range`, if the content is still the same, and hands it
/// on as if nothing had happened.
///
/// A [`RetryLayer`](crate::RetryLayer) is done when it hands a response on; its body breaks later. To begin anew would
/// hand the caller the same bytes twice. This layer, above, asks for the rest (RFC 9110, section 14): `Range` from the
/// first missing byte, `If-Range` with the `ETag` of what has come. Each such request is a call of its own, with its
/// attempts, timeouts and budget.
///
/// ```
/// use redial::{ResumeLayer, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient};
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let client = ServiceBuilder::new()
///     .layer(TimeoutLayer::new().total(Duration::from_secs(600)))
///     .layer(ResumeLayer::new().resumes(8))
///     .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)))
///     .layer(RetryLayer::new(StandardPolicy::new("files", timeouts, Transient::usual())?))
///     .service(client);
/// # infer(&client);
/// # Ok::<(), redial::PolicyError>(())
/// ```
///
/// # What is resumed
///
/// The answer to a `GET` without a body, `200`, or `206` to a range that the caller asked for, if
///
/// - it has a **strong** `ETag`: two answers with the same one are the same, byte for byte (RFC 9110, section 8.8.3). A
///   weak one (`W/"…"`) promises no such thing, and dates are not looked at;
/// - its length is known, from `Content-Length`, which for a `206` must be that of its `Content-Range`;
/// - its content is not encoded (`Content-Encoding`): most servers encode on the fly, never twice alike;
/// - it is not `multipart/byteranges`.
///
/// Everything else passes through untouched, `HEAD` and every other method too, and fails as it does without this layer.
///
/// What the body broke of must be known to pass: a reset, a closed connection, a silence that a
/// [`TimeoutLayer`](crate::TimeoutLayer) **below** noticed. That the time of the whole call is over is final, and so is
/// what nobody knows.
///
/// # What the rest must be
///
/// A `206` for exactly the range asked for, of the same total length, with the same `ETag`. Whatever else comes is not
/// spliced to what the caller has: above all a `200`, by which a server says that the content has changed (or that it
/// knows no ranges). Nor is it asked for once more: the retry layer below has repeated what may be repeated. The body then
/// ends with the error that had broken it; [`NotResumed`] in its source chain says how many resumes were tried, and why
/// there was not another.
///
/// # How often
///
/// [`resumes`](Self::resumes) in all, 5 by default. Before each there is a wait ([`backoff`](Self::backoff)): clients
/// that one server lost at the same moment must not come back at the same moment. It begins anew whenever something has
/// come since the last break, and grows where nothing has. A [`Deadline`](crate::Deadline) in the request's extensions
/// bounds all of it, and so does that of whoever is being served ([`OutboundHints`](crate::OutboundHints)). A resume is no
/// repeat: [`RequestOptions::never_retry`](crate::RequestOptions::never_retry) does not forbid it. Dropping the body ends it at any point; nothing is spawned.
///
/// # The right order
///
/// Outside the retry layer and outside the `TimeoutLayer` that notices a silence; inside the one that bounds the whole.
///
/// # The wrong order
///
/// - Inside the retry layer: the resumed requests are sent once each, past the policy and its budget.
/// - Inside a `TimeoutLayer` with `head`: what that bounds is the wait for the first head, and its deadline ends the
///   resumes too. With `body_idle` it also takes the waits between resumes for silence.
/// - Outside decompression: the length is not known there, and nothing is resumed.
///
/// # What the inner service must be
///
/// `Clone`, as every client is: the body keeps a clone for what it may have to ask. The request's body type has to be
/// `Default` (those of this crate's clients are), for the empty body of a resumed request. Kept is a copy of the
/// request's head, extensions included.
#[derive(Clone, Debug)]
pub struct ResumeLayer {
    settings: Arc<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    resumes: u32,
    backoff: Backoff,
}

impl ResumeLayer {
    /// At most 5 resumes, with the waits of [`Backoff::default`].
    pub fn new() -> Self {
        ResumeLayer { settings: Arc::new(Settings { resumes: 5, backoff: Backoff::default() }) }
    }

    /// How often one download is resumed at the most. Default: 5. With 0 it is never.
    pub fn resumes(self, resumes: u32) -> Self {
        ResumeLayer { settings: Arc::new(Settings { resumes, backoff: self.settings.backoff.clone() }) }
    }

    /// The waits before resumes. Default: [`Backoff::default`].
    ///
    /// # Errors
    ///
    /// [`PolicyError`], naming every rule that this backoff breaks: a floor of zero, no maximum, no jitter without a
    /// reason.
    pub fn backoff(self, backoff: Backoff) -> Result<Self, PolicyError> {
        PolicyError::check_backoff("resume", &backoff)?;
        Ok(ResumeLayer { settings: Arc::new(Settings { resumes: self.settings.resumes, backoff }) })
    }
}

impl Default for ResumeLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for ResumeLayer {
    type Service = Resume<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Resume { inner, settings: Arc::clone(&self.settings) }
    }
}

/// A service whose downloads go on when they break; made by [`ResumeLayer`].
#[derive(Clone, Debug)]
pub struct Resume<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> Resume<S> {
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

impl<S, B, RB> Service<Request<B>> for Resume<S>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body + Default,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Response = Response<ResumeBody<S, B, RB>>;
    type Error = S::Error;
    type Future = ResumeFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (asked, request) = Asked::keep(request);
        // The instance that was made ready is the one that is called, and the one that is asked again.
        let clone = self.inner.clone();
        let mut service = mem::replace(&mut self.inner, clone);
        let response = service.call(request);
        let again = asked.map(|asked| (service, asked, Arc::clone(&self.settings)));
        ResumeFuture::new(response, again)
    }
}
