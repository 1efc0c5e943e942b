//! Which request it is: a key, by which a server knows a repeat.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};

use http::{HeaderName, HeaderValue, Request};
use tower_layer::Layer;
use tower_service::Service;
use uuid::{NoContext, Timestamp, Uuid};

use crate::{
    OutboundHints, attempt_number,
    policy::{Evidence, RequestHead, RequestOptions},
};

type NeedsKey = dyn Fn(&RequestHead<'_>) -> bool + Send + Sync;

/// Gives a request that needs evidence and has none an idempotency key: a random one, made once a call, so that every
/// attempt carries the same bytes and a server that knows keys lets the call take effect once.
///
/// The header is `Idempotency-Key` and the value a string of structured fields, `"01942b…"` with its quotes, as the
/// IETF's draft has it ([draft-ietf-httpapi-idempotency-key-header-07]); for vendors that want another,
/// [`header`](Self::header) and [`raw`](Self::raw). The key itself is a UUID of version 7 (RFC 9562, section 5.7): its
/// first half is the time, which is good for a server's index and tells it when the key was made.
///
/// **A key is evidence only at a server that honours it.** Where a provider documents none, a key in the header makes
/// the policy repeat what the server then does twice. Put this layer onto the paths of providers that do.
///
/// ```
/// use redial::{IdempotencyKeyLayer, RetryLayer, StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// # use http_body_util::Full;
/// # use bytes::Bytes;
/// # let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
/// # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let client = ServiceBuilder::new()
///     .layer(IdempotencyKeyLayer::new())
///     .layer(RetryLayer::new(StandardPolicy::new("payments", timeouts, Transient::usual())?))
///     .service(client);
/// # infer(&client);
/// # Ok::<(), redial::PolicyError>(())
/// ```
///
/// # Which requests
///
/// By default, those whose method is not idempotent (`POST`, `PATCH`, and methods that RFC 9110 does not know), unless
/// [`RequestOptions::idempotent`] says why a repeat is safe; never `CONNECT` or an upgrade. [`when`](Self::when)
/// decides otherwise. A key that is there is never replaced, whatever its form; a blank header is no key, neither here
/// nor for [`Evidence::Key`].
///
/// A key is no credential, and what people look for in logs when they ask what became of a request: its header is not
/// marked sensitive.
///
/// # What the server answers
///
/// By the draft: 400 for a key that is missing or cannot be read, 422 for one that was used for another request, both
/// permanent under a standard policy, which lists neither; and 409 while the first request with this key is still being
/// processed. Only the provider's contract says that of its 409: name it with
/// [`Transient::status_because`](crate::Transient::status_because).
///
/// # The right order
///
/// Outside the retry layer: a key per call. Inside a [`ResumeLayer`](crate::ResumeLayer) or outside is the same, as a
/// `GET` has none.
///
/// # The wrong order
///
/// Inside the retry layer a key would be one per attempt: to the server each would be a new request, while the policy
/// never saw one. So the layer does nothing there: a `POST` is sent once, and its report says `no-evidence`.
///
/// Within a block of code ([`redial::retry`](fn@crate::retry)), whose attempts are the block's, it does nothing either: a
/// key per attempt would be three keys for one piece of work. There, make the key **before** the block, with
/// [`key`](Self::key), and put it into the request of each attempt; that is the reason that `idempotent` asks for.
///
/// # Calls that outlive the process
///
/// A key that has to be known before and after the call (a job stores it, and looks later what became of it) is the
/// caller's: make it with [`key`](Self::key), store it, put it into the request. This layer then leaves it there.
///
/// [draft-ietf-httpapi-idempotency-key-header-07]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07
#[derive(Clone)]
pub struct IdempotencyKeyLayer {
    header: HeaderName,
    form: Form,
    needs_key: Option<Arc<NeedsKey>>,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// RFC 9651, section 3.3.3: in quotes.
    SfString,
    Raw,
}

impl IdempotencyKeyLayer {
    /// Keys by the IETF's draft, in the header `Idempotency-Key`.
    pub fn new() -> Self {
        IdempotencyKeyLayer {
            header: HeaderName::from_static("idempotency-key"),
            form: Form::SfString,
            needs_key: None,
        }
    }

    /// Another header, such as `x-request-id`. The policy has to know it as well:
    /// [`key_header`](crate::policy::StandardPolicyBuilder::key_header).
    pub fn header(mut self, name: HeaderName) -> Self {
        self.header = name;
        self
    }

    /// The bare UUID, without quotes: what vendors took before there was a draft, and many still do. Their
    /// documentation says which.
    pub fn raw(mut self) -> Self {
        self.form = Form::Raw;
        self
    }

    /// Which requests are given a key, instead of the default: those of a provider's operation that honours keys, say,
    /// or a `DELETE` whose repeat is not safe.
    pub fn when(mut self, needs_key: impl Fn(&RequestHead<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.needs_key = Some(Arc::new(needs_key));
        self
    }

    /// A new key in this layer's form, for a caller who has to know it.
    pub fn key(&self) -> HeaderValue {
        // Not `now_v7`, which panics on a clock before 1970.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let uuid = Uuid::new_v7(Timestamp::from_unix(NoContext, now.as_secs(), now.subsec_nanos()));
        let text = match self.form {
            Form::SfString => format!("\"{uuid}\""),
            Form::Raw => uuid.to_string(),
        };
        // Quotes, hexadecimal digits and hyphens may always stand in a header.
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from(uuid.as_u64_pair().1))
    }

    fn needs_key<B>(&self, request: &Request<B>) -> bool {
        // An attempt of a retry layer's, or of a block's: each would have another.
        if attempt_number(request.extensions()).is_some() || OutboundHints::of(request.extensions()).block().is_some() {
            return false;
        }
        let mut keys = request.headers().get_all(&self.header).iter();
        if keys.any(|key| !key.as_bytes().trim_ascii().is_empty()) {
            return false;
        }
        let head = RequestHead::of(request);
        self.needs_key.as_ref().map_or_else(|| has_no_evidence(&head), |needs_key| needs_key(&head))
    }
}

impl Default for IdempotencyKeyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for IdempotencyKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("IdempotencyKeyLayer");
        out.field("header", &self.header).field("form", &self.form).finish_non_exhaustive()
    }
}

/// As far as a request says by itself. What a policy states of an operation is not known here: a key does no harm
/// there.
fn has_no_evidence(head: &RequestHead<'_>) -> bool {
    let stated = head.extensions().get::<RequestOptions>().is_some_and(RequestOptions::states_idempotency);
    !head.is_upgrade() && !stated && !Evidence::by_method(head.method())
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = IdempotencyKey<S>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyKey { inner, layer: self.clone() }
    }
}

/// A service whose requests have keys; made by [`IdempotencyKeyLayer`].
#[derive(Clone, Debug)]
pub struct IdempotencyKey<S> {
    inner: S,
    layer: IdempotencyKeyLayer,
}

impl<S> IdempotencyKey<S> {
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

impl<S, B> Service<Request<B>> for IdempotencyKey<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if self.layer.needs_key(&request) {
            request.headers_mut().insert(&self.layer.header, self.layer.key());
        }
        self.inner.call(request)
    }
}
