//! Errors that a user's tests can make, told apart as those of real calls are.

use redial::{
    AttemptOutcome, AttemptTimedOut, Error, FaultKind, Hint, Reach, StopReason,
    testing::{ReportBuilder, error},
};

use super::*;

/// Every predicate that holds, and whether the request is provably unsent.
fn holds(error: &Error) -> Vec<&'static str> {
    let all = [
        ("timeout", error.is_timeout()),
        ("deadline", error.is_deadline()),
        ("outer", error.is_outer_deadline()),
        ("connect", error.is_connect()),
        ("exhausted", error.is_exhausted()),
        ("permanent", error.is_permanent()),
        ("not ready", error.is_not_ready()),
        ("body", error.is_body()),
        ("unsent", error.fault().is_some_and(|fault| fault.is_unsent())),
        ("unknown", error.report().is_some_and(|report| report.outcome_unknown())),
    ];
    all.into_iter().filter_map(|(name, holds)| holds.then_some(name)).collect()
}

#[test]
fn c136_three_timeouts_told_apart() {
    let second = Duration::from_secs(1);
    assert_eq!(holds(&error::connect()), ["connect", "exhausted", "unsent"]);
    let attempt = error::attempt_timeout(second);
    assert_eq!(holds(&attempt), ["timeout", "exhausted", "unknown"]);
    assert_eq!(attempt.find_source::<AttemptTimedOut>().map(AttemptTimedOut::after), Some(second));
    assert_eq!(holds(&error::total_timeout(second)), ["timeout", "deadline", "unknown"]);
    assert_eq!(holds(&error::outer_deadline()), ["timeout", "deadline", "outer", "unknown"]);
}

#[test]
fn the_others() {
    assert_eq!(holds(&error::dns()), ["connect", "exhausted", "unsent"]);
    assert_eq!(holds(&error::reset()), ["exhausted", "unknown"]);
    assert_eq!(holds(&error::closed()), ["exhausted", "unknown"]);
    assert_eq!(holds(&error::refused_stream()), ["exhausted", "unsent"]);
    assert_eq!(holds(&error::failed_with("strange".into())), ["permanent", "unknown"]);
    assert_eq!(holds(&error::not_ready()), ["not ready"]);
    assert_eq!(holds(&error::body()), ["body"]);
    assert!(error::closed().find_source::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message));
    assert!(error::reset().to_string().ends_with("(all attempts made): connection reset, says the script"));
}

#[test]
fn a_report() {
    let report = ReportBuilder::new()
        .answered(503)
        .took(Duration::from_millis(30))
        .hint(Hint::wait(Duration::from_millis(200)))
        .wait(Duration::from_millis(200))
        .failed(FaultKind::Reset)
        .took(Duration::from_millis(5))
        .stop(StopReason::NoEvidence)
        .build();
    let [first, second] = report.attempts() else { panic!("{report:?}") };
    assert_eq!((first.number, first.started, first.reach), (1, Duration::ZERO, Reach::Answered));
    assert_eq!((second.number, second.started), (2, Duration::from_millis(230)));
    assert_eq!(second.outcome, AttemptOutcome::Fault(FaultKind::Reset));
    assert_eq!((report.elapsed(), report.stop()), (Duration::from_millis(235), Some(StopReason::NoEvidence)));
    assert!(report.outcome_unknown());

    let error = error::with_report(error::connect(), report);
    assert_eq!(error.stop(), Some(StopReason::NoEvidence));
    assert!(error.is_connect() && error.to_string().contains("after 2 attempts in 235.0ms"), "{error}");
}
