//! After an attempt: what its end means for the course of the call. The same for a request and for a block of code.

use std::time::Duration;

use tokio::time::Instant;

use super::{AttemptOutcome, CallReport, course::Course};
use crate::{
    deadline::later,
    fault::{Fault, FaultKind},
    observe,
    policy::{
        Class, Outcome, Policy, Reach, StopReason, Verdict,
        decide::{Again, Ended, Situation, Stop},
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
    /// The answer can only be one to this request. Otherwise what a document says of it ("not processed") may be said of
    /// another, such as the hop of a redirect.
    pub(crate) of_one_request: bool,
    /// Another host answered: what it asks for, it does not ask for this provider.
    pub(crate) of_another_host: bool,
}

/// What follows it.
pub(crate) enum Next {
    /// A business answer at the first try: no retry was refused, nothing to report.
    Answered,
    Stop {
        now: Instant,
        stop: Stop,
        /// The deadline passed within the attempt, and nothing else ended it.
        over: bool,
    },
    /// Another attempt at `resume`.
    Again { now: Instant, deadline: Instant, resume: Instant },
}

impl Course {
    #[inline]
    pub(crate) fn judge<P: Policy + ?Sized>(&self, policy: &P, outcome: Outcome<'_>) -> Verdict {
        let outcome = outcome.of_attempt(self.attempt, self.earlier_unknown());
        let verdict = policy.judge(&self.plan, &outcome);
        // Whoever judged: never earlier than the server said (S17).
        self.plan.operation.heed(verdict, &outcome)
    }

    /// The attempt succeeded. The report, where there is something to report.
    pub(crate) fn succeeded(&mut self, outcome: AttemptOutcome) -> Option<CallReport> {
        if self.is_part() {
            return None;
        }
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
        let Failed { verdict, outcome, fault, timed_out, upgrade, of_one_request, of_another_host } = failed;
        let now = Instant::now();
        let deadline = self.deadline();
        let of_request = self.line.is_some();
        let said = if of_another_host { None } else { Some(verdict) };
        let status = match outcome {
            AttemptOutcome::Status(status) => Some(status),
            AttemptOutcome::Grpc(_) | AttemptOutcome::Fault(_) | AttemptOutcome::Done => None,
        };
        let mut ended = Ended::with(status, fault, verdict);
        if let AttemptOutcome::Grpc(code) = outcome {
            ended = ended.with_code(code);
        }
        if !of_one_request {
            ended = ended.of_several_requests();
        }
        // The same instant ends a layer below, or a call within a block, which may notice first.
        let out_of_time = timed_out || now >= deadline && fault.is_some_and(|fault| fault.kind() == FaultKind::Timeout);
        if out_of_time && now < later(self.attempt_started(), self.plan.timeouts().attempt) {
            ended = ended.cut_short();
        }
        if self.is_part() {
            let over = timed_out && now >= deadline;
            let hold = self.plan.operation.held_for(said, now);
            return self.failed_in_a_block(now, verdict, outcome, ended, hold, over);
        }
        if !verdict.is_listed() {
            observe::unclassified(self.about(), self.attempt, outcome);
        }
        if self.attempt == 1 {
            ended.of_first_try(&self.plan.operation.budget, now);
        }
        let business = fault.is_none() && verdict.class() == Class::Permanent;
        if business && of_request && self.trail.is_none() {
            observe::answered(&self.plan, Class::Permanent);
            return Next::Answered;
        }
        let hold = self.plan.operation.held_for(said, now);
        let trail = self.record(now, outcome, ended.reach, verdict);
        trail.unknown |= ended.reach == Reach::Unknown;
        if let Some(sent) = trail.sent.take() {
            ended.of_retry(sent, now);
        }
        let (free_used, previous_wait) = (trail.free_used, trail.previous_wait);
        if out_of_time && now >= deadline {
            let stop = Stop { reason: StopReason::Deadline, not_before: verdict.hint().wait.max(hold) };
            // Where another noticed, its error is kept.
            return Next::Stop { now, stop, over: timed_out };
        }
        let situation = Situation {
            plan: &self.plan,
            verdict,
            reach: ended.reach,
            calm: ended.calm,
            throttled: ended.throttled,
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
            Err(stop) => Next::Stop { now, stop, over: false },
            Ok(again) => Next::Again { now, deadline, resume: self.again(now, again) },
        }
    }

    /// The block decides what follows, by its own policy and budget. What the provider said holds for others all the same.
    fn failed_in_a_block(
        &mut self,
        now: Instant,
        verdict: &Verdict,
        outcome: AttemptOutcome,
        ended: Ended,
        hold: Option<Duration>,
        over: bool,
    ) -> Next {
        if verdict.class() == Class::Permanent && matches!(outcome, AttemptOutcome::Status(_) | AttemptOutcome::Grpc(_))
        {
            return Next::Answered;
        }
        let trail = self.record(now, outcome, ended.reach, verdict);
        trail.unknown |= ended.reach == Reach::Unknown;
        let stop = Stop { reason: StopReason::Stacked, not_before: verdict.hint().wait.max(hold) };
        Next::Stop { now, stop, over }
    }

    /// When the attempt is made again.
    fn again(&mut self, now: Instant, again: Again) -> Instant {
        let trail = self.trail.get_or_insert_default();
        trail.free_used |= again.free;
        trail.charge = Some(again.charge);
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
