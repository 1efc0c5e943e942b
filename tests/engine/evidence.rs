//! Evidence that a repeat is safe (S7), and what one request asks for itself.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use redial::{Evidence, Policy, RequestHead, RequestOptions, RetryLayer, StandardPolicy, StopReason, Transient};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, policy, timeouts},
    script::{Failure, Script, fail, hang, ms, request, status},
};

/// How many requests a call makes that is answered 503 for ever.
async fn requests(policy: StandardPolicy, request: Request<Full<Bytes>>) -> usize {
    let script = Script::always(status(503));
    RetryLayer::new(policy).layer(script.clone()).oneshot(request).await.unwrap();
    script.count()
}

fn with(method: Method, name: &'static str, value: &'static str) -> Request<Full<Bytes>> {
    let mut request = request(method);
    request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    request
}

fn evidence(policy: &StandardPolicy, request: &Request<Full<Bytes>>) -> Option<Evidence> {
    policy.plan(&RequestHead::of(request)).evidence().cloned()
}

#[tokio::test(start_paused = true)]
async fn by_method() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"] {
        let method: Method = method.parse().unwrap();
        assert_eq!(evidence(&policy(), &request(method.clone())), Some(Evidence::Method));
        assert_eq!(requests(policy(), request(method)).await, 3);
    }
    // Methods are case-sensitive, and an extension is never taken for idempotent.
    for method in ["POST", "PATCH", "get", "MKCOL"] {
        assert_eq!(requests(policy(), request(method.parse().unwrap())).await, 1, "{method}");
    }
    let by_position = builder().not_idempotent(Method::DELETE).build().unwrap();
    assert_eq!(requests(by_position.clone(), request(Method::DELETE)).await, 1);
    assert_eq!(requests(by_position, request(Method::PUT)).await, 3);
}

#[tokio::test(start_paused = true)]
async fn by_key() {
    assert_eq!(evidence(&policy(), &with(Method::POST, "idempotency-key", "1")), Some(Evidence::Key));
    assert_eq!(requests(policy(), with(Method::POST, "idempotency-key", "1")).await, 3);
    for empty in ["", "  "] {
        assert_eq!(requests(policy(), with(Method::POST, "idempotency-key", empty)).await, 1);
    }
    let own = builder().key_header(HeaderName::from_static("x-request-token")).build().unwrap();
    assert_eq!(requests(own.clone(), with(Method::POST, "x-request-token", "1")).await, 3);
    assert_eq!(requests(own, with(Method::POST, "idempotency-key", "1")).await, 1);
}

#[tokio::test(start_paused = true)]
async fn by_precondition() {
    let conditional = builder().precondition(http::header::IF_MATCH).build().unwrap();
    let request = || with(Method::PATCH, "if-match", "\"5\"");
    assert_eq!(evidence(&conditional, &request()), Some(Evidence::Precondition));
    assert_eq!(requests(conditional, request()).await, 3);
    assert_eq!(requests(policy(), request()).await, 1, "only where the policy names it");
}

#[tokio::test(start_paused = true)]
async fn by_precondition_in_the_query() {
    let conditional =
        builder().precondition_query("ifGenerationMatch").precondition_query("ifMetagenerationMatch").build().unwrap();
    let patch = |query: &str| {
        let mut request = request(Method::PATCH);
        *request.uri_mut() = format!("http://api.example/orders{query}").parse().unwrap();
        request
    };
    for query in ["?ifGenerationMatch=5", "?alt=json&ifMetagenerationMatch=1", "?if%47enerationMatch=0"] {
        assert_eq!(evidence(&conditional, &patch(query)), Some(Evidence::Precondition), "{query}");
        assert_eq!(requests(conditional.clone(), patch(query)).await, 3, "{query}");
        assert_eq!(requests(policy(), patch(query)).await, 1, "only where the policy names it: {query}");
    }
    for query in ["", "?", "?ifGenerationMatch=", "?alt=json", "/ifGenerationMatch=5"] {
        assert_eq!(requests(conditional.clone(), patch(query)).await, 1, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn stated() {
    let stated = builder().idempotent("the sequence number is in the body").build().unwrap();
    let evidence = evidence(&stated, &request(Method::POST)).unwrap();
    assert_eq!(evidence.to_string(), "stated: the sequence number is in the body");
    assert_eq!(requests(stated, request(Method::POST)).await, 3);
}

#[tokio::test(start_paused = true)]
async fn not_needed_where_the_request_never_arrived() {
    let script = Script::new([fail(Failure::Unsent), status(201)]);
    RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::POST)).await.unwrap();
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn not_needed_where_the_provider_documents_a_rejection() {
    let transient = Transient::usual().rejected(429, "API guide, section 4");
    let rejecting = StandardPolicy::builder("shop", timeouts(1_000, 60_000), transient).build().unwrap();
    let script = Script::new([status(429), status(201)]);
    RetryLayer::new(rejecting.clone()).layer(script.clone()).oneshot(request(Method::POST)).await.unwrap();
    assert_eq!(script.count(), 2);
    // Another status is not meant by that.
    assert_eq!(requests(rejecting, request(Method::POST)).await, 1);
}

fn asking(method: Method, options: RequestOptions) -> Request<Full<Bytes>> {
    let mut request = request(method);
    request.extensions_mut().insert(options);
    request
}

#[tokio::test(start_paused = true)]
async fn options_tighten_attempts() {
    for (asked, made) in [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)] {
        let options = RequestOptions::new().attempts(asked);
        assert_eq!(requests(policy(), asking(Method::GET, options)).await, made);
    }
    assert_eq!(requests(policy(), asking(Method::GET, RequestOptions::new().never_retry())).await, 1);
}

#[tokio::test(start_paused = true)]
async fn options_tighten_timeouts() {
    let elapsed = async |options| {
        let start = Instant::now();
        let retry = RetryLayer::new(policy()).layer(Script::always(hang()));
        let error = retry.oneshot(asking(Method::GET, options)).await.unwrap_err();
        (start.elapsed().as_millis(), error.stop().unwrap())
    };
    let options = RequestOptions::new;
    assert_eq!(elapsed(options()).await, (3_200, StopReason::Attempts));
    assert_eq!(elapsed(options().attempt(ms(50))).await, (350, StopReason::Attempts));
    assert_eq!(elapsed(options().attempt(ms(5_000))).await, (3_200, StopReason::Attempts), "never longer");
    assert_eq!(elapsed(options().total(ms(1_500))).await, (1_500, StopReason::Deadline));
}

#[tokio::test(start_paused = true)]
async fn options_state_evidence() {
    let stated = |reason: &'static str| asking(Method::POST, RequestOptions::new().idempotent(reason));
    assert_eq!(requests(policy(), stated("order numbers are unique")).await, 3);
    assert_eq!(requests(policy(), stated("  ")).await, 1);
}
