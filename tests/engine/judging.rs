//! Verdicts by closure and by hand, and what they cannot do.

use std::sync::Arc;

use http::{Method, StatusCode};
use redial::{
    CallReport, Hint, Outcome, Plan, Policy, Reach, RequestHead, RetryLayer, StandardPolicy, StopReason, Verdict,
};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, policy},
    script::{Failure, Script, fail, hang, ms, request, secs, status},
};

#[tokio::test(start_paused = true)]
async fn a_closure_allows_and_forbids() {
    let policy = builder()
        .judge_with(|plan, outcome, verdict| {
            assert_eq!((plan.provider(), outcome.attempt() > 0), ("shop", true));
            match outcome.status().map(|status| status.as_u16()) {
                Some(404) => Verdict::transient(), // eventually consistent
                Some(503) => Verdict::permanent(),
                _ => verdict,
            }
        })
        .build()
        .unwrap();
    let script = Script::new([status(404), status(200), status(503)]);
    let retry = RetryLayer::new(policy).layer(script.clone());
    assert_eq!(retry.clone().oneshot(request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    let refused = retry.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((refused.status(), script.count()), (StatusCode::SERVICE_UNAVAILABLE, 3));
}

#[tokio::test(start_paused = true)]
async fn a_closure_does_not_shorten_the_servers_wait() {
    let verdicts: [fn() -> Verdict; 3] = [
        Verdict::transient,
        || Verdict::transient().with_hint(Hint::wait(ms(1))),
        || Verdict::rejected("documented").with_hint(Hint::default()),
    ];
    for verdict in verdicts {
        let judge = move |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| match outcome.status() {
            Some(StatusCode::OK) => standard,
            _ => verdict(),
        };
        // Also where only the closure calls the answer transient.
        for code in [429, 418] {
            let start = Instant::now();
            let script = Script::new([status(code).retry_after("5"), status(200)]);
            let policy = builder().judge_with(judge).build().unwrap();
            RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
            assert_eq!(script.millis(start), [0, 5_000]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_lengthen_it() {
    let policy = builder().judge_with(|_, _, verdict| match verdict.class() {
        redial::Class::Transient => verdict.with_hint(Hint::wait(secs(7))),
        _ => verdict,
    });
    let start = Instant::now();
    let script = Script::new([status(429).retry_after("5"), status(200)]);
    let retry = RetryLayer::new(policy.build().unwrap()).layer(script.clone());
    retry.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(script.millis(start), [0, 7_000]);
}

#[tokio::test(start_paused = true)]
async fn no_verdict_says_never_sent() {
    // The strongest that a policy can say is "rejected", which needs an answer that the provider documents so. Where
    // there was none, nobody documented anything: a timeout stays of unknown reach.
    let policy = builder().judge_with(|_, _, _| Verdict::rejected("so I say").with_hint(Hint::wait(ms(1))));
    let policy = policy.build().unwrap();
    for failing in [hang(), fail(Failure::Reset), fail(Failure::Strange)] {
        let script = Script::new([failing]);
        let retry = RetryLayer::new(policy.clone()).layer(script.clone());
        let error = retry.oneshot(request(Method::POST)).await.unwrap_err();
        assert_eq!((error.stop(), script.count()), (Some(StopReason::NoEvidence), 1));
        let report = error.report().unwrap();
        assert_eq!(report.attempts()[0].reach, Reach::Unknown);
        assert!(report.outcome_unknown());
    }
}

/// A policy by hand: it borrows the plan of a built one, and can only tighten it.
struct ByHand(StandardPolicy);

impl Policy for ByHand {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        let plan = self.0.plan(head);
        match head.uri().path() {
            "/orders" => plan.at_most_attempts(2).at_most_attempts(9).at_most_total(secs(5)).at_most_total(secs(50)),
            _ => plan.never_retry(),
        }
    }

    fn judge(&self, _: &Plan, outcome: &Outcome<'_>) -> Verdict {
        match outcome.status() {
            Some(status) if status.is_success() => Verdict::success(),
            _ => Verdict::transient(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_by_hand_keeps_the_rules() {
    let start = Instant::now();
    let script = Script::always(status(418).retry_after("2"));
    let policy: Arc<dyn Policy + Send + Sync> = Arc::new(ByHand(policy()));
    let response =
        RetryLayer::new(Arc::clone(&policy)).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    let report = response.extensions().get::<CallReport>().unwrap();
    assert_eq!(report.stop(), Some(StopReason::Attempts));
    assert_eq!(script.millis(start), [0, 2_000], "the server's word holds for it too");

    let plan = policy.plan(&RequestHead::of(&request(Method::GET)));
    assert_eq!((plan.max_attempts(), plan.timeouts().total), (2, secs(5)));
    // Without evidence it is stopped like any other.
    let script = Script::always(status(418));
    let response = RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::POST)).await.unwrap();
    assert_eq!(response.extensions().get::<CallReport>().unwrap().stop(), Some(StopReason::NoEvidence));
}
