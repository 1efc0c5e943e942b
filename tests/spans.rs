//! One span an attempt, by OpenTelemetry's conventions.

#[path = "common/capture.rs"]
mod capture;
#[path = "common/policies.rs"]
mod policies;
#[path = "common/script.rs"]
mod script;

use capture::{Capture, Said};
use http::{Method, Request};
use http_body_util::Full;
use policies::policy;
use redial::{RetryLayer, layers::AttemptSpanLayer};
use script::{Failure, Script, Step, fail, hang, ms, request, status};
use tokio::time::timeout;
use tower::{Layer, ServiceBuilder, ServiceExt};

/// The spans of one call, each with what was recorded later: they do not overlap.
async fn spans(request: Request<Full<bytes::Bytes>>, steps: impl IntoIterator<Item = Step>) -> Vec<Said> {
    let (capture, _guard) = Capture::start();
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(AttemptSpanLayer::new());
    let _ = timeout(ms(2_500), stack.service(Script::new(steps)).oneshot(request)).await;
    let mut spans: Vec<Said> = Vec::new();
    for said in capture.all() {
        match &*said.target {
            "redial" if said.fields.contains_key("span") => spans.push(said),
            "recorded later" => spans.last_mut().expect("a span").fields.extend(said.fields),
            _ => {}
        }
    }
    spans
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_its_number_and_its_end() {
    let spans = spans(request(Method::GET), [status(503), fail(Failure::Reset), status(200)]).await;
    assert_eq!(spans.len(), 3);
    for span in &spans {
        assert_eq!((span.get("span"), span.get("otel.name"), span.get("otel.kind")), ("attempt", "GET", "client"));
        assert_eq!((span.get("server.address"), span.get("server.port")), ("api.example", "80"));
        assert_eq!((span.get("http.request.method"), span.get("url.full")), ("GET", "http://api.example/orders"));
    }
    let [first, second, third] = &spans[..] else { panic!("{spans:?}") };
    assert!(!first.fields.contains_key("http.request.resend_count"));
    assert_eq!((first.get("http.response.status_code"), first.get("error.type")), ("503", "503"));
    assert_eq!((second.get("http.request.resend_count"), second.get("error.type")), ("1", "reset"));
    assert!(!second.fields.contains_key("http.response.status_code"));
    assert_eq!((third.get("http.request.resend_count"), third.get("http.response.status_code")), ("2", "200"));
    assert_eq!([first, second].map(|span| span.get("otel.status_code")), ["ERROR"; 2]);
    assert!(!third.fields.contains_key("error.type") && !third.fields.contains_key("otel.status_code"));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cut_off_says_so() {
    // Two are cut by the attempt's timeout of a second, the third by the caller.
    let spans = spans(request(Method::GET), [hang(), hang(), hang()]).await;
    assert_eq!(spans.iter().map(|span| span.get("error.type")).collect::<Vec<_>>(), ["dropped"; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_writes_neither_leaks_nor_makes_names() {
    let request = Request::builder()
        .method("UNKNOWN-METHOD")
        .uri("https://user:word@api.example:8443/a?token=hidden")
        .body(Full::default())
        .unwrap();
    let spans = spans(request, [status(404)]).await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((span.get("otel.name"), span.get("http.request.method")), ("HTTP", "_OTHER"));
    assert_eq!((span.get("url.full"), span.get("server.port")), ("https://api.example:8443/a", "8443"));
    assert_eq!((span.get("error.type"), span.get("otel.status_code")), ("404", "ERROR"));
    // By the conventions, beside `_OTHER`.
    assert_eq!(span.get("http.request.method_original"), "UNKNOWN-METHOD");
    let all = format!("{span:?}");
    assert!(["word", "hidden"].into_iter().all(|secret| !all.contains(secret)), "{all}");
}

/// A propagator below writes the span's own context: it has to be the current one there, on call and on poll.
#[tokio::test(start_paused = true)]
async fn the_inner_service_is_called_within_the_span() {
    let (_capture, _guard) = Capture::start();
    let name = || tracing::Span::current().metadata().map(|span| span.name());
    let inner = tower::service_fn(move |_: Request<Full<bytes::Bytes>>| {
        assert_eq!(name(), Some("attempt"));
        async move {
            tokio::time::sleep(ms(5)).await;
            assert_eq!(name(), Some("attempt"));
            Ok::<_, std::convert::Infallible>(http::Response::new(()))
        }
    });
    AttemptSpanLayer::new().layer(inner).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(name(), None);
}
