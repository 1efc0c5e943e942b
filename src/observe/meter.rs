//! The one place that counts (feature `metrics`).
//!
//! Labels come from the operation and from closed lists. What a call counts that succeeds at once is made when its
//! policy is built, so that counting allocates nothing of ours.

use std::{fmt, sync::Arc, time::Duration};

use metrics::{Key, Label, Level, Metadata, SharedString, with_recorder};

use crate::{
    metrics::{ATTEMPTS, BUDGET, CALLS, RETRIES, STOPS, UNCLASSIFIED, UNMATCHED, WAIT},
    policy::{Class, StopReason, Verdict, operation::Operation},
    retry::{AttemptOutcome, AttemptReport},
};

static METADATA: Metadata<'static> = Metadata::new("redial", Level::INFO, Some(module_path!()));

/// An operation's labels, and the keys of its happy path.
#[derive(Clone)]
pub(crate) struct Meters {
    provider: SharedString,
    operation: SharedString,
    call_succeeded: Key,
    attempt_succeeded: Key,
    budget_level: Key,
}

impl Meters {
    pub(crate) fn of(provider: &str, operation: &str) -> Self {
        let provider = SharedString::from_shared(Arc::from(provider));
        let operation = SharedString::from_shared(Arc::from(operation));
        let success = || ("outcome", "success".into());
        Meters {
            call_succeeded: keyed(&provider, &operation, CALLS, [success()]),
            attempt_succeeded: keyed(&provider, &operation, ATTEMPTS, [success(), ("error_type", "".into())]),
            budget_level: keyed(&provider, &operation, BUDGET, []),
            provider,
            operation,
        }
    }

    fn key(&self, name: &'static str, more: impl IntoIterator<Item = (&'static str, SharedString)>) -> Key {
        keyed(&self.provider, &self.operation, name, more)
    }
}

/// An attempt ended.
pub(super) fn attempt(operation: &Operation, outcome: AttemptOutcome, verdict: &Verdict) {
    let meters = &operation.meters;
    if verdict.class() == Class::Success {
        return count(&meters.attempt_succeeded);
    }
    let kind = error_type(operation, outcome);
    let class = if verdict.is_listed() { class_name(verdict.class()) } else { "unclassified" };
    count(&meters.key(ATTEMPTS, [("outcome", class.into()), ("error_type", kind.clone())]));
    if !verdict.is_listed() {
        count(&meters.key(UNCLASSIFIED, [("error_type", kind)]));
    }
}

/// A retry was decided.
pub(super) fn retry(operation: &Operation, attempt: &AttemptReport) {
    let meters = &operation.meters;
    count(&meters.key(RETRIES, [("error_type", error_type(operation, attempt.outcome))]));
    let by = match attempt {
        AttemptReport { held: true, .. } => "hold",
        AttemptReport { hint, .. } if hint.wait.is_some_and(|asked| !asked.is_zero()) => "server",
        _ => "policy",
    };
    let key = meters.key(WAIT, [("by", by.into())]);
    let wait = attempt.wait.unwrap_or(Duration::ZERO);
    with_recorder(|recorder| recorder.register_histogram(&key, &METADATA).record(wait.as_secs_f64()));
}

/// A call succeeded, at the first try or later.
pub(super) fn succeeded(operation: &Operation) {
    count(&operation.meters.call_succeeded);
    level(operation);
}

/// A call ended short of success.
pub(super) fn ended(operation: &Operation, class: Class, stop: Option<StopReason>) {
    count(&operation.meters.key(CALLS, [("outcome", class_name(class).into())]));
    if let Some(stop) = stop {
        stopped(operation, stop);
    }
    level(operation);
}

pub(super) fn stopped(operation: &Operation, stop: StopReason) {
    count(&operation.meters.key(STOPS, [("stop", stop.as_str().into())]));
}

pub(super) fn cancelled(operation: &Operation) {
    count(&operation.meters.key(CALLS, [("outcome", "cancelled".into())]));
    level(operation);
}

pub(super) fn unmatched(operation: &Operation) {
    count(&operation.meters.key(UNMATCHED, []));
}

fn level(operation: &Operation) {
    let level = operation.budget.level();
    if level.is_finite() {
        with_recorder(|recorder| recorder.register_gauge(&operation.meters.budget_level, &METADATA).set(level));
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters").finish_non_exhaustive()
    }
}

fn count(key: &Key) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(1));
}

fn keyed(
    provider: &SharedString,
    operation: &SharedString,
    name: &'static str,
    more: impl IntoIterator<Item = (&'static str, SharedString)>,
) -> Key {
    let own = [Label::new("provider", provider.clone()), Label::new("operation", operation.clone())];
    let more = more.into_iter().map(|(label, value)| Label::new(label, value));
    Key::from_parts(name, own.into_iter().chain(more).collect::<Vec<_>>())
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Success => "success",
        Class::Permanent => "permanent",
        Class::Transient => "transient",
        Class::Verify => "verify",
    }
}

/// The status or the fault, from a closed list: a server may answer with any number, and each would be a series.
fn error_type(operation: &Operation, outcome: AttemptOutcome) -> SharedString {
    let status = match outcome {
        AttemptOutcome::Fault(kind) => return kind.as_str().into(),
        AttemptOutcome::Grpc(code) => return code.as_str().into(),
        AttemptOutcome::Status(status) => status,
        AttemptOutcome::Done => return "".into(),
    };
    if status.canonical_reason().is_some() || operation.has_listed(status.as_u16()) {
        return status.as_str().to_owned().into();
    }
    let class = match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    };
    class.into()
}
