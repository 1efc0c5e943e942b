//! Time limits, permits, holds, reports and what errors show.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use redial::{
    AttemptBody, Backoff, BoxError, Budget, CallReport, Deadline, Hold, HoldScope, RequestOptions, RetryLayer,
    StandardPolicy, TimeoutLayer, Timeouts, Transient, policy::StandardPolicyBuilder,
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, limit::ConcurrencyLimit, service_fn};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn builder(transient: Transient) -> StandardPolicyBuilder {
    StandardPolicy::builder("shop", Timeouts { attempt: secs(1), total: secs(60) }, transient)
        .backoff(Backoff::fixed(Duration::from_millis(100), "exact"))
        .budget(Budget::unlimited("tests"))
}

fn policy() -> StandardPolicy {
    builder(Transient::usual()).build().unwrap()
}

fn get() -> Request<Full<Bytes>> {
    Request::get("http://x/").body(Full::default()).unwrap()
}

/// Always has a frame ready; the reader takes a second over each.
struct Endless;
impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

/// `total`: "from the call to the end of the response body, on one clock". A body that is never late is never asked.
#[tokio::test(start_paused = true)]
async fn total_bounds_a_body_that_always_has_more() {
    let inner = service_fn(|_: Request<Full<Bytes>>| async { Ok::<_, Infallible>(Response::new(Endless)) });
    let response = TimeoutLayer::new().total(secs(10)).layer(inner).oneshot(get()).await.unwrap();
    let start = Instant::now();
    let mut body = response.into_body();
    while let Some(Ok(_)) = body.frame().await {
        tokio::time::sleep(secs(1)).await;
        assert!(start.elapsed() <= secs(60), "still reading after six times the total");
    }
}

/// 16 KiB, again and again.
struct Flood;
impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 16 * 1024])))))
    }
}

/// The same over the network: a server that is fast, and a reader that takes 5 ms over each frame.
#[tokio::test(flavor = "multi_thread")]
async fn total_bounds_a_download_over_tcp() {
    use crate::support::{
        WIRES, hyper_client,
        site::{Site, answer_with},
    };
    for wire in WIRES {
        let site =
            Site::start(wire, |_, _| async { Ok(answer_with(200, Flood.map_err(|never| match never {}).boxed())) })
                .await;
        let stack = ServiceBuilder::new()
            .layer(TimeoutLayer::new().total(Duration::from_millis(300)))
            .layer(RetryLayer::new(policy()))
            .service(hyper_client::<Full<Bytes>>(wire));
        let start = std::time::Instant::now();
        let request = Request::get(site.url()).body(Full::default()).unwrap();
        let mut body = stack.oneshot(request).await.unwrap().into_body();
        while let Some(Ok(_)) = body.frame().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(start.elapsed() < secs(4), "{wire:?}: total 300 ms, still reading after 4 s");
        }
        println!("{wire:?}: ended after {:?}", start.elapsed());
    }
}

/// One absurd header (a bug, an attack, a date in milliseconds) holds the provider for the life of the process.
#[tokio::test(start_paused = true)]
async fn one_absurd_retry_after_does_not_hold_a_provider_for_ever() {
    let policy =
        builder(Transient::usual().rejected(429, "documented")).hold(HoldScope::All, Hold::new()).build().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let inner = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let answer = Response::builder();
            let answer = if first { answer.status(429).header("retry-after", "99999999999999") } else { answer };
            Ok::<_, Infallible>(answer.body(Empty::<Bytes>::new()).unwrap())
        }
    });
    let stack = RetryLayer::new(policy).layer(inner);
    stack.clone().oneshot(get()).await.unwrap();
    tokio::time::sleep(secs(2 * 24 * 3600)).await; // longer than anything here may wait
    let response = stack.oneshot(get()).await;
    assert!(response.is_ok(), "{}", response.unwrap_err());
}

/// A report that a handler's own client left in its answer passes for this layer's.
#[tokio::test(start_paused = true)]
async fn a_foreign_report_is_not_handed_on_as_ones_own() {
    let own = {
        let calls = Arc::new(AtomicUsize::new(0));
        RetryLayer::new(policy()).layer(service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
            let status = if calls.fetch_add(1, Ordering::SeqCst) == 0 { 503 } else { 200 };
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(Empty::<Bytes>::new()).unwrap()) }
        }))
    };
    let handler = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| own.clone().oneshot(get()));
    let response = RetryLayer::new(policy()).layer(handler).oneshot(get()).await.unwrap();
    let report = response.extensions().get::<CallReport>();
    assert!(report.is_none(), "one attempt, at once, and the report says {:?}", report.unwrap().attempts().len());
}

/// A deadline that has passed: `TimeoutLayer` sends all the same.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_past_the_deadline_by_a_timeout_layer() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let inner = service_fn(move |_: Request<Full<Bytes>>| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
    });
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(Duration::ZERO));
    tokio::time::sleep(secs(1)).await;
    let result = TimeoutLayer::new().head(secs(5)).layer(inner).oneshot(request).await;
    assert_eq!(calls.load(Ordering::SeqCst), 0, "sent a second late; is_ok: {}", result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_with_a_total_of_zero() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let inner = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
    });
    let mut request = get();
    request.extensions_mut().insert(RequestOptions::new().total(Duration::ZERO));
    let result = RetryLayer::new(policy()).layer(inner).oneshot(request).await;
    assert_eq!(calls.load(Ordering::SeqCst), 0, "is_ok: {}", result.is_ok());
}

/// `what_ended_holds_nothing_while_it_is_kept` (tests/cancel.rs) looks at the budget; here is a permit.
#[tokio::test(start_paused = true)]
async fn what_ended_holds_no_permit_while_it_is_kept() {
    let inner = service_fn(|_: Request<AttemptBody<Full<Bytes>>>| async {
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    });
    let limit = ConcurrencyLimit::new(inner, 1);
    let mut retry = RetryLayer::new(policy()).layer(limit.clone());
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(Duration::ZERO));
    let mut call = pin!(retry.ready().await.unwrap().call(request));
    assert!(call.as_mut().await.is_err());
    let mut limit = limit;
    let ready =
        tokio::time::timeout(secs(60), ServiceExt::<Request<AttemptBody<Full<Bytes>>>>::ready(&mut limit)).await;
    assert!(ready.is_ok(), "the call is over, and holds its permit");
}

async fn shown(text: &'static str) -> String {
    let inner = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| async move {
        Err::<Response<Empty<Bytes>>, BoxError>(text.into())
    });
    let error = RetryLayer::new(policy()).layer(inner).oneshot(get()).await.unwrap_err();
    format!("{error} | {error:?}")
}

#[tokio::test]
async fn errors_show_no_secret_after_an_apostrophe_in_a_query() {
    // OData: an apostrophe is a valid character of a query, and `http::Uri` takes it.
    let url = "https://api.example/users?$filter=ssn%20eq%20'secret'&key='secret2'";
    assert!(url.parse::<http::Uri>().is_ok());
    let shown = shown("no route to https://api.example/users?$filter=ssn%20eq%20'secret'&key='secret2'").await;
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn errors_show_no_secret_of_the_second_url_in_a_word() {
    let shown = shown("redirects: https://a.example/,https://user:secret@b.example/").await;
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn errors_show_no_userinfo_with_a_slash() {
    // Not a valid URL: but what does not parse is just what ends up in an error.
    let shown = shown("invalid URL postgres://user:se/cret@b.example/").await;
    assert!(!shown.contains("cret"), "{shown}");
}

#[tokio::test]
async fn errors_show_no_userinfo_without_a_scheme() {
    let shown = shown("cannot connect to user:secret@proxy.example:3128").await;
    assert!(!shown.contains("secret"), "{shown}");
}

/// For the record: these hold.
#[tokio::test(start_paused = true)]
async fn the_longest_durations() {
    let inner = service_fn(|_: Request<AttemptBody<Full<Bytes>>>| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok::<_, Infallible>(Response::builder().status(503).body(Full::<Bytes>::from("x")).unwrap())
    });
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(Duration::MAX).head(Duration::MAX).body_idle(Duration::MAX))
        .layer(RetryLayer::new(policy()))
        .service(inner);
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(Duration::MAX));
    request
        .extensions_mut()
        .insert(RequestOptions::new().total(Duration::MAX).attempt(Duration::MAX).attempts(u32::MAX));
    let response = stack.oneshot(request).await.unwrap();
    assert_eq!(response.extensions().get::<CallReport>().unwrap().attempts().len(), 3);
    response.into_body().collect().await.unwrap();
}

/// README's stack: the limit that passed is the timeout layer's `head`; nobody set a deadline.
#[tokio::test(start_paused = true)]
async fn an_error_names_the_limit_that_passed() {
    let inner = service_fn(|_: Request<AttemptBody<Full<Bytes>>>| {
        std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>()
    });
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().head(Duration::from_millis(500)))
        .layer(RetryLayer::new(policy()))
        .service(inner);
    let error = stack.oneshot(get()).await.unwrap_err();
    assert!(error.to_string().contains("500ms"), "{error}; is_outer_deadline: {}", error.is_outer_deadline());
}
