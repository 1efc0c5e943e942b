//! How often, and when.

use http::{Method, StatusCode, header};
use redial::{Backoff, CallReport, RetryLayer};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, policy},
    script::{Failure, Script, ScriptBody, fail, hang, ms, request, status, text},
};

#[tokio::test(start_paused = true)]
async fn the_first_answer_is_returned_untouched() {
    let answer = status(200).header("x-kept", "yes").body(ScriptBody::text("hello"));
    let script = Script::new([answer]);
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((response.status(), response.headers().len()), (StatusCode::OK, 1));
    assert!(response.extensions().get::<CallReport>().is_none());
    assert_eq!(text(response).await, "hello");
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_repeated_after_its_wait() {
    let start = Instant::now();
    let script = Script::new([status(503).after(ms(30)), fail(Failure::Reset), status(200)]);
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(script.millis(start), [0, 130, 230]);
    let attempts: Vec<_> = script.seen().iter().map(|seen| seen.attempt).collect();
    assert_eq!(attempts, [Some(1), Some(2), Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn waits_lie_between_the_floor_and_the_cap_and_differ() {
    let backoff = Backoff::exponential(ms(400)).max(ms(500)).floor(ms(50));
    let policy = builder().backoff(backoff).build().unwrap();
    let mut gaps = Vec::new();
    for _ in 0..50 {
        let script = Script::new([status(503), status(503), status(200)]);
        let start = Instant::now();
        let retry = RetryLayer::new(policy.clone()).layer(script.clone());
        retry.oneshot(request(Method::GET)).await.unwrap();
        let at = script.millis(start);
        gaps.extend([(1, at[1] - at[0]), (2, at[2] - at[1])]);
    }
    // A timer may be a millisecond late, and never early.
    assert!(gaps.iter().all(|(retry, gap)| *gap >= 50 && *gap <= if *retry == 1 { 401 } else { 501 }), "{gaps:?}");
    let (least, most) = (gaps.iter().map(|gap| gap.1).min().unwrap(), gaps.iter().map(|gap| gap.1).max().unwrap());
    assert!(most - least > 200, "waits are spread: {least} to {most}");
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_returned_with_its_body() {
    let last = status(503).body(ScriptBody::text("sorry, still down")).header("x-last", "yes");
    let script = Script::new([status(503), status(502), last]);
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("x-last"));
    assert_eq!(text(response).await, "sorry, still down");
    assert_eq!((script.count(), script.bodies_held()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_gone_before_the_next_begins() {
    let script = Script::new([hang(), hang(), hang()]);
    let error = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_timeout() && error.is_exhausted());
    assert_eq!((script.count(), script.most_in_flight(), script.in_flight()), (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_business_answer_is_an_answer() {
    for code in [301, 304, 400, 401, 403, 404, 409, 412, 422, 501, 505] {
        let script = Script::new([status(code).retry_after("1")]);
        let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
        assert_eq!((response.status().as_u16(), script.count()), (code, 1));
        assert!(response.extensions().get::<CallReport>().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn connect_and_upgrade_are_never_repeated_and_101_passes() {
    let upgrade = || {
        let mut upgrade = request(Method::GET);
        upgrade.headers_mut().insert(header::UPGRADE, "websocket".parse().unwrap());
        upgrade
    };
    for failing in [status(503), fail(Failure::Unsent), fail(Failure::Reset), hang()] {
        for request in [request(Method::CONNECT), upgrade()] {
            let script = Script::new([failing.clone()]);
            let _ = RetryLayer::new(policy()).layer(script.clone()).oneshot(request).await;
            assert_eq!(script.count(), 1, "{failing:?}");
        }
    }
    let script = Script::new([status(101)]);
    let response = RetryLayer::new(policy()).layer(script).oneshot(upgrade()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert!(response.extensions().get::<CallReport>().is_none());
}

#[tokio::test(start_paused = true)]
async fn c120_every_call_counts_its_own_attempts() {
    // C120: only the budget is shared.
    let script = Script::new([status(503), status(503), status(503), status(429), status(200)]);
    let retry = RetryLayer::new(policy()).layer(script.clone());
    let first = retry.clone().oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(first.status(), StatusCode::SERVICE_UNAVAILABLE);
    let second = retry.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((second.status(), script.count()), (StatusCode::OK, 5));
}

#[tokio::test(start_paused = true)]
async fn c080_ten_rate_limits_are_ten_attempts() {
    // C080, D16: a 429 with a wait counts, so attempts win.
    let start = Instant::now();
    let script = Script::always(status(429).retry_after("1"));
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((response.status(), script.count()), (StatusCode::TOO_MANY_REQUESTS, 3));
    let at = script.millis(start);
    assert!(at[1] >= 1_000 && at[2] >= at[1] + 1_000, "{at:?}");
}
