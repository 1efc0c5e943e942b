//! What a shared budget does to calls (S20).

use http::{Method, Response};
use redial::{
    Backoff, Budget, CallReport, Error, RetryLayer, StandardPolicy, StopReason,
    policy::{StandardPolicyBuilder, budget::BudgetSetting},
};
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, ServiceExt};

use crate::{
    policies,
    script::{Failure, Script, ScriptBody, fail, ms, request, secs, status},
};

fn with(budget: &Budget) -> StandardPolicyBuilder {
    policies::builder().budget(budget.clone())
}

async fn call(policy: &StandardPolicy, script: &Script) -> Result<Response<redial::AnswerBody<ScriptBody>>, Error> {
    RetryLayer::new(policy.clone()).layer(script.clone()).oneshot(request(Method::GET)).await
}

fn stop(answer: &Response<redial::AnswerBody<ScriptBody>>) -> Option<StopReason> {
    answer.extensions().get::<CallReport>().and_then(CallReport::stop)
}

#[tokio::test(start_paused = true)]
async fn c116_time_brings_fractions() {
    // C116, by the engine: 2.5 a second.
    let budget = Budget::custom(BudgetSetting::bucket(10.0).initial(0.0).refill_per_second(2.5)).unwrap();
    let policy = with(&budget).attempts(2).build().unwrap();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(budget.level(), 2.5);
    tokio::time::sleep(secs(1)).await;
    let script = Script::always(status(503));
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let (policy, script) = (policy.clone(), script.clone());
        calls.spawn(async move { stop(&call(&policy, &script).await.unwrap()).unwrap() });
    }
    let stops = calls.join_all().await;
    assert_eq!(stops.iter().filter(|stop| **stop == StopReason::Attempts).count(), 5);
    assert_eq!(stops.iter().filter(|stop| **stop == StopReason::Budget).count(), 95);
    assert_eq!(script.count(), 105);
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(Budget::custom(BudgetSetting::bucket(10.0).refill_per_second(bad)).is_err());
    }
    assert!(Budget::custom(BudgetSetting::bucket(10.0).initial(11.0)).is_err());
}

#[tokio::test(start_paused = true)]
async fn c117_successes_fill_it_again() {
    // C117
    for budget in [Budget::usual(), Budget::aws()] {
        let policy = with(&budget).build().unwrap();
        let down = Script::always(status(503));
        while stop(&call(&policy, &down).await.unwrap()) != Some(StopReason::Budget) {}
        let well = Script::new(std::iter::repeat_n(status(200), 1_000).chain([status(503), status(200)]));
        for _ in 0..1_000 {
            call(&policy, &well).await.unwrap();
        }
        assert_eq!(call(&policy, &well).await.unwrap().status(), 200, "{budget:?}");
        assert_eq!(well.count(), 1_002);
    }
}

#[tokio::test(start_paused = true)]
async fn c118_attempts_bound_one_call_before_a_large_budget_does() {
    // C118 with the 9 attempts that can be had: 8 retries at 5 tokens each; the budget ends the call where it is less.
    for (capacity, requests, reason) in [(500.0, 9, StopReason::Attempts), (24.9, 5, StopReason::Budget)] {
        let budget = Budget::custom(BudgetSetting::bucket(capacity).cost(5.0)).unwrap();
        let policy = with(&budget).attempts_because(9, "the most there are").build().unwrap();
        let script = Script::always(status(503).body(ScriptBody::text("down")));
        let answer = call(&policy, &script).await.unwrap();
        assert_eq!((answer.status().as_u16(), script.count(), stop(&answer)), (503, requests, Some(reason)));
        assert!((budget.level() - (capacity - 5.0 * (requests - 1) as f64)).abs() < 1e-9);
    }
}

#[tokio::test(start_paused = true)]
async fn c121_a_refusal_comes_when_it_is_decided() {
    // C121: a thousand calls fail at once, a fifth may be repeated; the others do not wait for nothing.
    let budget = Budget::finagle(secs(10), 0, 0.2).unwrap();
    let policy = with(&budget).backoff(Backoff::default()).build().unwrap();
    let script =
        Script::new(std::iter::repeat_n(status(503).after(ms(10)), 1_000).chain(std::iter::repeat_n(status(200), 200)));
    let start = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..1_000 {
        let (policy, script) = (policy.clone(), script.clone());
        calls.spawn(async move {
            let answer = call(&policy, &script).await.unwrap();
            (answer.status().as_u16(), start.elapsed())
        });
    }
    let ends = calls.join_all().await;
    let refused: Vec<_> = ends.iter().filter(|end| end.0 == 503).collect();
    assert_eq!((refused.len(), script.count()), (800, 1_200));
    assert!(refused.iter().all(|end| end.1 == ms(10)), "at once");
}

#[tokio::test(start_paused = true)]
async fn c122_the_budget_is_named_and_the_first_failure_of_a_process_repeated() {
    // C122 (a): 200 calls to a server that throttles them all.
    let budget = Budget::usual();
    let policy = with(&budget).attempts_because(9, "the most there are").build().unwrap();
    let script = Script::always(status(429));
    for _ in 0..200 {
        assert_eq!(stop(&call(&policy, &script).await.unwrap()), Some(StopReason::Budget));
    }
    assert!(script.count() <= 205, "five failures and it is over: {}", script.count());
    let error = call(&policy, &Script::new([fail(Failure::Reset)])).await.unwrap_err();
    assert_eq!((error.stop(), error.is_exhausted()), (Some(StopReason::Budget), false));
    assert!(error.to_string().contains("retry budget spent"), "{error}");
    // (b)
    for budget in [Budget::usual(), Budget::aws(), Budget::grpc(10.0, 0.1).unwrap()] {
        let script = Script::new([status(503), status(200)]);
        assert_eq!(call(&with(&budget).build().unwrap(), &script).await.unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_cost_what_the_setting_says() {
    // AWS: 14 tokens after a failure, 5 after throttling.
    for (code, cost) in [(503, 14.0), (429, 5.0)] {
        let budget = Budget::aws();
        let script = Script::new([status(code), status(code)]);
        call(&with(&budget).attempts(2).build().unwrap(), &script).await.unwrap();
        assert_eq!(budget.level(), 500.0 - cost);
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_works_gives_its_cost_back() {
    let setting = BudgetSetting::bucket(5.0).per_first_success(0.2).refund_on_success(true);
    let budget = Budget::custom(setting).unwrap();
    let policy = with(&budget).build().unwrap();
    // Also one that a business answer ends: the provider did its work.
    for end in [200, 404] {
        call(&policy, &Script::new([status(503), status(end)])).await.unwrap();
        assert_eq!(budget.level(), 5.0);
    }
    call(&policy, &Script::new([status(503), status(503), status(200)])).await.unwrap();
    assert_eq!(budget.level(), 4.0);
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_the_provider_is_not_held_against_it() {
    // The caller's own mistakes would otherwise close the budget for calls that are well.
    let budget = Budget::usual();
    let policy = with(&budget).build().unwrap();
    for _ in 0..100 {
        call(&policy, &Script::new([fail(Failure::Strange)])).await.unwrap_err();
    }
    assert!(budget.is_open() && budget.level() == 12.5);
    // A business answer is its work done.
    for _ in 0..100 {
        call(&policy, &Script::new([status(404)])).await.unwrap();
    }
    assert!(budget.is_open());
    // A failure that passes is held against it.
    for _ in 0..100 {
        call(&with(&budget).attempts(1).build().unwrap(), &Script::new([fail(Failure::Reset)])).await.unwrap_err();
    }
    assert!(!budget.is_open());
}

#[tokio::test(start_paused = true)]
async fn an_outage_in_which_nothing_is_reached_costs_four_retries_too() {
    // Four calls at once, of which none is ever sent. Their first repeats are not charged, but they fail like any other.
    let budget = Budget::usual();
    let policy = with(&budget).build().unwrap();
    let script = Script::always(fail(Failure::Unsent));
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let (policy, script) = (policy.clone(), script.clone());
        calls.spawn(async move { drop(call(&policy, &script).await.unwrap_err()) });
    }
    calls.join_all().await;
    assert!(script.count() <= 4 + 4, "{} retries", script.count() - 4);
}

#[tokio::test(start_paused = true)]
async fn a_free_repeat_is_heard_as_any_other() {
    let usual = |ends: [crate::script::Step; 2]| async move {
        let budget = Budget::usual();
        let policy = with(&budget).attempts(2).build().unwrap();
        let _ = call(&policy, &Script::new(ends)).await;
        budget.level()
    };
    assert_eq!(usual([fail(Failure::Unsent), fail(Failure::Unsent)]).await, 10.5);
    assert_eq!(usual([fail(Failure::Unsent), status(200)]).await, 12.5);
}
