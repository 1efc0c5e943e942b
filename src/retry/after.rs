//! After an attempt: what its end means for the course of the call. The same for a request and for a block of code.

use http::StatusCode;
use tokio::time::Instant;

use super::{AttemptOutcome, CallReport, course::Course};
use crate::{
    deadline::later,
    fault::Fault,
    observe,
    policy::{
        Class, GrpcCode, Outcome, Policy, Reach, StopReason, Verdict,
        decide::{Again, Situation, Stop},
    },
};

/// An attempt that did not succeed.
pub(crate) struct Failed<'a> {
    pub(crate) verdict: &'a Verdict,
    pub(crate) outcome: AttemptOutcome,
    /// `None`: it was answered.
    pub(crate) fault: Option<Fault>,
    /// The attempt's own timer ended it.
    pub(crate) timed_out: bool,
    /// `CONNECT`, or a request for an upgrade.
    pub(crate) upgrade: bool,
}

/// What follows it.
pub(crate) enum Next {
    /// A business answer at the first try: no retry was refused, nothing to report.
    Answered,
    Stop {
        now: Instant,
        stop: Stop,
        /// The deadline passed within the attempt.
        over: bool,
    },
    /// Another attempt at `resume`.
    Again { now: Instant, deadline: Instant, resume: Instant },
}

impl Course {
    pub(crate) fn judge<P: Policy + ?Sized>(&self, policy: &P, outcome: Outcome<'_>) -> Verdict {
        let outcome = outcome.of_attempt(self.attempt, self.earlier_unknown());
        let verdict = policy.judge(&self.plan, &outcome);
        // Whoever judged: never earlier than the server said (S17).
        self.plan.operation.heed(verdict, &outcome)
    }

    /// The attempt succeeded. The report, where there is something to report.
    pub(crate) fn succeeded(&mut self, outcome: AttemptOutcome) -> Option<CallReport> {
        if self.attempt == 1 {
            self.plan.operation.budget.first_try(true);
        }
        if self.trail.is_none() {
            observe::answered(&self.plan, Class::Success);
            return None;
        }
        let now = Instant::now();
        let trail = self.record(now, outcome, Reach::Answered, &Verdict::success());
        if let Some(sent) = trail.sent.take() {
            sent.succeeded();
        }
        let report = self.report(now, None, None);
        // The first try, held back, has a report as well.
        if self.attempt > 1 {
            observe::recovered(self.about(), &report);
        } else {
            observe::answered(&self.plan, Class::Success);
        }
        Some(report)
    }

    /// The attempt did not succeed: what follows? `replayable`: whether it could be made again from its start.
    pub(crate) fn failed(&mut self, failed: Failed<'_>, replayable: impl FnOnce() -> bool) -> Next {
        let Failed { verdict, outcome, fault, timed_out, upgrade } = failed;
        let now = Instant::now();
        let deadline = self.deadline();
        let transient = verdict.class() == Class::Transient;
        let rejected = verdict.rejected_because().is_some();
        // What an answer says, it says of one request. A block may have done anything before.
        let of_request = self.line.is_some();
        let reach = match fault {
            Some(fault) if fault.is_unsent() => Reach::NotSent,
            _ if rejected && of_request => Reach::Rejected,
            None if !transient => Reach::Answered,
            _ => Reach::Unknown,
        };
        if !verdict.is_listed() {
            observe::unclassified(self.about(), self.attempt, outcome);
        }
        let answered = fault.is_none() && !transient;
        // An answer that is no failure of the provider's counts as its success. What does not pass, a 5xx that nobody
        // listed or an error that nobody knows, says nothing about its health.
        let unwell = match outcome {
            AttemptOutcome::Status(status) => status.is_server_error(),
            AttemptOutcome::Grpc(code) => code.is_of_server(),
            AttemptOutcome::Fault(_) | AttemptOutcome::Done => false,
        };
        let served = answered && !unwell;
        // Nor does an attempt that had not its full time. Callers may wait for next to no time, and must not close the
        // budget for others.
        let cut_short = timed_out && now < later(self.attempt_started(), self.plan.timeouts().attempt);
        if self.attempt == 1 && (served || transient) && !cut_short {
            self.plan.operation.budget.first_try(served);
        }
        if answered && of_request && self.trail.is_none() && verdict.class() == Class::Permanent {
            observe::answered(&self.plan, Class::Permanent);
            return Next::Answered;
        }
        let hold = self.plan.operation.held_for(verdict, now);
        let trail = self.record(now, outcome, reach, verdict);
        trail.unknown |= reach == Reach::Unknown;
        if let Some(sent) = trail.sent.take() {
            match (served, transient && !cut_short) {
                (true, _) => sent.succeeded(),
                (false, true) => sent.failed(),
                (false, false) => drop(sent),
            }
        }
        let (free_used, previous_wait) = (trail.free_used, trail.previous_wait);
        let over = timed_out && now >= deadline;
        if over {
            let stop = Stop { reason: StopReason::Deadline, not_before: verdict.hint().wait.max(hold) };
            return Next::Stop { now, stop, over };
        }
        let calm = fault.is_some_and(|fault| fault.asks_calm());
        let too_many = outcome == AttemptOutcome::Status(StatusCode::TOO_MANY_REQUESTS)
            || outcome == AttemptOutcome::Grpc(GrpcCode::ResourceExhausted);
        let situation = Situation {
            plan: &self.plan,
            verdict,
            reach,
            calm,
            throttled: calm || too_many || rejected,
            attempt: self.attempt,
            caller_retries: self.caller_retries,
            upgrade,
            replayable: replayable(),
            free_used,
            previous_wait,
            hold,
            now,
            deadline,
        };
        match situation.decide() {
            Err(stop) => Next::Stop { now, stop, over },
            Ok(again) => Next::Again { now, deadline, resume: self.again(now, again) },
        }
    }

    /// When the attempt is made again.
    fn again(&mut self, now: Instant, again: Again) -> Instant {
        let trail = self.trail.get_or_insert_default();
        trail.free_used |= again.charge.is_none();
        trail.charge = again.charge;
        trail.previous_wait = Some(again.own);
        if let Some(last) = trail.attempts.last_mut() {
            last.wait = Some(again.wait);
            last.held = again.held;
        }
        if let Some(last) = self.trail.as_ref().and_then(|trail| trail.attempts.last()) {
            observe::will_retry(self.about(), last);
        }
        later(now, again.wait)
    }
}
