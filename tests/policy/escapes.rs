//! Ways around the rules that do not lead around them.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, StatusCode};
use http_body_util::Full;
use redial::{
    Backoff, Budget, CallReport, Hold, HoldScope, Outcome, Plan, Policy, RequestHead, RequestOptions, RetryLayer,
    Routes, StandardPolicy, StopReason, Verdict,
};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, policy},
    script::{Failure, Script, fail, request, status},
};

async fn sent(
    policy: impl Policy + Clone,
    script: &Script,
    request: Request<Full<Bytes>>,
) -> (usize, Option<StopReason>) {
    let stop = match RetryLayer::new(policy).layer(script.clone()).oneshot(request).await {
        Ok(answer) => answer.extensions().get().and_then(CallReport::stop),
        Err(error) => error.stop(),
    };
    (script.count(), stop)
}

#[tokio::test(start_paused = true)]
async fn a_blank_document_is_none() {
    let policy = builder().judge_with(|_, _, _| Verdict::rejected("  ")).build().unwrap();
    let script = Script::new([status(500)]);
    assert_eq!(sent(policy, &script, request(Method::POST)).await, (1, Some(StopReason::NoEvidence)));
}

#[tokio::test(start_paused = true)]
async fn the_servers_no_stands_whoever_judges() {
    let header = HeaderName::from_static("x-should-retry");
    let policy = builder().should_retry_header(header).judge_with(|_, _, _| Verdict::transient()).build().unwrap();
    for code in [503, 418] {
        let script = Script::new([status(code).header("x-should-retry", "false")]);
        assert_eq!(sent(policy.clone(), &script, request(Method::GET)).await, (1, Some(StopReason::ServerSaidNo)));
    }
}

/// Plans every request as if it were a GET.
#[derive(Clone)]
struct Borrowed(StandardPolicy);

impl Policy for Borrowed {
    fn plan(&self, _: &RequestHead<'_>) -> Plan {
        self.0.plan(&RequestHead::of(&Request::new(())))
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        self.0.judge(plan, outcome)
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_idempotent_is_no_evidence_in_a_borrowed_plan() {
    let script = Script::new([fail(Failure::Reset)]);
    let borrowed = Borrowed(policy());
    assert_eq!(sent(borrowed, &script, request(Method::POST)).await, (1, Some(StopReason::NoEvidence)));
}

/// Keeps the first plan that was made, and hands it out for every request.
#[derive(Clone)]
struct Kept(StandardPolicy, Arc<OnceLock<Plan>>);

impl Policy for Kept {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        self.1.get_or_init(|| self.0.plan(head)).clone()
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        self.0.judge(plan, outcome)
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_request_states_is_no_evidence_for_the_next() {
    let kept = Kept(policy(), Arc::default());
    let mut stated = request(Method::POST);
    stated.extensions_mut().insert(RequestOptions::new().idempotent("order 7 is made once"));
    let script = Script::new([fail(Failure::Reset), status(200)]);
    assert_eq!(sent(kept.clone(), &script, stated.clone()).await, (2, None));
    let script = Script::new([fail(Failure::Reset)]);
    assert_eq!(sent(kept.clone(), &script, request(Method::POST)).await, (1, Some(StopReason::NoEvidence)));
    // The next one's own word holds, and so does the operation's.
    let script = Script::new([fail(Failure::Reset), status(200)]);
    assert_eq!(sent(kept, &script, stated).await, (2, None));
    let kept = Kept(builder().idempotent("orders have numbers").build().unwrap(), Arc::default());
    for _ in 0..2 {
        let script = Script::new([fail(Failure::Reset), status(200)]);
        assert_eq!(sent(kept.clone(), &script, request(Method::POST)).await, (2, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_requests_own_options_hold_whoever_plans() {
    let mut own = request(Method::GET);
    own.extensions_mut().insert(RequestOptions::new().never_retry());
    let script = Script::new([status(503)]);
    assert_eq!(sent(Borrowed(policy()), &script, own).await, (1, Some(StopReason::Attempts)));
}

#[tokio::test(start_paused = true)]
async fn a_server_error_that_nobody_listed_is_no_success() {
    let budget = Budget::usual();
    let policy = builder().budget(budget.clone()).build().unwrap();
    while budget.level() >= 1.0 {
        let script = Script::new([status(503), status(503), status(503)]);
        sent(policy.clone(), &script, request(Method::GET)).await;
        if !budget.is_open() {
            break;
        }
    }
    let before = budget.level();
    for _ in 0..25 {
        sent(policy.clone(), &Script::new([status(501)]), request(Method::GET)).await;
    }
    assert_eq!(budget.level(), before, "a 501 earns nothing");
    sent(policy, &Script::new([status(404)]), request(Method::GET)).await;
    assert!(budget.level() > before, "a business answer does");
}

#[tokio::test(start_paused = true)]
async fn what_one_operation_was_told_holds_for_its_providers_others() {
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| match outcome.status() {
        Some(StatusCode::TOO_MANY_REQUESTS) => Verdict::rejected("the guide, page 3"),
        _ => standard,
    };
    let shop = |operation: &str| {
        let timeouts = redial::Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(90) };
        let backoff = Backoff::fixed(Duration::from_millis(100), "tests are exact");
        StandardPolicy::builder("shop", timeouts, redial::Transient::usual())
            .operation(operation)
            .backoff(backoff)
            .judge_with(judge)
            .build()
            .unwrap()
    };
    let own = shop("own");
    let routes = Routes::builder(StandardPolicy::unretried("other", Duration::from_secs(9)).unwrap())
        .route("/a", shop("a"))
        .route("/b", shop("b"))
        .route("/own", own)
        .build()
        .unwrap();
    let to = |path: &str| {
        let mut request = request(Method::GET);
        *request.uri_mut() = format!("http://api.example{path}").parse().unwrap();
        request
    };
    let start = Instant::now();
    let (told, other) =
        (Script::new([status(429).retry_after("30"), status(200)]), Script::new([status(503), status(200)]));
    let told_call = sent(routes.clone(), &told, to("/a"));
    let other_call = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        sent(routes.clone(), &other, to("/b")).await
    };
    assert_eq!(tokio::join!(told_call, other_call), ((2, None), (2, None)));
    assert!(other.millis(start)[1] >= 30_000, "{:?}", other.millis(start));
}

#[tokio::test(start_paused = true)]
async fn the_held_come_back_spread_also_those_who_came_last() {
    let hold = Hold::new();
    let policy = builder()
        .backoff(Backoff::exponential(Duration::from_millis(200)).max(Duration::from_secs(2)))
        .hold(HoldScope::All, hold.clone())
        .judge_with(|_, outcome, standard| match outcome.status() {
            Some(StatusCode::TOO_MANY_REQUESTS) => Verdict::rejected("the guide, page 3"),
            _ => standard,
        })
        .attempts(1)
        .build()
        .unwrap();
    sent(policy.clone(), &Script::new([status(429).retry_after("30")]), request(Method::GET)).await;
    tokio::time::sleep(Duration::from_millis(29_950)).await;
    let (start, script) = (Instant::now(), Script::always(status(200)));
    let calls = (0..100).map(|_| sent(policy.clone(), &script, request(Method::GET)));
    futures_util::future::join_all(calls).await;
    let (first, last) = (script.millis(start)[0], script.millis(start)[99]);
    assert!(first >= 50 && last - first >= 150, "released between {first} and {last} ms");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_polls_has_not_failed() {
    let (capture, _guard) = crate::capture::Capture::start();
    let mut late = request(Method::GET);
    late.extensions_mut().insert(redial::Deadline::at(Instant::now()));
    let script = Script::new([]);
    let mut service = RetryLayer::new(policy()).layer(script.clone());
    let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await.unwrap();
    let call = tower::Service::call(ready, late);
    assert!(capture.all().iter().all(|said| said.level != tracing::Level::ERROR));
    assert_eq!(call.await.unwrap_err().stop(), Some(StopReason::Deadline));
    assert_eq!(script.count(), 0);
}
