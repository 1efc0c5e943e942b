//! Readiness: before every call, after the wait, on the instance that is called.

use std::time::Duration;

use http::{Method, StatusCode};
use redial::{RetryLayer, StopReason};
use tokio::time::{Instant, timeout};
use tower::{
    Layer, Service, ServiceBuilder, ServiceExt,
    limit::{ConcurrencyLimit, ConcurrencyLimitLayer},
};

use crate::{
    policies::{builder_within, policy, timeouts},
    script::{Failure, NotReady, Readiness, Script, ScriptBody, fail, ms, request, secs, status, text},
};

#[tokio::test(start_paused = true)]
async fn c128_it_is_taken_after_the_wait_and_not_before() {
    // C128. The script panics when an instance is called that was not made ready.
    let start = Instant::now();
    let ready = [Readiness::Now, Readiness::After(ms(50)), Readiness::Now];
    let script = Script::new([status(503), status(503), status(200)]).readiness(ready);
    RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(script.asked(start), [0, 100, 250]);
    assert_eq!(script.millis(start), [0, 150, 250]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_it_counts_against_the_deadline() {
    let start = Instant::now();
    let script = Script::new([status(503)]).readiness([Readiness::Now, Readiness::Never]);
    let policy = builder_within(timeouts(500, 2_000)).build().unwrap();
    let error = RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!((start.elapsed(), script.count()), (secs(2), 1));
    assert!(error.is_deadline() && error.is_timeout());
    assert_eq!(error.report().unwrap().attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_does_not_count_as_part_of_the_attempt() {
    let start = Instant::now();
    let script = Script::new([fail(Failure::Reset), status(200).after(ms(900))]);
    let script = script.readiness([Readiness::Now, Readiness::After(ms(900))]);
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((response.status(), start.elapsed()), (StatusCode::OK, ms(1_900)));
}

#[tokio::test(start_paused = true)]
async fn its_failure_ends_the_call() {
    let script = Script::new([status(503)]).readiness([Readiness::Now, Readiness::Fails]);
    let error = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!((error.stop(), script.count()), (Some(StopReason::NotReady), 1));
    assert!(error.is_not_ready());
    assert_eq!(error.find_source::<NotReady>(), Some(&NotReady));
    assert_eq!(error.report().unwrap().attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn its_failure_before_the_first_call_is_the_callers_to_see() {
    let script = Script::new([]).readiness([Readiness::Fails]);
    let mut retry = RetryLayer::new(policy()).layer(script);
    let ready = ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(&mut retry).await;
    let error = ready.map(drop).unwrap_err();
    assert!(error.is_not_ready() && error.report().is_none());
    assert_eq!(error.find_source::<NotReady>(), Some(&NotReady));
}

#[tokio::test(start_paused = true)]
async fn c108_a_limit_of_one_inside_does_not_deadlock() {
    // C108: the failed attempt gives its permit back before the next asks for one, also while its answer never ends.
    let script = Script::new([status(503).body(ScriptBody::silent()), fail(Failure::Reset), status(200)]);
    let retry = RetryLayer::new(policy()).layer(ConcurrencyLimit::new(script.clone(), 1));
    let response = timeout(secs(10), retry.oneshot(request(Method::GET))).await.expect("no deadlock").unwrap();
    assert_eq!((response.status(), script.count(), script.bodies_held()), (StatusCode::OK, 3, 1));
}

/// Alternates between failing and answering, a hundred calls long.
fn alternating() -> Script {
    Script::new((0..100).flat_map(|n| if n % 2 == 0 { vec![status(503), status(200)] } else { vec![status(200)] }))
}

/// C129: the instance made ready is the one called, a hundred times.
async fn drive<S, RB>(mut service: S)
where
    S: Service<http::Request<http_body_util::Full<bytes::Bytes>>, Response = http::Response<RB>, Error = redial::Error>,
    RB: http_body::Body<Error: std::fmt::Debug>,
{
    for _ in 0..100 {
        let response = service.ready().await.unwrap().call(request(Method::GET)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(text(response).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn c129_over_a_concurrency_limit() {
    let script = alternating();
    drive(RetryLayer::new(policy()).layer(ConcurrencyLimit::new(script.clone(), 1))).await;
    assert_eq!(script.count(), 150);
}

#[tokio::test(start_paused = true)]
async fn c129_over_a_buffer() {
    let script = alternating();
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).buffer(1).service(script.clone());
    drive(stack).await;
    assert_eq!(script.count(), 150);
}

#[tokio::test(start_paused = true)]
async fn c129_over_load_shedding() {
    let script = alternating();
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy())).load_shed().concurrency_limit(1).service(script.clone());
    drive(stack).await;
    assert_eq!(script.count(), 150);
}

#[tokio::test(start_paused = true)]
async fn a_limit_outside_is_held_through_the_waits() {
    // Documented by this test: a limit outside counts calls, one inside counts attempts.
    let script = Script::new([status(503), status(200), status(200)]);
    let stack = ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(RetryLayer::new(policy()))
        .service(script.clone());
    let start = Instant::now();
    let both = tokio::join!(stack.clone().oneshot(request(Method::GET)), stack.oneshot(request(Method::GET)));
    assert!(both.0.is_ok() && both.1.is_ok());
    assert_eq!(script.millis(start), [0, 100, 100]);
    assert_eq!(start.elapsed(), Duration::from_millis(100));
}
