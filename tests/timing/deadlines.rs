//! The attempt's timeout, the call's total, and an outer deadline.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use redial::{
    AttemptTimedOut, Backoff, CallReport, Deadline, Error, FaultKind, RetryLayer, StandardPolicy, StopReason,
    TimeoutLayer,
};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::{
    policies::{builder, builder_within, policy, timeouts},
    script::{Failure, Script, ScriptBody, Step, fail, hang, ms, request, secs, status, text},
};

type Answer = http::Response<redial::AnswerBody<ScriptBody>>;

async fn call(policy: StandardPolicy, script: &Script, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    RetryLayer::new(policy).layer(script.clone()).oneshot(request).await
}

fn by(deadline: Duration) -> Request<Full<Bytes>> {
    let mut request = request(Method::GET);
    request.extensions_mut().insert(Deadline::after(deadline));
    request
}

fn waiting(wait: Duration, attempt: u64, total: u64) -> StandardPolicy {
    builder_within(timeouts(attempt, total)).backoff(Backoff::fixed(wait, "tests are exact")).build().unwrap()
}

fn stop(answer: &Answer) -> Option<StopReason> {
    answer.extensions().get::<CallReport>().expect("a report").stop()
}

#[tokio::test(start_paused = true)]
async fn c136_three_timeouts_three_errors() {
    // C136: whichever fires, the caller can tell.
    let once = builder_within(timeouts(100, 200)).attempts(1).build().unwrap();
    let attempt = call(once, &Script::always(hang()), request(Method::GET)).await.unwrap_err();
    assert!(attempt.is_timeout() && !attempt.is_deadline() && !attempt.is_outer_deadline());
    assert_eq!(attempt.find_source::<AttemptTimedOut>().unwrap().after(), ms(100));
    assert_eq!(
        attempt.to_string(),
        "shop any: the request failed after 1 attempt in 100.0ms (all attempts made): no response head within the \
         attempt's 100ms"
    );

    let policy = || waiting(ms(60), 100, 200);
    let total = call(policy(), &Script::always(hang()), request(Method::GET)).await.unwrap_err();
    assert!(total.is_timeout() && total.is_deadline() && !total.is_outer_deadline());
    assert!(total.find_source::<AttemptTimedOut>().is_none());
    assert_eq!(total.to_string(), "shop any: the call's total of 200ms is over after 2 attempts in 200.0ms");

    let outer = call(policy(), &Script::always(hang()), by(ms(180))).await.unwrap_err();
    assert!(outer.is_timeout() && outer.is_deadline() && outer.is_outer_deadline());
    assert_eq!(outer.to_string(), "shop any: the caller's deadline has passed after 2 attempts in 180.0ms");

    // And a connect failure is none of them.
    let refused = call(policy(), &Script::always(fail(Failure::Unsent)), request(Method::GET)).await.unwrap_err();
    assert!(refused.is_connect() && !refused.is_timeout());
}

#[tokio::test(start_paused = true)]
async fn c052_no_attempt_outlives_the_total() {
    // C052: a total below what the attempt may take, by way of an outer deadline.
    let start = Instant::now();
    let script = Script::new([hang()]);
    let error = call(policy(), &script, by(ms(300))).await.unwrap_err();
    assert_eq!((start.elapsed(), script.count()), (ms(300), 1));
    assert!(error.is_deadline());
    assert_eq!(error.report().unwrap().attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_sends_nothing() {
    let script = Script::new([]);
    let error = call(policy(), &script, by(ms(0))).await.unwrap_err();
    assert!(error.is_outer_deadline() && error.report().unwrap().attempts().is_empty());
    assert_eq!(error.to_string(), "shop any: the caller's deadline has passed before anything was sent");
}

#[tokio::test(start_paused = true)]
async fn a_later_outer_deadline_changes_nothing() {
    let start = Instant::now();
    let error = call(waiting(ms(60), 100, 200), &Script::always(hang()), by(secs(9))).await.unwrap_err();
    assert!(error.is_deadline() && !error.is_outer_deadline());
    assert_eq!(start.elapsed(), ms(200));
}

#[tokio::test(start_paused = true)]
async fn c072_it_ends_within_the_total() {
    // C072: an attempt as long as the total allows.
    let start = Instant::now();
    let script = Script::new([status(503).after(ms(600)), hang()]);
    let error = call(waiting(ms(50), 999, 1_000), &script, request(Method::GET)).await.unwrap_err();
    assert!(error.is_deadline());
    assert_eq!((start.elapsed(), script.count()), (secs(1), 2));
}

#[tokio::test(start_paused = true)]
async fn c073_no_time_left_is_not_unlimited_time() {
    // C073: the first attempt counts, and what is left after it is zero, not unlimited.
    let lost = |millis| fail(Failure::Reset).after(ms(millis));
    for first in [95, 98, 99, 100] {
        let start = Instant::now();
        let script = Script::new([lost(first), lost(99), lost(99), hang()]);
        let policy = builder_within(timeouts(99, 100)).backoff(Backoff::fixed(ms(1), "tests are exact"));
        let error = call(policy.build().unwrap(), &script, request(Method::GET)).await.unwrap_err();
        assert!(start.elapsed() <= ms(100), "{first}: {:?}", start.elapsed());
        assert!(error.is_deadline(), "{first}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c074_it_does_not_sleep_for_nothing() {
    // C074: 500 ms are left and the wait is 600 ms.
    let start = Instant::now();
    let script = Script::new([status(503).after(ms(500)).body(ScriptBody::text("why")), hang()]);
    let answer = call(waiting(ms(600), 800, 1_000), &script, request(Method::GET)).await.unwrap();
    assert_eq!((start.elapsed(), stop(&answer)), (ms(500), Some(StopReason::Deadline)));
    assert_eq!(text(answer).await, "why");
    // A wait that fits is waited, and the next attempt gets what is left.
    let start = Instant::now();
    let script = Script::new([status(503).after(ms(500)), hang()]);
    let error = call(waiting(ms(300), 800, 1_000), &script, request(Method::GET)).await.unwrap_err();
    assert!(error.is_deadline());
    assert_eq!((start.elapsed(), error.report().unwrap().attempts()[1].duration), (secs(1), ms(200)));
}

#[tokio::test(start_paused = true)]
async fn c078_a_timeout_inside_is_an_attempts_timeout() {
    // C078 (b): three attempts of 2 s, 1 s and 2 s apart: a timeout, structured, after 9 s.
    let policy = builder_within(timeouts(30_000, 60_000))
        .backoff(Backoff::exponential(secs(1)).max(secs(2)).unjittered("tests are exact"))
        .build()
        .unwrap();
    let start = Instant::now();
    let script = Script::always(hang());
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy.clone()))
        .layer(TimeoutLayer::new().head(secs(2)))
        .service(script.clone());
    let error = stack.oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_timeout() && error.is_exhausted(), "{error}");
    assert_eq!((start.elapsed(), script.count()), (secs(9), 3));
    assert_eq!(error.fault().unwrap().kind(), FaultKind::Timeout);

    // tower's own timeout layer there is read as one too.
    let start = Instant::now();
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy)).timeout(secs(2)).service(script.clone());
    let error = stack.oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_timeout() && error.is_exhausted(), "{error}");
    assert_eq!(start.elapsed(), secs(9));
}

#[tokio::test(start_paused = true)]
async fn c078_a_timeout_outside_ends_the_call() {
    // C078 (c): one attempt, 2 s; the retry layer has learnt the instant and says what it did.
    let start = Instant::now();
    let script = Script::always(hang());
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().head(secs(2)))
        .layer(RetryLayer::new(builder_within(timeouts(30_000, 60_000)).build().unwrap()))
        .service(script.clone());
    let error = stack.oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_timeout() && !error.is_outer_deadline(), "nobody else set one");
    assert!(error.to_string().contains("no response head within 2s"), "{error}");
    assert_eq!((start.elapsed(), script.count()), (secs(2), 1));
    assert_eq!(error.report().unwrap().attempts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_answer_that_drips_does_not_eat_the_retrys_time() {
    // It is read to its end so that its connection is free again, but not for longer than the call can afford.
    let silent = || status(503).body(ScriptBody::silent());
    let start = Instant::now();
    let script = Script::new([silent(), status(200)]);
    let answer = call(waiting(ms(100), 150, 200), &script, request(Method::GET)).await.unwrap();
    assert_eq!((answer.status(), script.bodies_held()), (StatusCode::OK, 1));
    assert!(start.elapsed() < ms(200), "{:?}", start.elapsed());
    // With time enough it is given a quarter of a second.
    let start = Instant::now();
    let script = Script::new([silent(), status(200)]);
    call(waiting(ms(100), 1_000, 60_000), &script, request(Method::GET)).await.unwrap();
    assert_eq!(script.millis(start), [0, 250]);
}

/// Takes all of the task's cooperative budget at each poll, as a busy channel does, and never ends.
async fn greedy() -> Answer {
    loop {
        tokio::task::coop::consume_budget().await;
    }
}

#[tokio::test]
async fn a_busy_inner_future_does_not_starve_the_timer() {
    // On the real clock, since a busy task keeps a paused one from moving.
    let busy =
        tower::service_fn(|_: Request<redial::AttemptBody<Full<Bytes>>>| async { Ok::<_, Error>(greedy().await) });
    let policy = builder_within(timeouts(50, 400)).attempts(1).build().unwrap();
    let call = RetryLayer::new(policy).layer(busy).oneshot(request(Method::GET));
    let watchdog = std::thread::spawn(|| std::thread::sleep(secs(5)));
    let error = tokio::select! {
        biased;
        result = call => result.map(drop).unwrap_err(),
        () = async { while !watchdog.is_finished() { tokio::task::yield_now().await } } => panic!("starved"),
    };
    assert!(error.is_timeout());
}

#[tokio::test(start_paused = true)]
async fn the_attempts_clock_starts_with_the_attempt() {
    let script = Script::new([status(503).after(ms(900)), status(503).after(ms(900)), status(200).after(ms(900))]);
    let answer = call(builder().build().unwrap(), &script, request(Method::GET)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let late: [Step; 1] = [status(200).after(ms(1_001))];
    let once = builder().attempts(1).build().unwrap();
    assert!(call(once, &Script::new(late), request(Method::GET)).await.unwrap_err().is_timeout());
}
