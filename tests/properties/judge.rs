//! The rules, told from the case and from what the service saw: an account of its own, which shares no code with the
//! engine.

use std::time::Duration;

use redial::{AttemptOutcome, FaultKind, Reach, StopReason};

use crate::{
    case::{Case, Ends, LONGEST_WAIT, Observed, Stated},
    script::{Failure, Readiness, ms},
};

/// tokio's timers fire at the next whole millisecond.
const GRAIN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    MoreThanMaxAttempts,
    PastTheDeadline,
    AttemptTooLong,
    RepeatedWithoutEvidence,
    RepeatedWhatDoesNotPass,
    EarlierThanTheServerSaid,
    BelowTheFloor,
    BeyondTheBudget,
    ReportIsNotWhatHappened,
    /// Without this one, a layer that never repeats anything would keep all the others.
    StoppedForNoReason,
}

/// What the service did to the attempt with this index, as its caller can know it.
fn ended(case: &Case, observed: &Observed, index: usize) -> Ends {
    if observed.seen[index].finished { case.steps[index].1 } else { Ends::Hang }
}

fn evidence(case: &Case) -> bool {
    match case.evidence {
        Stated::Key | Stated::ByPolicy | Stated::ByRequest => true,
        Stated::NotEvenByMethod => false,
        Stated::Nothing => ["GET", "PUT", "DELETE"].contains(&case.method),
    }
}

fn passes(ends: Ends) -> bool {
    match ends {
        Ends::Answer { code, .. } => [408, 425, 429, 500, 502, 503, 504].contains(&code),
        Ends::Fail(failure) => failure != Failure::Strange,
        Ends::Hang => true,
    }
}

/// Whether the request was not processed: proved, or documented by the provider.
fn harmless(case: &Case, ends: Ends) -> bool {
    match ends {
        Ends::Answer { code, .. } => case.rejecting && code == 429,
        Ends::Fail(failure) => failure == Failure::Unsent,
        Ends::Hang => false,
    }
}

fn told(ends: Ends) -> Duration {
    match ends {
        Ends::Answer { retry_after: Some("1"), .. } => ms(1_000),
        Ends::Answer { retry_after: Some("2"), .. } => ms(2_000),
        Ends::Answer { retry_after: Some("0.5"), .. } => ms(500),
        Ends::Answer { retry_after: Some("120"), .. } => ms(120_000),
        Ends::Answer { retry_after: Some("99999999999999999999"), .. } => Duration::MAX,
        _ => Duration::ZERO,
    }
}

/// Every rule that this call broke.
pub fn violations(case: &Case, observed: &Observed) -> Vec<Rule> {
    let mut broken = Vec::new();
    let mut check = |rule, kept: bool| {
        if !kept && !broken.contains(&rule) {
            broken.push(rule);
        }
    };
    let seen = &observed.seen;
    check(Rule::MoreThanMaxAttempts, seen.len() <= case.attempts as usize);

    let deadline = case.outer.map_or(case.total, |outer| outer.min(case.total));
    check(Rule::PastTheDeadline, observed.elapsed <= deadline + GRAIN);
    let mut free = 0;
    for (index, request) in seen.iter().enumerate() {
        check(Rule::PastTheDeadline, request.at - observed.start <= deadline + GRAIN);
        let Some(over) = request.over else {
            check(Rule::ReportIsNotWhatHappened, false);
            continue;
        };
        check(Rule::AttemptTooLong, over - request.at <= case.attempt + GRAIN);
        let Some(next) = seen.get(index + 1) else { continue };
        let ends = ended(case, observed, index);
        check(Rule::RepeatedWhatDoesNotPass, passes(ends) && case.method != "CONNECT");
        check(Rule::RepeatedWithoutEvidence, evidence(case) || harmless(case, ends));
        check(Rule::EarlierThanTheServerSaid, next.at - over >= told(ends));
        check(Rule::BelowTheFloor, next.at - over >= case.floor);
        // D13: unsent, the first time.
        free = free.max(usize::from(ends == Ends::Fail(Failure::Unsent)));
    }
    if let Some(tokens) = case.budget {
        check(Rule::BeyondTheBudget, seen.len() <= 1 + free + tokens as usize);
    }
    check(Rule::ReportIsNotWhatHappened, report_is_right(case, observed));
    check(Rule::StoppedForNoReason, stop_is_right(case, observed, deadline));
    broken
}

fn stop_is_right(case: &Case, observed: &Observed, deadline: Duration) -> bool {
    let seen = &observed.seen;
    let Some(report) = &observed.report else { return true };
    let Some(last) = seen.last() else { return report.stop() == Some(StopReason::Deadline) && deadline.is_zero() };
    let ends = ended(case, observed, seen.len() - 1);
    let over = last.over.map_or(Duration::ZERO, |over| over - observed.start);
    let left = deadline.saturating_sub(over);
    match report.stop() {
        None => observed.answer.is_some_and(|answer| answer.is_success()),
        Some(StopReason::Permanent) => !passes(ends),
        Some(StopReason::Upgrade) => passes(ends) && case.method == "CONNECT",
        Some(StopReason::NoEvidence) => passes(ends) && !evidence(case) && !harmless(case, ends),
        Some(StopReason::Attempts) => passes(ends) && seen.len() == case.attempts as usize,
        Some(StopReason::WaitTooLong) => told(ends) > case.longest_server_wait || told(ends) >= left,
        // It had passed, or the next wait may have crossed it.
        Some(StopReason::Deadline) => observed.elapsed + GRAIN >= deadline || left <= LONGEST_WAIT,
        Some(StopReason::Budget) => case.budget.is_some_and(|tokens| seen.len() > tokens as usize),
        Some(StopReason::NotReady) => case.readiness.iter().any(|ready| matches!(ready, Readiness::Fails)),
        Some(_) => false,
    }
}

fn report_is_right(case: &Case, observed: &Observed) -> bool {
    let seen = &observed.seen;
    let Some(report) = &observed.report else {
        // None is needed for one answer that nobody wanted to repeat.
        return seen.len() == 1 && observed.answer.is_some() && !passes(ended(case, observed, 0));
    };
    let attempts = report.attempts();
    let same = attempts.iter().enumerate().all(|(index, attempt)| {
        let Some(request) = seen.get(index) else { return false };
        let ends = ended(case, observed, index);
        let outcome = match ends {
            Ends::Answer { code, .. } => AttemptOutcome::Status(code.try_into().unwrap()),
            Ends::Fail(Failure::Reset) => AttemptOutcome::Fault(FaultKind::Reset),
            Ends::Fail(Failure::Unsent) => AttemptOutcome::Fault(FaultKind::Connect),
            Ends::Fail(Failure::Strange) => AttemptOutcome::Fault(FaultKind::Unclassified),
            Ends::Hang => AttemptOutcome::Fault(FaultKind::Timeout),
        };
        let reach = match ends {
            Ends::Fail(Failure::Unsent) => Reach::NotSent,
            Ends::Answer { .. } if !passes(ends) => Reach::Answered,
            _ if harmless(case, ends) => Reach::Rejected,
            _ => Reach::Unknown,
        };
        attempt.number as usize == index + 1
            && request.attempt == Some(attempt.number)
            && attempt.started == request.at - observed.start
            && Some(attempt.started + attempt.duration) == request.over.map(|over| over - observed.start)
            && (attempt.outcome, attempt.reach) == (outcome, reach)
            // Waited is what was said, at least; readiness and the last of a body may take longer.
            && seen.get(index + 1).is_none_or(|next| {
                attempt.wait.is_some_and(|wait| request.over.is_some_and(|over| over + wait <= next.at))
            })
    });
    let unknown = attempts.iter().any(|attempt| attempt.reach == Reach::Unknown);
    attempts.len() == seen.len() && same && report.elapsed() == observed.elapsed && report.outcome_unknown() == unknown
}
