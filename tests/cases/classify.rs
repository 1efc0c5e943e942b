//! Which answers are repeated.

use http::{Method, Request, StatusCode};
use redial::{CallReport, Outcome, Plan, Reach, StopReason, Transient, Verdict};
use tokio::time::Instant;

use crate::{
    call,
    policies::{builder, policy, timeouts},
    script::{Failure, Script, ScriptBody, fail, ms, request, status, text},
    stop,
};

#[tokio::test(start_paused = true)]
async fn c024_retry_after_on_an_answer_that_is_no_failure_means_nothing() {
    for code in [200, 202, 301, 404] {
        let script = Script::new([status(code).retry_after("5").body(ScriptBody::text("as it is"))]);
        let start = Instant::now();
        let answer = call(&policy(), &script, request(Method::GET)).await.unwrap();
        assert_eq!((answer.status().as_u16(), start.elapsed(), script.count()), (code, ms(0), 1));
        assert_eq!(text(answer).await, "as it is");
    }
}

#[tokio::test(start_paused = true)]
async fn c025_what_a_server_does_not_support_is_not_asked_again() {
    for code in [501, 505, 510, 511] {
        let script = Script::new([status(code)]);
        let answer = call(&policy(), &script, request(Method::GET)).await.unwrap();
        assert_eq!((answer.status().as_u16(), script.count()), (code, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn c026_a_vendors_own_statuses_are_repeated_where_the_policy_lists_them() {
    let transient = [520, 522, 524, 529].into_iter().fold(Transient::usual(), Transient::status);
    let transient = transient.rejected(529, "the provider's page on overload: refused before any work");
    let policy = redial::StandardPolicy::builder("vendor", timeouts(1_000, 9_000), transient).attempts(2);
    let policy = policy.build().unwrap();
    for code in [529, 520, 522, 524, 503] {
        let script = Script::new([status(code), status(200)]);
        let answer = call(&policy, &script, request(Method::GET)).await.unwrap();
        assert_eq!((answer.status().as_u16(), script.count()), (200, 2), "{code}");
    }
    // Without evidence: only what the policy says was not processed.
    for (code, requests) in [(529, 2), (503, 1), (520, 1), (522, 1), (524, 1)] {
        let script = Script::new([status(code), status(200)]);
        call(&policy, &script, request(Method::POST)).await.unwrap();
        assert_eq!(script.count(), requests, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn c028_a_misdirected_request_is_final() {
    // D13: only where the connection can be given up, which no tower service can be asked to do.
    for method in [Method::GET, Method::POST] {
        let script = Script::new([status(421)]);
        let answer = call(&policy(), &script, request(method)).await.unwrap();
        assert_eq!((answer.status(), script.count()), (StatusCode::MISDIRECTED_REQUEST, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn c029_too_early_is_asked_again() {
    // RFC 8470, 5.2: refused before processing. D11: a policy has to say so before a POST is repeated for it.
    let transient = Transient::usual().rejected(425, "RFC 8470, section 5.2");
    let policy = redial::StandardPolicy::builder("early", timeouts(1_000, 9_000), transient).attempts(2);
    let policy = policy.build().unwrap();
    for method in [Method::GET, Method::POST] {
        let script = Script::new([status(425), status(200)]);
        assert_eq!(call(&policy, &script, request(method)).await.unwrap().status(), StatusCode::OK);
        assert_eq!(script.count(), 2);
    }
    let script = Script::always(status(425));
    assert_eq!(call(&policy, &script, request(Method::GET)).await.unwrap().status(), StatusCode::TOO_EARLY);
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn c030_too_large_is_asked_again_only_where_the_server_says_when() {
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| {
        let when = outcome.headers().is_some_and(|headers| headers.contains_key("retry-after"));
        if outcome.status() == Some(StatusCode::PAYLOAD_TOO_LARGE) && when { Verdict::transient() } else { standard }
    };
    let policy = builder().judge_with(judge).build().unwrap();

    let script = Script::new([status(413)]);
    call(&policy, &script, request(Method::PUT)).await.unwrap();
    assert_eq!(script.count(), 1);

    let (script, start) = (Script::new([status(413).retry_after("1"), status(200)]), Instant::now());
    assert_eq!(call(&policy, &script, request(Method::PUT)).await.unwrap().status(), StatusCode::OK);
    assert!(script.millis(start)[1] >= 1_000);
}

fn put_if_absent() -> Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = request(Method::PUT);
    request.headers_mut().insert("if-none-match", "*".parse().unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn c037_a_conflict_by_contract_a_failed_precondition_never() {
    let transient = Transient::usual().status_because(409, "another conditional write is in progress; try again");
    let policy = redial::StandardPolicy::builder("store", timeouts(1_000, 9_000), transient).build().unwrap();
    let script = Script::new([status(409), status(200)]);
    assert_eq!(call(&policy, &script, put_if_absent()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(script.count(), 2);

    let script = Script::new([status(412)]);
    assert_eq!(call(&policy, &script, put_if_absent()).await.unwrap().status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn c038_a_failed_precondition_after_a_lost_answer_may_be_our_own_success() {
    let script = Script::new([fail(Failure::Reset), status(412)]);
    let answer = call(&policy(), &script, put_if_absent()).await.unwrap();
    let report = answer.extensions().get::<CallReport>().unwrap();
    assert_eq!((answer.status(), report.attempts().len()), (StatusCode::PRECONDITION_FAILED, 2));
    assert!(report.outcome_unknown());
    assert_eq!(report.attempts()[0].reach, Reach::Unknown);

    // By choice it has a name.
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| match outcome.status() {
        Some(StatusCode::PRECONDITION_FAILED) if outcome.earlier_unknown() => Verdict::verify(),
        _ => standard,
    };
    let policy = builder().judge_with(judge).build().unwrap();
    let script = Script::new([fail(Failure::Reset), status(412)]);
    assert_eq!(stop(&call(&policy, &script, put_if_absent()).await.unwrap()), Some(StopReason::Verify));

    // By choice a conditional request is not repeated at all after such a loss.
    let careful = builder().not_idempotent(Method::PUT).build().unwrap();
    let script = Script::new([fail(Failure::Reset)]);
    let error = call(&careful, &script, put_if_absent()).await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::NoEvidence));
}

#[tokio::test(start_paused = true)]
async fn c049_a_reset_is_repeated_for_a_get() {
    // Its form on the wire is in `faults` and `once`.
    let script = Script::new([fail(Failure::Reset), status(200)]);
    assert_eq!(call(&policy(), &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn c001_a_fraction_of_a_second_is_waited_for() {
    let (script, start) = (Script::new([status(429).retry_after("0.503"), status(200)]), Instant::now());
    assert_eq!(call(&policy(), &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    assert!(script.count() == 2 && script.millis(start)[1] >= 503);
}

#[tokio::test(start_paused = true)]
async fn c006_a_date_is_waited_for() {
    let clock = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_445_412_477); // 2015-10-21T07:27:57Z
    let policy = builder().clock(redial::Clock::fixed(clock)).build().unwrap();
    let script = Script::new([status(503).retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), status(200)]);
    let start = Instant::now();
    assert_eq!(call(&policy, &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    assert!(script.count() == 2 && script.millis(start)[1] >= 3_000);
}

#[tokio::test(start_paused = true)]
async fn c020_a_requests_own_header_is_not_asked() {
    let mut own = request(Method::GET);
    own.headers_mut().insert("retry-after", "1".parse().unwrap());
    let (script, start) = (Script::new([status(503).retry_after("5"), status(200)]), Instant::now());
    call(&policy(), &script, own).await.unwrap();
    assert!(script.millis(start)[1] >= 5_000);
}
