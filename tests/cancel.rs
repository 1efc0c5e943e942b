//! A call that is dropped: at every state it gives back what it holds, and says so once.

#[path = "common/capture.rs"]
mod capture;
#[path = "common/policies.rs"]
mod policies;
#[path = "common/script.rs"]
mod script;

use std::time::Duration;

use capture::Capture;
use http::Method;
use policies::{builder, policy};
use redial::{
    Backoff, Budget, Hold, HoldScope, RetryLayer, StandardPolicy, TimeoutLayer, Transient,
    policy::budget::BudgetSetting,
};
use script::{Failure, Readiness, Script, ScriptBody, Step, fail, hang, ms, request, secs, status};
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceBuilder, ServiceExt, limit::ConcurrencyLimit};
use tracing::Level;

/// What a call looks like when it is dropped at some instant, and what must be true after it.
struct Drop {
    steps: Vec<Step>,
    readiness: Vec<Readiness>,
    at: Duration,
    phase: &'static str,
    attempt: &'static str,
    /// Tokens that stay spent: of a retry that is on its way.
    spent: f64,
}

async fn check(drop: Drop) {
    let (capture, _guard) = Capture::start();
    let script = Script::new(drop.steps).readiness(drop.readiness);
    let budget = Budget::custom(BudgetSetting::bucket(5.0)).unwrap();
    let inner = ConcurrencyLimit::new(script.clone(), 1);
    let retry = RetryLayer::new(builder().budget(budget.clone()).build().unwrap()).layer(inner.clone());
    assert!(timeout(drop.at, retry.oneshot(request(Method::GET))).await.is_err(), "{}", drop.phase);

    let requests = script.count();
    assert_eq!((script.in_flight(), script.bodies_held()), (0, 0), "{}", drop.phase);
    assert_eq!(budget.level(), 5.0 - drop.spent, "{}", drop.phase);
    let cancelled = capture.ours().into_iter().filter(|said| said.get("message") == "cancelled").collect::<Vec<_>>();
    let [event] = &cancelled[..] else { panic!("one event, not {cancelled:?}") };
    assert_eq!((event.level, event.get("phase"), event.get("attempt")), (Level::DEBUG, drop.phase, drop.attempt));
    assert!(capture.at(Level::ERROR).is_empty());

    // The permit is back at once, and nothing is sent behind the caller's back.
    script.push([status(200)]);
    let again = timeout(Duration::ZERO, inner.oneshot(request(Method::GET))).await.expect("the permit is back");
    assert_eq!(again.unwrap().status(), 200);
    sleep(secs(60)).await;
    assert_eq!(script.count(), requests + 1, "{}", drop.phase);
}

#[tokio::test(start_paused = true)]
async fn in_the_first_attempt() {
    let (steps, readiness) = (vec![hang()], vec![]);
    check(Drop { steps, readiness, at: ms(50), phase: "in flight", attempt: "1", spent: 0.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn in_the_wait() {
    let (steps, readiness) = (vec![status(503)], vec![]);
    check(Drop { steps, readiness, at: ms(50), phase: "waiting", attempt: "1", spent: 0.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn c124_in_the_wait_that_the_server_asked_for() {
    // C124
    let (steps, readiness) = (vec![status(429).retry_after("3")], vec![]);
    check(Drop { steps, readiness, at: ms(100), phase: "waiting", attempt: "1", spent: 0.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_failed_answer_is_let_go() {
    let steps = vec![status(503).body(ScriptBody::silent())];
    let phase = "letting a failed response go";
    check(Drop { steps, readiness: vec![], at: ms(50), phase, attempt: "1", spent: 0.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn while_waiting_for_readiness() {
    let (steps, readiness) = (vec![status(503)], vec![Readiness::Now, Readiness::Never]);
    check(Drop { steps, readiness, at: ms(150), phase: "waiting for readiness", attempt: "1", spent: 0.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn in_a_later_attempt() {
    // The retry is on its way: the provider has its load, so it stays paid for.
    let (steps, readiness) = (vec![status(503), hang()], vec![]);
    check(Drop { steps, readiness, at: ms(150), phase: "in flight", attempt: "2", spent: 1.0 }).await;
}

#[tokio::test(start_paused = true)]
async fn c125_an_attempt_that_timed_out_is_gone_before_the_next() {
    // C125: never two at once.
    let script = Script::new([hang(), hang(), hang()]);
    let retry = RetryLayer::new(builder().build().unwrap()).layer(script.clone());
    retry.oneshot(request(Method::GET)).await.unwrap_err();
    assert_eq!((script.count(), script.most_in_flight(), script.in_flight()), (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_first_try_that_is_held_back() {
    let transient = Transient::usual().rejected(429, "documented");
    let policy = StandardPolicy::builder("shop", policies::timeouts(1_000, 60_000), transient)
        .hold(HoldScope::All, Hold::new())
        .build()
        .unwrap();
    let script = Script::new([status(429).retry_after("30")]);
    let inner = ConcurrencyLimit::new(script.clone(), 1);
    let retry = RetryLayer::new(policy).layer(inner.clone());
    let told = tokio::spawn(retry.clone().oneshot(request(Method::GET)));
    sleep(ms(1)).await;
    let (capture, _guard) = Capture::start();
    let held = tokio::spawn(timeout(secs(1), retry.oneshot(request(Method::GET))));
    sleep(ms(10)).await;
    // While it waits, it does not hold the readiness that its caller had waited for.
    script.push([status(200)]);
    timeout(Duration::ZERO, inner.oneshot(request(Method::GET))).await.expect("no permit is held").unwrap();
    assert!(held.await.unwrap().is_err());
    assert_eq!(capture.messages(), [(Level::DEBUG, "cancelled".to_owned())]);
    assert_eq!(capture.ours()[0].get("attempt"), "0");
    told.abort();
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_ended_is_not_cancelled() {
    let (capture, _guard) = Capture::start();
    for steps in [vec![status(200)], vec![status(404)], vec![fail(Failure::Reset); 3], vec![fail(Failure::Strange)]] {
        let _ = RetryLayer::new(policy()).layer(Script::new(steps)).oneshot(request(Method::GET)).await;
    }
    assert!(capture.ours().iter().all(|said| said.get("message") != "cancelled"));
}

#[tokio::test(start_paused = true)]
async fn what_ended_holds_nothing_while_it_is_kept() {
    // A future that is over may be kept, as `select!` in a loop does.
    let budget = Budget::custom(BudgetSetting::bucket(5.0)).unwrap();
    let script = Script::new([status(503)]).readiness([Readiness::Now, Readiness::Fails]);
    let retry = RetryLayer::new(builder().budget(budget.clone()).build().unwrap()).layer(script);
    let mut call = std::pin::pin!(retry.oneshot(request(Method::GET)));
    assert!(call.as_mut().await.is_err());
    assert_eq!(budget.level(), 5.0);
}

/// C126: a limit of one, a hundred calls dropped at instants that walk through every state, and then one more call.
async fn hundred_drops(inside: bool) {
    let script = Script::new([]);
    let budget = Budget::custom(BudgetSetting::bucket(500.0)).unwrap();
    let policy = builder().budget(budget.clone()).backoff(Backoff::exponential(ms(100)).max(ms(100)).multiplier(1.0));
    let policy = policy.build().unwrap();
    let limit = |on: bool| on.then(|| tower::limit::ConcurrencyLimitLayer::new(1));
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(secs(30)))
        .option_layer(limit(!inside))
        .layer(RetryLayer::new(policy))
        .option_layer(limit(inside))
        .service(script.clone());
    for n in 0..100 {
        let failing = if n % 2 == 0 { status(503).body(ScriptBody::silent()) } else { fail(Failure::Reset) };
        script.push([failing.after(ms(30)), status(502).after(ms(40)), hang()]);
        // From 0 to 693 ms in steps that hit every state at many points.
        let call = timeout(ms(n * 7), stack.clone().oneshot(request(Method::GET))).await;
        assert!(call.is_err(), "the script never answers well");
        assert_eq!((script.in_flight(), script.bodies_held()), (0, 0), "{n}");
        script.clear();
    }
    script.push([status(200)]);
    let last = timeout(Duration::ZERO, stack.oneshot(request(Method::GET))).await;
    assert_eq!(last.expect("the permit is back").unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn c126_a_hundred_phases_with_a_limit_inside() {
    hundred_drops(true).await;
}

#[tokio::test(start_paused = true)]
async fn c126_a_hundred_phases_with_a_limit_outside() {
    hundred_drops(false).await;
}
