//! The one place that emits events and, with the feature `metrics`, counts.
//!
//! All under the target `redial`, with the fields that the crate's front page lists. Levels follow S16: DEBUG for an
//! attempt that will be repeated, INFO for success after a retry, one ERROR for a final failure of what should have worked, DEBUG for a cancelled call. Targets are logged without userinfo and query, and neither
//! headers nor a foreign error's text are.

use std::time::Duration;

use http::{Method, Uri};
use tracing::{Level, event};

#[cfg(feature = "metrics")]
pub(crate) mod meter;

use crate::{
    fault::Fault,
    policy::{Class, Plan, StopReason, Verdict, operation::Operation},
    redact::{Redacted, Target},
    retry::{AttemptOutcome, AttemptReport, CallReport},
};

const TARGET: &str = "redial";

/// What an event is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) plan: &'a Plan,
    /// `None`: a block of code.
    pub(crate) request: Option<(&'a Method, &'a Uri)>,
}

/// One event about a call, with the fields that all of them have.
macro_rules! call_event {
    ($level:expr, $about:expr, { $($field:tt)* }, $message:literal) => {
        event!(
            target: TARGET,
            $level,
            provider = $about.plan.provider(),
            operation = $about.plan.operation(),
            max_attempts = $about.plan.max_attempts(),
            http.request.method = $about.request.map(|(method, _)| method.as_str()),
            url = $about.request.map(|(_, uri)| display(Target(uri))),
            $($field)*
            $message
        )
    };
}

fn status(outcome: AttemptOutcome) -> Option<u16> {
    match outcome {
        AttemptOutcome::Status(status) => Some(status.as_u16()),
        AttemptOutcome::Grpc(_) | AttemptOutcome::Fault(_) | AttemptOutcome::Done => None,
    }
}

/// `error.type` by the OpenTelemetry conventions: the status code, or a name of low cardinality.
fn error_type(outcome: AttemptOutcome) -> String {
    outcome.to_string()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An attempt has ended and was judged. No event: what follows has one.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn attempted(plan: &Plan, outcome: AttemptOutcome, verdict: &Verdict) {
    #[cfg(feature = "metrics")]
    meter::attempt(&plan.operation, outcome, verdict);
}

/// A call has ended with an answer at the first try. No event: nothing happened.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn answered(plan: &Plan, class: Class) {
    #[cfg(feature = "metrics")]
    match class {
        Class::Success => meter::succeeded(&plan.operation),
        _ => meter::ended(&plan.operation, class, None),
    }
}

/// An attempt failed and will be repeated.
pub(crate) fn will_retry(about: About<'_>, attempt: &AttemptReport) {
    #[cfg(feature = "metrics")]
    meter::retry(&about.plan.operation, attempt);
    call_event!(Level::DEBUG, about, {
        attempt = attempt.number,
        outcome = "transient",
        error.r#type = error_type(attempt.outcome),
        http.response.status_code = status(attempt.outcome),
        wait_ms = attempt.wait.map(millis),
        held = attempt.held,
    }, "attempt failed, will be repeated");
}

/// A call succeeded, though not at the first try.
pub(crate) fn recovered(about: About<'_>, report: &CallReport) {
    #[cfg(feature = "metrics")]
    meter::succeeded(&about.plan.operation);
    let attempts = report.attempts().len();
    call_event!(Level::INFO, about, {
        attempt = attempts,
        outcome = "success",
        http.response.status_code = report.attempts().last().and_then(|last| status(last.outcome)),
        elapsed_ms = millis(report.elapsed()),
    }, "succeeded after retry");
}

/// A call ended without success: ERROR where it should have worked (D33), DEBUG for a business answer.
pub(crate) fn ended(about: About<'_>, report: &CallReport, class: Class, returns_error: bool) {
    #[cfg(feature = "metrics")]
    meter::ended(&about.plan.operation, class, report.stop());
    let last = report.attempts().last();
    let stop = report.stop().map(StopReason::as_str);
    macro_rules! ended {
        ($level:expr, $outcome:expr, $message:literal) => {
            call_event!($level, about, {
                attempt = report.attempts().len(),
                outcome = $outcome,
                error.r#type = last.map(|last| error_type(last.outcome)),
                http.response.status_code = last.and_then(|last| status(last.outcome)),
                elapsed_ms = millis(report.elapsed()),
                outcome_unknown = report.outcome_unknown(),
                stop,
            }, $message)
        };
    }
    match class {
        Class::Transient => ended!(Level::ERROR, "transient", "failed"),
        _ if returns_error => ended!(Level::ERROR, "permanent", "failed"),
        Class::Verify => ended!(Level::DEBUG, "verify", "answered: look before repeating"),
        Class::Permanent | Class::Success => ended!(Level::DEBUG, "permanent", "answered, and not repeated"),
    }
}

/// An outcome that nobody listed (S1).
pub(crate) fn unclassified(about: About<'_>, attempt: u32, outcome: AttemptOutcome) {
    call_event!(Level::DEBUG, about, {
        attempt,
        outcome = "unclassified",
        error.r#type = error_type(outcome),
        http.response.status_code = status(outcome),
    }, "nobody listed this outcome: not repeated");
}

/// No route matched (D27).
pub(crate) fn unmatched(plan: &Plan, method: &Method, uri: &Uri) {
    #[cfg(feature = "metrics")]
    meter::unmatched(&plan.operation);
    let about = About { plan, request: Some((method, uri)) };
    call_event!(Level::DEBUG, about, { outcome = "unmatched", }, "no route matches: sent once, not repeated");
}

/// Where a call was when it was dropped.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    InFlight,
    Draining,
    Waiting,
    Readying,
}

/// The caller dropped the call (D35).
pub(crate) fn cancelled(about: About<'_>, attempt: u32, phase: Phase) {
    #[cfg(feature = "metrics")]
    meter::cancelled(&about.plan.operation);
    let phase = match phase {
        Phase::InFlight => "in flight",
        Phase::Draining => "letting a failed response go",
        Phase::Waiting => "waiting",
        Phase::Readying => "waiting for readiness",
    };
    call_event!(Level::DEBUG, about, { attempt, outcome = "cancelled", phase, }, "cancelled");
}

/// A second retry layer was found below on one path (S13): every request counts, the first one of a layer has a WARN.
/// The plan is asked for once, and only where there is something to say.
pub(crate) fn stacked(first: bool, plan: impl FnOnce() -> Plan) {
    if !first && cfg!(not(feature = "metrics")) {
        return;
    }
    let plan = plan();
    #[cfg(feature = "metrics")]
    meter::stopped(&plan.operation, StopReason::Stacked);
    if !first {
        return;
    }
    event!(
        target: TARGET,
        Level::WARN,
        provider = plan.provider(),
        operation = plan.operation(),
        stop = StopReason::Stacked.as_str(),
        "two `RetryLayer`s on one path: this one sends once and applies nothing of its policy; keep one of them"
    );
}

/// A call that a block around it repeats (D34) is sent once, as it is meant. No event: the block has its own.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn part_of_a_block(plan: &Plan) {
    #[cfg(feature = "metrics")]
    meter::stopped(&plan.operation, StopReason::Stacked);
}

/// A download broke, and the rest of it will be asked for.
pub(crate) fn resuming(uri: &Uri, resume: u32, first: u64, fault: Fault, wait: Duration) {
    event!(
        target: TARGET,
        Level::DEBUG,
        http.request.method = Method::GET.as_str(),
        url = %Target(uri),
        resume,
        first_byte = first,
        outcome = "resuming",
        error.r#type = fault.kind().as_str(),
        wait_ms = millis(wait),
        "download broke, the rest will be asked for"
    );
}

/// A policy was built that is allowed, but probably not meant.
pub(crate) fn policy_warning(operation: &Operation, warning: &str) {
    event!(
        target: TARGET,
        Level::WARN,
        provider = &*operation.provider,
        operation = &*operation.name,
        "{}",
        Redacted(warning)
    );
}

/// A contract that changed was put in force.
#[cfg(feature = "contract")]
pub(crate) fn contract_reloaded(contract: &crate::contract::Contract) {
    event!(target: TARGET, Level::INFO, ?contract, "a changed contract is in force");
}

/// A contract that changed does not load. Where its first problem stands, and how many there are.
#[cfg(feature = "contract")]
pub(crate) fn contract_refused(error: &crate::contract::ContractError) {
    let problems = error.findings().len();
    let (first, line) = match error.findings().first() {
        Some(first) => (format!("{}: {first}", first.file()), first.line()),
        None => (String::new(), 0),
    };
    event!(
        target: TARGET,
        Level::ERROR,
        problems,
        line,
        first = %Redacted(&first),
        "a changed contract does not load: the one before stays in force"
    );
}
