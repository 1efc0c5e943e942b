//! Rules on status, headers and earlier attempts.

use std::time::Duration;

use http::{HeaderName, Method, Request};
use http_body_util::Full;
use redial::{
    CallReport, Class, Evidence, Outcome, RetryLayer, StandardPolicy, StopReason, Transient,
    policy::{AnswerRule, Meaning, Unit},
    testing::{self, Reply},
};
use tower::{Layer, ServiceExt};

use crate::{
    call,
    policies::{builder, builder_within, timeouts},
    stop,
};

fn remaining() -> HeaderName {
    HeaderName::from_static("x-ratelimit-remaining")
}

fn limited() -> AnswerRule {
    AnswerRule::rejected("the provider's page on limits")
        .status([403, 429])
        .header(remaining(), "0")
        .wait_header(HeaderName::from_static("x-ratelimit-reset-after"), Unit::Seconds)
}

#[tokio::test(start_paused = true)]
async fn a_documented_rejection_needs_no_evidence_and_waits_as_long_as_it_says() {
    let policy = builder().answer(limited()).build().unwrap();
    let spent = Reply::status(403).header("X-RateLimit-Remaining", " 0 ").header("x-ratelimit-reset-after", "7");
    let (answer, service) = call(policy, Method::POST, [spent, Reply::ok("")]).await;
    assert_eq!(answer.status(), 200);
    let gap = service.seen().sent(2).gaps()[0];
    assert!(gap >= Duration::from_secs(7), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn one_condition_that_does_not_hold_is_enough() {
    for reply in [
        Reply::status(403).header("x-ratelimit-remaining", "1"),
        Reply::status(403).header("x-ratelimit-remaining", "00"),
        Reply::status(403),
        Reply::status(401).header("x-ratelimit-remaining", "0"),
    ] {
        let policy = builder().answer(limited()).build().unwrap();
        let (_, service) = call(policy, Method::GET, [reply]).await;
        service.seen().sent(1);
    }
}

/// Of several lines of one name, one is enough.
#[tokio::test(start_paused = true)]
async fn several_lines_of_one_name() {
    let policy = builder().answer(limited()).build().unwrap();
    let reply = Reply::status(429).header("x-ratelimit-remaining", "5").header("x-ratelimit-remaining", "0");
    let (_, service) = call(policy, Method::POST, [reply, Reply::ok("")]).await;
    service.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_matches_wins_and_rules_come_before_lists() {
    let policy = builder()
        .answer(AnswerRule::business().status([503]).header_present(HeaderName::from_static("x-maintenance")))
        .answer(AnswerRule::verify().status([503]).header(HeaderName::from_static("x-maintenance"), "yes"))
        .build()
        .unwrap();
    let (answer, service) =
        call(policy.clone(), Method::GET, [Reply::status(503).header("x-maintenance", "yes")]).await;
    service.seen().sent(1);
    assert_eq!(stop(&answer), None, "a business answer at the first try: nothing was refused");
    let (_, service) = call(policy, Method::GET, [Reply::status(503), Reply::ok("")]).await;
    service.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn an_absence_that_is_what_was_asked_for() {
    let policy = builder().answer(AnswerRule::success().status([404])).build().unwrap();
    let (answer, service) = call(policy, Method::GET, [Reply::status(503), Reply::status(404)]).await;
    service.seen().sent(2);
    let report = answer.extensions().get::<CallReport>().unwrap();
    assert_eq!((report.stop(), report.attempts().len()), (None, 2));
}

/// The 409 of a first try is an answer; that of a repeat may mean that the first try worked.
#[tokio::test(start_paused = true)]
async fn a_conflict_after_an_unknown_outcome_is_looked_at() {
    let conflict = || AnswerRule::verify().status([409, 422]).after_unknown();
    let policy = || builder().business([409]).answer(conflict()).build().unwrap();
    let (answer, _) = call(policy(), Method::PUT, [Reply::status(409)]).await;
    assert_eq!(stop(&answer), None);
    let (answer, _) = call(policy(), Method::PUT, [Reply::close(), Reply::status(409)]).await;
    assert_eq!(stop(&answer), Some(StopReason::Verify));
    assert!(answer.extensions().get::<CallReport>().unwrap().outcome_unknown());
    // Provably never sent: the conflict is another's.
    let (answer, _) = call(policy(), Method::PUT, [Reply::not_connected(), Reply::status(409)]).await;
    assert_eq!(stop(&answer), Some(StopReason::Permanent));
}

#[tokio::test(start_paused = true)]
async fn a_documented_least_wait_beside_the_servers_own_word() {
    let minute = Duration::from_secs(60);
    let policy = |longest: u64| {
        let rule = AnswerRule::rejected("a minute at least, says the page").status([429]).at_least(minute);
        builder_within(timeouts(1_000, longest)).answer(rule).build().unwrap()
    };
    for (reply, least) in [
        (Reply::status(429), 60),
        (Reply::status(429).header("retry-after", "5"), 60),
        (Reply::status(429).header("retry-after", "90"), 90),
    ] {
        let (_, service) = call(policy(600_000), Method::POST, [reply, Reply::ok("")]).await;
        let gap = service.seen().sent(2).gaps()[0];
        assert!(gap >= Duration::from_secs(least) && gap < Duration::from_secs(400), "{gap:?} for {least}");
    }
    // Longer than the call may take: stopped at once, and it says until when.
    let (answer, service) = call(policy(30_000), Method::POST, [Reply::status(429)]).await;
    service.seen().sent(1);
    assert_eq!(stop(&answer), Some(StopReason::WaitTooLong));
    assert!(answer.extensions().get::<CallReport>().unwrap().retry_at().is_some());
}

/// A rule gives no evidence unless it says "rejected".
#[tokio::test(start_paused = true)]
async fn a_transient_rule_needs_evidence() {
    let rule = AnswerRule::transient().status([423]).because("locks are held for milliseconds");
    let policy = builder().answer(rule).build().unwrap();
    let (answer, _) = call(policy.clone(), Method::POST, [Reply::status(423)]).await;
    assert_eq!(stop(&answer), Some(StopReason::NoEvidence));
    let (_, service) = call(policy, Method::PUT, [Reply::status(423), Reply::ok("")]).await;
    service.seen().sent(2);
}

/// D31: the provider saves its answer to a key, and a repeat would be told the same.
#[tokio::test(start_paused = true)]
async fn saved_answers_are_not_asked_for_again() {
    let policy = |replays: bool| {
        let transient = Transient::usual().rejected(429, "never processed, says the page");
        let builder = StandardPolicy::builder("pay", timeouts(1_000, 60_000), transient);
        if replays { builder.key_replays().build().unwrap() } else { builder.build().unwrap() }
    };
    let send = async |policy: StandardPolicy, method: Method, replies: Vec<Reply>| {
        let service = testing::service(testing::Script::new(replies).exact());
        let request = Request::builder().method(method).uri("/charges").header("idempotency-key", "\"k\"");
        let request = request.body(Full::<bytes::Bytes>::from("one")).unwrap();
        let answer = RetryLayer::new(policy).layer(service.clone()).oneshot(request).await.unwrap();
        (service.seen().requests.len(), stop(&answer))
    };
    let failed = || vec![Reply::status(500), Reply::ok("")];
    assert_eq!(send(policy(false), Method::POST, failed()).await, (2, None));
    assert_eq!(send(policy(true), Method::POST, vec![Reply::status(500)]).await, (1, Some(StopReason::ServerSaidNo)));
    // What was not answered is asked again, and so is what was documented as not processed.
    assert_eq!(send(policy(true), Method::POST, vec![Reply::close(), Reply::ok("")]).await, (2, None));
    assert_eq!(send(policy(true), Method::POST, vec![Reply::status(429), Reply::ok("")]).await, (2, None));
    // A GET is repeated for its method's sake: a provider saves answers to keys of writes.
    assert_eq!(send(policy(true), Method::GET, failed()).await, (2, None));
}

#[test]
fn rules_that_cannot_be_built() {
    let error = builder()
        .answer(AnswerRule::business())
        .answer(AnswerRule::transient().status([404, 200, 999]))
        .answer(AnswerRule::rejected(" ").status([503]))
        .answer(AnswerRule::verify().status([409]).at_least(Duration::from_secs(90_000)))
        .build()
        .unwrap_err();
    assert_eq!(error.rules().collect::<Vec<_>>(), ["S5", "S5", "S5", "S6", "S7", "S11"], "{error}");
}

#[test]
fn what_it_says_can_be_asked() {
    assert_eq!(limited().means(), Meaning::Rejected);
    let policy = builder().answer(limited()).build().unwrap();
    let request = Request::get("/").body(()).unwrap();
    let plan = redial::Policy::plan(&policy, &redial::RequestHead::of(&request));
    assert_eq!(plan.evidence(), Some(&Evidence::Method));
    let headers = [(remaining(), "0".parse().unwrap())].into_iter().collect();
    let outcome = Outcome::answer(http::StatusCode::FORBIDDEN, &headers);
    let verdict = redial::Policy::judge(&policy, &plan, &outcome);
    assert_eq!(
        (verdict.class(), verdict.rejected_because()),
        (Class::Transient, Some("the provider's page on limits"))
    );
}
