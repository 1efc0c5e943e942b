//! What one call was told holds for the others (S17, D32).

use http::{Method, Response};
use redial::{
    Backoff, CallReport, Clock, Error, Hold, HoldScope, RetryLayer, StandardPolicy, StopReason, Transient,
    policy::StandardPolicyBuilder, retry::Retry,
};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::{
    policies::{WAIT, builder, timeouts},
    script::{Script, ScriptBody, ms, request, secs, status},
};

/// A provider whose 429 is documented to mean "rejected".
fn rejecting() -> StandardPolicyBuilder {
    let transient = Transient::usual().rejected(429, "API guide, section 4");
    StandardPolicy::builder("shop", timeouts(1_000, 60_000), transient)
        .backoff(Backoff::fixed(WAIT, "tests are exact"))
        .budget(redial::Budget::unlimited("tests bound themselves"))
}

async fn call(retry: Retry<Script, StandardPolicy>) -> Result<Response<redial::AnswerBody<ScriptBody>>, Error> {
    retry.oneshot(request(Method::GET)).await
}

/// One call is told to wait 30 s, and then ten others fail with a 503 and say when they came back.
async fn ten_others(policy: StandardPolicy) -> (Vec<u128>, Vec<CallReport>) {
    let start = Instant::now();
    let first = Script::new([status(429).retry_after("30"), status(200)]);
    let told = tokio::spawn(call(RetryLayer::new(policy.clone()).layer(first.clone())));
    sleep(ms(1)).await;
    let scripts: Vec<_> = (0..10).map(|_| Script::new([status(503), status(200)])).collect();
    let others: Vec<_> = scripts
        .iter()
        .map(|script| tokio::spawn(call(RetryLayer::new(policy.clone()).layer(script.clone()))))
        .collect();
    let mut reports = Vec::new();
    for other in others {
        reports.push(other.await.unwrap().unwrap().extensions().get::<CallReport>().unwrap().clone());
    }
    told.await.unwrap().unwrap();
    assert!(first.millis(start)[1] >= 30_000);
    (scripts.iter().flat_map(|script| script.millis(start)).collect(), reports)
}

#[tokio::test(start_paused = true)]
async fn ten_others_wait_with_their_retries() {
    let (at, reports) = ten_others(rejecting().backoff(Backoff::default()).build().unwrap()).await;
    println!("told at 0 ms to wait 30 s; the others' requests at (ms): {at:?}");
    let (first, second): (Vec<_>, Vec<_>) = at.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert!(first.iter().all(|at| *at == 1), "first tries go out");
    assert!(second.iter().all(|at| (30_000..=45_001).contains(at)), "retries wait, {second:?}");
    let spread = second.iter().max().unwrap() - second.iter().min().unwrap();
    assert!(spread > 100, "and come back spread, {spread}");
    assert!(reports.iter().all(|report| report.attempts()[0].held && report.attempts()[0].hint.wait.is_none()));
}

#[tokio::test(start_paused = true)]
async fn by_choice_they_do_not() {
    let (at, reports) = ten_others(rejecting().hold(HoldScope::None, Hold::new()).build().unwrap()).await;
    assert!(at.chunks(2).all(|pair| pair == [1, 101]), "{at:?}");
    assert!(reports.iter().all(|report| !report.attempts()[0].held));
}

#[tokio::test(start_paused = true)]
async fn by_choice_first_tries_wait_too() {
    let (at, reports) = ten_others(rejecting().hold(HoldScope::All, Hold::new()).build().unwrap()).await;
    // Then nobody is left to be told anything: their 503s and 200s come after the hold.
    assert!(at.iter().all(|at| *at >= 30_000), "{at:?}");
    assert!(reports.iter().all(|report| report.first_held() >= Some(ms(29_999))));
}

#[tokio::test(start_paused = true)]
async fn a_hold_past_the_deadline_sends_nothing() {
    let now = std::time::UNIX_EPOCH + secs(1_800_000_000);
    let policy = rejecting().hold(HoldScope::All, Hold::new()).clock(Clock::fixed(now)).build().unwrap();
    let script = Script::new([status(429).retry_after("90")]);
    let retry = RetryLayer::new(policy).layer(script.clone());
    let told = call(retry.clone()).await.unwrap();
    assert_eq!(told.extensions().get::<CallReport>().unwrap().stop(), Some(StopReason::WaitTooLong));
    sleep(secs(10)).await;
    let error = call(retry.clone()).await.unwrap_err();
    assert_eq!((error.stop(), error.retry_at()), (Some(StopReason::WaitTooLong), Some(now + secs(80))));
    assert_eq!(
        error.to_string(),
        "shop any: held back: the provider asked to be left alone for longer than the call may take"
    );
    assert_eq!(script.count(), 1);
    // When it is over, nothing is held any more.
    sleep(secs(81)).await;
    script.push([status(200)]);
    call(retry).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn retries_that_wait_already_wait_on() {
    // They were decided before the other call was told, and are not sent yet.
    let policy = rejecting().attempts(2).build().unwrap();
    let start = Instant::now();
    let early = Script::new([status(503), status(200)]);
    let early_call = tokio::spawn(call(RetryLayer::new(policy.clone()).layer(early.clone())));
    sleep(ms(50)).await;
    let told = Script::new([status(429).retry_after("30"), status(200)]);
    let told_call = tokio::spawn(call(RetryLayer::new(policy.clone()).layer(told.clone())));
    let answer = early_call.await.unwrap().unwrap();
    // Not before, and not all at once: the release is spread over half of the time that is left then.
    let second = early.millis(start)[1];
    assert!((30_050..45_050).contains(&second), "{second}");
    let attempt = &answer.extensions().get::<CallReport>().unwrap().attempts()[0];
    assert!(attempt.held && attempt.wait.is_some_and(|wait| wait.as_millis().abs_diff(second) <= 1), "{attempt:?}");
    // The call that was told waits for its own word once, not twice.
    let answer = told_call.await.unwrap().unwrap();
    assert_eq!(told.millis(start), [50, 30_050]);
    assert!(!answer.extensions().get::<CallReport>().unwrap().attempts()[0].held);
}

/// The readiness that the caller had waited for is used, and no timer is asked, as before there ever was a hold.
#[tokio::test(start_paused = true)]
async fn a_hold_that_is_over_costs_the_next_calls_nothing() {
    let policy = rejecting().hold(HoldScope::All, Hold::new()).build().unwrap();
    let told = Script::new([status(429).retry_after("90")]);
    call(RetryLayer::new(policy.clone()).layer(told)).await.unwrap();
    sleep(secs(91)).await;
    let (start, script) = (Instant::now(), Script::new([status(200)]));
    let answer = call(RetryLayer::new(policy).layer(script.clone())).await.unwrap();
    assert_eq!((start.elapsed(), script.asked(start).len()), (ms(0), 1));
    assert!(answer.extensions().get::<CallReport>().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_would_be_held_past_its_deadline_ends() {
    let budget = redial::Budget::aws();
    let policy = rejecting().budget(budget.clone()).build().unwrap();
    let start = Instant::now();
    let early = Script::new([status(503)]);
    let early_call = tokio::spawn(call(RetryLayer::new(policy.clone()).layer(early.clone())));
    sleep(ms(50)).await;
    let told = call(RetryLayer::new(policy).layer(Script::new([status(429).retry_after("90")]))).await.unwrap();
    assert_eq!(told.extensions().get::<CallReport>().unwrap().stop(), Some(StopReason::WaitTooLong));
    let error = early_call.await.unwrap().unwrap_err();
    assert_eq!((error.stop(), start.elapsed(), early.count()), (Some(StopReason::WaitTooLong), ms(100), 1));
    assert!(error.retry_at().is_some() && error.report().unwrap().attempts().len() == 1);
    assert_eq!(budget.level(), 500.0, "what was not sent is refunded");
}

#[tokio::test(start_paused = true)]
async fn a_first_try_is_held_no_longer_than_the_policy_allows() {
    let policy = rejecting().longest_server_wait(secs(10)).hold(HoldScope::All, Hold::new()).build().unwrap();
    let script = Script::new([status(429).retry_after("20")]);
    let retry = RetryLayer::new(policy).layer(script.clone());
    call(retry.clone()).await.unwrap();
    assert_eq!(call(retry).await.unwrap_err().stop(), Some(StopReason::WaitTooLong));
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_a_rejection_with_a_wait_holds_others() {
    // A 503 with a wait may be about that one request; a rejection without a wait names no time.
    for told in [status(503).retry_after("20"), status(429)] {
        let policy = rejecting().build().unwrap();
        let (first, other) = (Script::new([told, status(200)]), Script::new([status(500), status(200)]));
        let first = tokio::spawn(call(RetryLayer::new(policy.clone()).layer(first)));
        sleep(ms(1)).await;
        let start = Instant::now();
        call(RetryLayer::new(policy).layer(other.clone())).await.unwrap();
        assert_eq!(other.millis(start), [0, 100]);
        first.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn policies_share_what_they_are_given() {
    let hold = Hold::new();
    let policy = |name: &str| rejecting().operation(name).hold(HoldScope::Retries, hold.clone()).build().unwrap();
    let told = Script::new([status(429).retry_after("20"), status(200)]);
    let told = tokio::spawn(call(RetryLayer::new(policy("list")).layer(told)));
    sleep(ms(1)).await;
    let other = Script::new([status(500), status(200)]);
    let start = Instant::now();
    call(RetryLayer::new(policy("get")).layer(other.clone())).await.unwrap();
    assert!(other.millis(start)[1] >= 19_999);
    told.await.unwrap().unwrap();
    // Another provider has its own.
    let unrelated = Script::new([status(500), status(200)]);
    let start = Instant::now();
    call(RetryLayer::new(builder().build().unwrap()).layer(unrelated.clone())).await.unwrap();
    assert_eq!(unrelated.millis(start), [0, 100]);
}
