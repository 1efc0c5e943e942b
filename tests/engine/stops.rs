//! Every reason to stop is reached, and named.

use http::{Method, Request, StatusCode};
use http_body_util::StreamBody;
use redial::{
    Backoff, Budget, CallReport, RetryLayer, StandardPolicy, StopReason, Transient, Verdict,
    policy::{StandardPolicyBuilder, budget::BudgetSetting},
};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, builder_within, policy, timeouts},
    script::{Failure, Readiness, Script, Step, fail, hang, ms, request, secs, status},
};

/// The reason for which a call with these steps stops; every step is taken.
async fn stop(policy: StandardPolicyBuilder, method: Method, steps: impl IntoIterator<Item = Step>) -> StopReason {
    let steps: Vec<_> = steps.into_iter().collect();
    let expected = steps.len();
    let script = Script::new(steps);
    let retry = RetryLayer::new(policy.build().unwrap()).layer(script.clone());
    let result = retry.oneshot(request(method)).await;
    assert_eq!(script.count(), expected);
    match result {
        Ok(response) => response.extensions().get::<CallReport>().expect("a report").stop().expect("a reason"),
        Err(error) => error.stop().expect("a reason"),
    }
}

#[tokio::test(start_paused = true)]
async fn permanent() {
    assert_eq!(stop(builder(), Method::GET, [fail(Failure::Strange)]).await, StopReason::Permanent);
    assert_eq!(stop(builder(), Method::GET, [status(503), status(404)]).await, StopReason::Permanent);
}

#[tokio::test(start_paused = true)]
async fn no_evidence() {
    for step in [status(503), status(429), hang(), fail(Failure::Reset)] {
        assert_eq!(stop(builder(), Method::POST, [step]).await, StopReason::NoEvidence);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts() {
    assert_eq!(stop(builder(), Method::GET, [status(503), hang(), status(500)]).await, StopReason::Attempts);
    assert_eq!(stop(builder().attempts(1), Method::GET, [status(503)]).await, StopReason::Attempts);
}

#[tokio::test(start_paused = true)]
async fn body_too_large() {
    // A mebibyte in two frames is taped no further than the tape goes.
    let frame = || Ok::<_, std::io::Error>(http_body::Frame::data(bytes::Bytes::from(vec![0; 512 * 1024])));
    let body = StreamBody::new(futures_util::stream::iter([frame(), frame()]));
    let read = tower::service_fn(|request: Request<redial::AttemptBody<_>>| async move {
        let size = http_body_util::BodyExt::collect(request.into_body()).await?.to_bytes().len();
        assert_eq!(size, 1024 * 1024);
        let mut response = http::Response::new(String::new());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, redial::BoxError>(response)
    });
    let response = RetryLayer::new(policy()).layer(read).oneshot(Request::put("/").body(body).unwrap()).await.unwrap();
    let report: &CallReport = response.extensions().get().unwrap();
    assert_eq!((report.stop(), report.attempts().len()), (Some(StopReason::BodyTooLarge), 1));
}

#[tokio::test(start_paused = true)]
async fn budget() {
    let one = Budget::custom(BudgetSetting::bucket(1.0)).unwrap();
    let limited = || builder().budget(one.clone());
    assert_eq!(stop(limited(), Method::GET, [status(503), status(503)]).await, StopReason::Budget);
    assert_eq!(stop(limited(), Method::GET, [status(503)]).await, StopReason::Budget);
    assert_eq!(one.level(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn deadline() {
    let tight = || builder_within(timeouts(300, 350));
    let start = Instant::now();
    assert_eq!(stop(tight(), Method::GET, [status(503).after(ms(280))]).await, StopReason::Deadline);
    assert_eq!(start.elapsed(), ms(280), "it does not wait for what it cannot reach");
    assert_eq!(stop(tight(), Method::GET, [status(503).after(ms(100)), hang()]).await, StopReason::Deadline);
}

#[tokio::test(start_paused = true)]
async fn server_said_no() {
    let told = || builder().should_retry_header(http::HeaderName::from_static("x-should-retry"));
    let no = status(503).header("x-should-retry", "false");
    assert_eq!(stop(told(), Method::GET, [no.clone()]).await, StopReason::ServerSaidNo);
    // Where the policy does not name the header, it says nothing.
    assert_eq!(stop(builder(), Method::GET, [no.clone(), no.clone(), no]).await, StopReason::Attempts);
    // `true` makes an unlisted status transient, and gives no evidence (D19).
    let yes = status(400).header("x-should-retry", "true");
    assert_eq!(stop(told(), Method::GET, [yes.clone(), yes.clone(), yes.clone()]).await, StopReason::Attempts);
    assert_eq!(stop(told(), Method::POST, [yes]).await, StopReason::NoEvidence);
}

#[tokio::test(start_paused = true)]
async fn wait_too_long() {
    let start = Instant::now();
    assert_eq!(stop(builder(), Method::GET, [status(503).retry_after("60")]).await, StopReason::WaitTooLong);
    let capped = builder().longest_server_wait(secs(10));
    assert_eq!(stop(capped, Method::GET, [status(503).retry_after("11")]).await, StopReason::WaitTooLong);
    assert_eq!(start.elapsed(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn not_ready() {
    let script = Script::new([status(503)]).readiness([Readiness::Now, Readiness::Fails]);
    let error = RetryLayer::new(policy()).layer(script).oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::NotReady));
}

#[tokio::test(start_paused = true)]
async fn stacked() {
    // A handler in process that forwards the very request it was given.
    let script = Script::new([status(503), status(200)]);
    let below = RetryLayer::new(policy()).refuse_stacking().layer(script.clone());
    let forward = tower::service_fn(move |request: Request<redial::AttemptBody<_>>| {
        let forwarded = request.map(|_| http_body_util::Full::<bytes::Bytes>::default());
        below.clone().oneshot(forwarded)
    });
    let error = RetryLayer::new(policy()).layer(forward).oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_stacked());
    assert_eq!(script.count(), 0);
    let inner: &redial::Error = error.find_source().unwrap();
    assert_eq!(inner.stop(), Some(StopReason::Stacked));
}

#[tokio::test(start_paused = true)]
async fn verify() {
    let policy = builder().judge_with(|_, outcome, verdict| match outcome.status() {
        Some(StatusCode::CONFLICT) if outcome.earlier_unknown() => Verdict::verify(),
        _ => verdict,
    });
    assert_eq!(stop(policy, Method::PUT, [fail(Failure::Reset), status(409)]).await, StopReason::Verify);
}

#[tokio::test(start_paused = true)]
async fn upgrade() {
    assert_eq!(stop(builder(), Method::CONNECT, [status(503)]).await, StopReason::Upgrade);
}

#[tokio::test(start_paused = true)]
async fn the_first_repeat_of_an_unsent_request_is_not_charged() {
    // D13: the second one is.
    let budget = Budget::custom(BudgetSetting::bucket(2.0)).unwrap();
    let policy = builder().budget(budget.clone()).backoff(Backoff::fixed(ms(100), "tests are exact"));
    let unsent = || fail(Failure::Unsent);
    assert_eq!(stop(policy, Method::POST, [unsent(), unsent(), unsent()]).await, StopReason::Attempts);
    assert_eq!(budget.level(), 1.0);
}

#[tokio::test(start_paused = true)]
async fn nothing_listed_nothing_repeated() {
    let none = StandardPolicy::builder("shop", timeouts(1_000, 60_000), Transient::none());
    assert_eq!(stop(none, Method::GET, [fail(Failure::Unsent)]).await, StopReason::Permanent);
}
