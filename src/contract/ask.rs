//! What would happen after one attempt: asked of the engine itself, with nothing sent.

use std::{fmt, time::Duration};

use http::{HeaderMap, Request, StatusCode};
use tokio::time::Instant;

use crate::{
    Class, FaultKind, Outcome, Plan, Policy, Reach, RequestHead, Verdict,
    fault::Fault,
    policy::decide::{Again, Ended, Situation, Stop},
};

/// What an attempt is supposed to have come to.
pub(crate) enum Supposed {
    Answer { status: StatusCode, headers: HeaderMap, body: Vec<u8> },
    Fault { kind: FaultKind, unsent: bool },
}

/// Faults that prove that nothing was processed, where the client reads them.
pub(crate) fn proves_unsent(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Connect | FaultKind::Dns | FaultKind::RefusedStream | FaultKind::Goaway)
}

/// At which point of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct When {
    pub(crate) attempt: u32,
    pub(crate) after_unknown: bool,
    pub(crate) elapsed: Duration,
}

impl Default for When {
    fn default() -> Self {
        When { attempt: 1, after_unknown: false, elapsed: Duration::ZERO }
    }
}

/// What the engine says.
pub(crate) struct Asked {
    pub(crate) plan: Plan,
    pub(crate) verdict: Verdict,
    pub(crate) reach: Reach,
    pub(crate) decision: Result<Again, Stop>,
}

/// Whether it is a call of gRPC, by its content type.
pub(crate) fn is_grpc(request: &Request<()>) -> bool {
    let kind = request.headers().get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Asks the engine. The budget is taken as it is, full where nothing was sent, and is left so; no other call holds this one.
pub(crate) fn ask(policy: &dyn Policy, request: &Request<()>, supposed: &Supposed, when: When) -> Asked {
    let plan = policy.plan(&RequestHead::of(request));
    let error = Nothing;
    let (outcome, body, fault) = match supposed {
        Supposed::Answer { status, headers, body } => (Outcome::answer(*status, headers), Some(body), None),
        Supposed::Fault { kind, unsent } => {
            let fault = Fault::supposed(*kind, *unsent);
            (Outcome::failed_as(&error, fault), None, Some(fault))
        }
    };
    let mut outcome = outcome.of_attempt(when.attempt, when.after_unknown);
    if is_grpc(request) {
        outcome = outcome.over_grpc();
    }
    let mut verdict = policy.judge(&plan, &outcome);
    if let (true, Some(body)) = (verdict.asks_for_body(), body) {
        outcome = outcome.with_body(body);
        verdict = policy.judge(&plan, &outcome);
    }
    let verdict = plan.operation.heed(verdict, &outcome);
    let Ended { reach, throttled, calm, .. } = Ended::with(outcome.status(), fault, &verdict);
    let now = Instant::now();
    let decision = Situation {
        plan: &plan,
        verdict: &verdict,
        reach,
        calm,
        throttled,
        attempt: when.attempt,
        caller_retries: false,
        upgrade: RequestHead::of(request).is_upgrade(),
        replayable: true,
        free_used: false,
        previous_wait: None,
        hold: None,
        now,
        deadline: now + plan.timeouts().total.saturating_sub(when.elapsed),
    }
    .decide();
    Asked { plan, verdict, reach, decision }
}

impl Asked {
    /// Whether the answer is what the caller asked for.
    pub(crate) fn is_success(&self) -> bool {
        self.verdict.class() == Class::Success
    }
}

/// The error of an attempt that was never made.
#[derive(Debug)]
struct Nothing;

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("supposed")
    }
}

impl std::error::Error for Nothing {}
