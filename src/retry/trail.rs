//! What failed attempts left behind, and the report made of it.

use std::{mem, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::{AttemptOutcome, AttemptReport, CallReport, attempts::Attempts, course::Course, report};
use crate::hints::InBlock;
use crate::policy::{
    Reach, StopReason, Verdict,
    budget::{Charge, Sent},
};

/// What failed attempts left behind.
#[derive(Default)]
pub(super) struct Trail {
    pub(super) attempts: Attempts,
    /// The request's head, once it was sent again.
    pub(super) unpacked: Option<Bytes>,
    /// For the next attempt, until it is sent.
    pub(super) charge: Option<Charge>,
    /// For the current attempt.
    pub(super) sent: Option<Sent>,
    /// When the current attempt was sent, where it was not the start of the call.
    pub(super) sent_at: Option<Instant>,
    pub(super) first_held: Option<Duration>,
    pub(super) free_used: bool,
    pub(super) unknown: bool,
    pub(super) stacked: bool,
    pub(super) previous_wait: Option<Duration>,
    /// The attempt of a block that this call is part of.
    pub(super) part_of: Option<InBlock>,
}

impl Course {
    pub(super) fn record(
        &mut self,
        now: Instant,
        outcome: AttemptOutcome,
        reach: Reach,
        verdict: &Verdict,
    ) -> &mut Trail {
        let call_started = self.started();
        let started = self.attempt_started();
        let trail = self.trail.get_or_insert_default();
        trail.attempts.push(AttemptReport {
            number: self.attempt,
            started: started.saturating_duration_since(call_started),
            duration: now.saturating_duration_since(started),
            outcome,
            reach,
            hint: verdict.hint(),
            wait: None,
            held: false,
        });
        trail
    }

    /// Whether an attempt was answered so.
    pub(super) fn was_answered(&self, status: StatusCode) -> bool {
        let so = |attempt: &AttemptReport| attempt.outcome == AttemptOutcome::Status(status);
        self.trail.as_ref().is_some_and(|trail| trail.attempts.iter().any(so))
    }

    pub(super) fn report(
        &mut self,
        now: Instant,
        stop: Option<StopReason>,
        not_before: Option<Duration>,
    ) -> CallReport {
        let elapsed = now.saturating_duration_since(self.started());
        let clock = &self.plan.operation.clock;
        let trail = self.trail.as_deref_mut();
        let Trail { attempts, unknown, stacked, first_held, .. } = trail.map(mem::take).unwrap_or_default();
        let retry_at = not_before.and_then(|wait| clock.now().checked_add(wait));
        CallReport::new(report::Inner { attempts, elapsed, stop, retry_at, unknown, stacked, first_held })
    }
}
