//! What a call reports: each attempt as it was.

use http::Method;
use redial::{AttemptOutcome, CallReport, FaultKind, Hint, Reach, RetryLayer, StopReason};
use tower::{Layer, ServiceExt};

use crate::{
    policies::policy,
    script::{Failure, Script, fail, hang, ms, request, secs, status},
};

async fn call(method: Method, script: &Script) -> Result<CallReport, redial::Error> {
    let response = RetryLayer::new(policy()).layer(script.clone()).oneshot(request(method)).await?;
    Ok(response.extensions().get::<CallReport>().cloned().expect("a report"))
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_in_it() {
    let script = Script::new([status(503).after(ms(30)).retry_after("2"), hang(), status(200).after(ms(5))]);
    let report = call(Method::GET, &script).await.unwrap();
    let attempts = report.attempts();
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2, 3]);

    let first = &attempts[0];
    assert_eq!(first.outcome, AttemptOutcome::Status(http::StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!((first.started, first.duration), (ms(0), ms(30)));
    assert_eq!((first.reach, first.hint, first.held), (Reach::Unknown, Hint::wait(secs(2)), false));
    assert_eq!(first.wait, Some(secs(2)), "an unjittered backoff adds nothing");

    let second = &attempts[1];
    assert_eq!(second.outcome, AttemptOutcome::Fault(FaultKind::Timeout));
    assert_eq!((second.started, second.duration, second.wait), (ms(2_030), secs(1), Some(ms(100))));
    assert_eq!((second.reach, second.hint), (Reach::Unknown, Hint::default()));

    let third = &attempts[2];
    assert_eq!((third.started, third.duration, third.wait), (ms(3_130), ms(5), None));
    assert_eq!(third.reach, Reach::Answered);

    assert_eq!((report.stop(), report.elapsed(), report.retry_at()), (None, ms(3_135), None));
    assert!(report.outcome_unknown() && !report.inner_stacked());
}

#[tokio::test(start_paused = true)]
async fn an_error_has_it_too() {
    let script = Script::new([fail(Failure::Reset), fail(Failure::Reset), fail(Failure::Reset)]);
    let error = call(Method::GET, &script).await.unwrap_err();
    let report = error.report().unwrap();
    assert_eq!((report.attempts().len(), report.stop()), (3, Some(StopReason::Attempts)));
    assert!(report.outcome_unknown() && error.is_exhausted() && !error.is_timeout());
    assert_eq!(
        error.to_string(),
        "shop any: the request failed after 3 attempts in 200.0ms (all attempts made): reset by the script"
    );
}

#[tokio::test(start_paused = true)]
async fn unsent_is_known() {
    let script = Script::new([fail(Failure::Unsent), status(201)]);
    let report = call(Method::POST, &script).await.unwrap();
    assert_eq!(report.attempts()[0].reach, Reach::NotSent);
    assert!(!report.outcome_unknown());
}

#[tokio::test(start_paused = true)]
async fn predicates_answer_alike_after_any_number_of_retries() {
    for failures in 1..=3 {
        let method = if failures == 1 { Method::POST } else { Method::GET };
        let script = Script::new(std::iter::repeat_n(fail(Failure::Unsent), 2).chain([fail(Failure::Unsent)]));
        let error = call(method, &script).await.unwrap_err();
        assert!(error.is_connect() && !error.is_timeout() && error.is_exhausted());
        let script = Script::new(std::iter::repeat_n(hang(), failures));
        let retry = RetryLayer::new(crate::policies::builder().attempts(failures as u32).build().unwrap());
        let error = retry.layer(script).oneshot(request(Method::GET)).await.unwrap_err();
        assert!(error.is_timeout() && !error.is_connect() && !error.is_deadline(), "{failures}");
    }
}
