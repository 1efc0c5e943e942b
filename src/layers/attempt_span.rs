//! One span an attempt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Method, Request, Response, StatusCode, Uri};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tracing::{Span, field};

use crate::{BoxError, Fault, redact::Target, retry::attempt_number};

/// Opens one span for each attempt, with the fields of OpenTelemetry's conventions for HTTP client spans.
///
/// They ask for a span **each time a request is sent**, with `http.request.resend_count` from the second on, and that
/// is what stands between a [`RetryLayer`](crate::RetryLayer) and the client. A span around the whole call is another
/// layer's, above (tower-http's `TraceLayer`, or one of your own): the attempts are its children.
///
/// | field | value |
/// | --- | --- |
/// | `otel.name`, `http.request.method` | the method; one that is not registered is `HTTP` and `_OTHER`, and stands in `http.request.method_original` |
/// | `otel.kind` | `client` |
/// | `server.address`, `server.port` | of the target; the port of its scheme where it names none |
/// | `url.full` | without userinfo and query, which may hold secrets |
/// | `http.request.resend_count` | 1 for the second attempt; absent on the first |
/// | `http.response.status_code` | of the answer, where there is one |
/// | `error.type`, `otel.status_code` | a status from 400 on, or what failed ([`FaultKind`](crate::FaultKind)); `dropped` where the attempt's timeout or the caller ended it |
///
/// The span, at level INFO and under the target `redial`, ends with the response's head, as an attempt does. The inner
/// service is called and polled inside it, so that a layer below finds it as `Span::current()`: there a propagator
/// writes this attempt's `traceparent`. See the example `attempt_spans`.
///
/// Source: OpenTelemetry, "Semantic conventions for HTTP spans": "HTTP client span", "HTTP request retries and redirects".
///
/// # The right order
///
/// ```
/// # use redial::{RetryLayer, StandardPolicy, layers::AttemptSpanLayer};
/// # fn stack<S>(policy: StandardPolicy, client: S) -> impl Sized {
/// tower::ServiceBuilder::new()
///     .layer(RetryLayer::new(policy))
///     .layer(AttemptSpanLayer::new()) // below: one span an attempt, each with its number
///     // A `BufferResponseLayer` goes below: the body that it reads is then within the span.
///     .service(client)
/// # }
/// ```
///
/// # The wrong order
///
/// Above the retry layer it compiles, and there is one span for the whole call: three attempts look like one slow
/// request, and no span says that the server answered 503 twice.
///
/// ```no_run
/// # use redial::{RetryLayer, StandardPolicy, layers::AttemptSpanLayer};
/// # fn stack<S>(policy: StandardPolicy, client: S) -> impl Sized {
/// tower::ServiceBuilder::new()
///     .layer(AttemptSpanLayer::new()) // above: not an attempt's span
///     .layer(RetryLayer::new(policy))
///     .service(client)
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptSpanLayer(());

impl AttemptSpanLayer {
    /// One span an attempt.
    pub const fn new() -> Self {
        AttemptSpanLayer(())
    }
}

impl<S> Layer<S> for AttemptSpanLayer {
    type Service = AttemptSpan<S>;

    fn layer(&self, inner: S) -> AttemptSpan<S> {
        AttemptSpan { inner }
    }
}

/// A service that opens a span for each request; made by [`AttemptSpanLayer`].
#[derive(Clone, Copy, Debug)]
pub struct AttemptSpan<S> {
    inner: S,
}

impl<S, B, RB> Service<Request<B>> for AttemptSpan<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = BoxError;
    type Future = AttemptSpanFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let span = Ended { span: open(&request), known: false };
        let response = span.span.in_scope(|| self.inner.call(request));
        AttemptSpanFuture { response, span }
    }
}

fn open<B>(request: &Request<B>) -> Span {
    let (name, method, original) = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH" | "QUERY") => {
            (known, known, None)
        }
        // Anything can stand here, and a span's name is to be one of few.
        other => ("HTTP", "_OTHER", Some(other)),
    };
    let uri = request.uri();
    // Signed: bridges to OpenTelemetry make a text of an unsigned number.
    let resent = attempt_number(request.extensions()).map(|number| i64::from(number) - 1).filter(|resent| *resent > 0);
    tracing::info_span!(
        target: "redial",
        "attempt",
        otel.name = name,
        otel.kind = "client",
        http.request.method = method,
        http.request.method_original = original,
        // The brackets around an address of IPv6 are the URL's.
        server.address = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']')),
        server.port = port(request.method(), uri).map(i64::from),
        url.full = %Target(uri),
        http.request.resend_count = resent,
        http.response.status_code = field::Empty,
        error.r#type = field::Empty,
        otel.status_code = field::Empty,
    )
}

fn port(method: &Method, uri: &Uri) -> Option<u16> {
    uri.port_u16().or(match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        None if method == Method::CONNECT => Some(443),
        _ => None,
    })
}

/// A span whose end is told: one that is dropped before says so too.
#[derive(Debug)]
struct Ended {
    span: Span,
    known: bool,
}

impl Ended {
    fn answered(&mut self, status: StatusCode) {
        self.known = true;
        self.span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_client_error() || status.is_server_error() {
            self.failed(status.as_str());
        }
    }

    fn failed(&mut self, kind: &str) {
        self.known = true;
        self.span.record("error.type", kind);
        self.span.record("otel.status_code", "ERROR");
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if !self.known {
            self.failed("dropped");
        }
    }
}

pin_project! {
    /// The future of [`AttemptSpan`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct AttemptSpanFuture<F> {
        #[pin]
        response: F,
        span: Ended,
    }
}

impl<F, RB, E> Future for AttemptSpanFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RB>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = {
            let _inside = this.span.span.enter();
            ready!(this.response.poll(cx)).map_err(Into::into)
        };
        match &result {
            Ok(response) => this.span.answered(response.status()),
            Err(error) => this.span.failed(Fault::read(&**error).kind().as_str()),
        }
        Poll::Ready(result)
    }
}
