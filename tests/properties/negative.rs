//! Each rule can fail: calls that break one, made by hand from calls that keep all of them.

use redial::Jitter;

use crate::{
    case::{Case, Ends, Observed, Stated},
    judge::{Rule, violations},
    script::{Failure, Readiness, ms, secs},
};

const fn answer(code: u16) -> Ends {
    Ends::Answer { code, retry_after: None, silent: false }
}

/// Fails twice and then succeeds: 0, 100 and 200 ms after its start.
fn kept() -> (Case, Observed) {
    let case = Case {
        steps: vec![(0, answer(503)), (0, Ends::Fail(Failure::Reset)), (0, answer(200)), (0, answer(200))],
        readiness: vec![Readiness::Now],
        method: "PUT",
        evidence: Stated::Nothing,
        attempts: 3,
        attempt: ms(1_000),
        total: ms(10_000),
        outer: None,
        floor: ms(100),
        initial: ms(100),
        jitter: Jitter::None,
        rejecting: false,
        longest_server_wait: secs(60),
        budget: Some(2),
    };
    let observed = case.run();
    assert_eq!(observed.seen.len(), 3);
    assert_eq!(violations(&case, &observed), []);
    (case, observed)
}

/// The rules that a call breaks once it, or what was asked of it, is changed.
fn broken(change: impl FnOnce(&mut Case, &mut Observed)) -> Vec<Rule> {
    let (mut case, mut observed) = kept();
    change(&mut case, &mut observed);
    violations(&case, &observed)
}

#[test]
fn one_request_too_many() {
    assert!(broken(|case, _| case.attempts = 2).contains(&Rule::MoreThanMaxAttempts));
    let fourth = |_: &mut Case, observed: &mut Observed| observed.seen.push(observed.seen[2].clone());
    assert!(broken(fourth).contains(&Rule::MoreThanMaxAttempts));
}

#[test]
fn a_request_or_an_end_past_the_deadline() {
    let shorter = |by| move |observed: &Observed| observed.seen[2].at - observed.start - ms(by);
    assert_eq!(broken(|case, observed| case.total = shorter(2)(observed)), [Rule::PastTheDeadline]);
    assert_eq!(broken(|case, observed| case.outer = Some(shorter(2)(observed))), [Rule::PastTheDeadline]);
    // A timer may be one millisecond late.
    assert_eq!(broken(|case, observed| case.total = shorter(1)(observed)), []);
    let late = broken(|case, observed| observed.elapsed = case.total + ms(2));
    assert!(late.contains(&Rule::PastTheDeadline));
}

#[test]
fn an_attempt_longer_than_its_timeout() {
    let long = broken(|_, observed| observed.seen[2].over = Some(observed.seen[2].at + ms(1_002)));
    assert!(long.contains(&Rule::AttemptTooLong));
}

#[test]
fn a_repeat_without_evidence() {
    assert!(broken(|case, _| case.method = "POST").contains(&Rule::RepeatedWithoutEvidence));
    assert!(broken(|case, _| case.evidence = Stated::NotEvenByMethod).contains(&Rule::RepeatedWithoutEvidence));
    assert_eq!(broken(|case, _| (case.method, case.evidence) = ("POST", Stated::Key)), []);
}

#[test]
fn a_repeat_of_what_does_not_pass() {
    assert!(broken(|case, _| case.steps[0].1 = answer(404)).contains(&Rule::RepeatedWhatDoesNotPass));
    assert!(broken(|case, _| case.steps[1].1 = Ends::Fail(Failure::Strange)).contains(&Rule::RepeatedWhatDoesNotPass));
    assert!(broken(|case, _| case.method = "CONNECT").contains(&Rule::RepeatedWhatDoesNotPass));
}

#[test]
fn a_repeat_earlier_than_the_server_said() {
    let told = Ends::Answer { code: 503, retry_after: Some("1"), silent: false };
    assert_eq!(broken(|case, _| case.steps[0].1 = told), [Rule::EarlierThanTheServerSaid]);
}

#[test]
fn a_wait_below_the_floor() {
    assert_eq!(broken(|case, _| case.floor = ms(101)), [Rule::BelowTheFloor]);
}

#[test]
fn a_repeat_beyond_the_budget() {
    assert_eq!(broken(|case, _| case.budget = Some(1)), [Rule::BeyondTheBudget]);
}

#[test]
fn a_stop_for_no_reason() {
    let mut case = kept().0;
    case.evidence = Stated::NotEvenByMethod;
    let observed = case.run();
    assert_eq!(violations(&case, &observed), []);
    case.evidence = Stated::Nothing;
    assert_eq!(violations(&case, &observed), [Rule::StoppedForNoReason]);
}

#[test]
fn a_report_of_something_else() {
    assert!(broken(|_, observed| observed.report = None).contains(&Rule::ReportIsNotWhatHappened));
    let changes: [fn(&mut Case, &mut Observed); 5] = [
        |_, observed| drop(observed.seen.pop()),
        |case, _| case.steps[0].1 = answer(502),
        |_, observed| observed.seen[1].attempt = Some(3),
        |_, observed| observed.elapsed -= ms(1),
        |_, observed| observed.seen[1].at += ms(1),
    ];
    for change in changes {
        assert!(broken(change).contains(&Rule::ReportIsNotWhatHappened));
    }
}
