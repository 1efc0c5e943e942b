//! The state of one call, and what follows each of its attempts.

use std::{mem, time::Duration};

use http::{Method, Request, Response, Uri};
use tokio::time::Instant;

use crate::{
    AttemptOutcome, AttemptReport, CallReport, Deadline, Error, OutboundHints, Policy,
    deadline::later,
    fault::{Fault, FaultKind},
    observe::{self, About},
    policy::{
        Class, Outcome, Plan, Reach, RequestHead, StopReason, Verdict,
        budget::{Charge, Sent},
        decide::{Ended, Situation},
    },
};

/// The state of one call.
pub(super) struct Call {
    plan: Plan,
    method: Method,
    uri: Uri,
    upgrade: bool,
    /// Whoever is served by this call asks for the same once more already.
    caller_retries: bool,
    started: Instant,
    pub(super) deadline: Instant,
    sent_at: Instant,
    attempts: Vec<AttemptReport>,
    /// For the next attempt, until it is sent.
    charge: Option<Charge>,
    /// For the current attempt.
    sent: Option<Sent>,
    unknown: bool,
    previous_wait: Option<Duration>,
}

impl Call {
    pub(super) fn of<B>(plan: Plan, request: &Request<B>) -> Self {
        let started = Instant::now();
        let total = later(started, plan.timeouts().total);
        let hints = OutboundHints::of(request.extensions());
        let outer = [request.extensions().get::<Deadline>().copied(), hints.deadline()].into_iter().flatten().min();
        Call {
            plan,
            method: request.method().clone(),
            uri: request.uri().clone(),
            upgrade: RequestHead::of(request).is_upgrade(),
            caller_retries: hints.sends_once(),
            started,
            deadline: outer.map_or(total, |outer| total.min(outer.instant())),
            sent_at: started,
            attempts: Vec::new(),
            charge: None,
            sent: None,
            unknown: false,
            previous_wait: None,
        }
    }

    /// The same call as it began.
    pub(super) fn begun(&self) -> Self {
        Call {
            plan: self.plan.clone(),
            method: self.method.clone(),
            uri: self.uri.clone(),
            attempts: Vec::new(),
            charge: None,
            sent: None,
            ..*self
        }
    }

    /// Whether no attempt has ended yet.
    pub(super) fn is_new(&self) -> bool {
        self.attempts.is_empty()
    }

    /// The next attempt goes out. Here the retry that was decided is sent, and so spent; unless it comes too late, and
    /// the timeout layer below does not send it (D21).
    pub(super) fn sends(&mut self) {
        self.sent_at = Instant::now();
        let in_time = self.sent_at < self.deadline;
        self.sent = self.charge.take().filter(|_| in_time).map(Charge::sent);
    }

    /// Which attempt is under way; the first is 1.
    pub(super) fn attempt(&self) -> u32 {
        self.attempts.len() as u32 + 1
    }

    fn about(&self) -> About<'_> {
        About { plan: &self.plan, request: Some((&self.method, &self.uri)) }
    }

    fn judge<P: Policy, RB>(&self, policy: &P, result: &Result<Response<RB>, Error>, fault: Option<Fault>) -> Verdict {
        let outcome = match (result, fault) {
            (Ok(response), _) => Outcome::answer(response.status(), response.headers()),
            (Err(error), Some(fault)) => Outcome::failed_as(error, fault),
            (Err(error), None) => Outcome::failed(error),
        };
        let outcome = outcome.of_attempt(self.attempt(), self.unknown);
        self.plan.operation.heed(policy.judge(&self.plan, &outcome), &outcome)
    }

    /// The attempt is over: it goes into the report.
    fn record(&mut self, now: Instant, outcome: AttemptOutcome, reach: Reach, verdict: &Verdict) {
        self.unknown |= reach == Reach::Unknown;
        self.attempts.push(AttemptReport {
            number: self.attempt(),
            started: self.sent_at.saturating_duration_since(self.started),
            duration: now.saturating_duration_since(self.sent_at),
            outcome,
            reach,
            hint: verdict.hint(),
            wait: None,
            held: false,
        });
    }

    fn report(&mut self, now: Instant, stop: Option<StopReason>, not_before: Option<Duration>) -> CallReport {
        let retry_at = not_before.and_then(|wait| self.plan.operation.clock.now().checked_add(wait));
        let elapsed = now.saturating_duration_since(self.started);
        CallReport::ended(mem::take(&mut self.attempts), elapsed, stop, retry_at, self.unknown)
    }

    /// After an attempt: how long to wait for the next, if there is one.
    pub(super) fn settle<P: Policy, RB>(
        &mut self,
        policy: &P,
        result: &mut Result<Response<RB>, Error>,
    ) -> Option<Duration> {
        let now = Instant::now();
        // Nobody has watched the body: whatever the error proves, it may be of another request.
        let fault = result.as_ref().err().map(|error| Fault::read(error).unproved());
        let verdict = self.judge(policy, result, fault);
        let outcome = match &result {
            Ok(response) => AttemptOutcome::Status(response.status()),
            Err(_) => AttemptOutcome::Fault(fault.map_or(FaultKind::Unclassified, |fault| fault.kind())),
        };
        observe::attempted(&self.plan, outcome, &verdict);
        if let (Ok(response), Class::Success) = (&mut *result, verdict.class()) {
            if self.is_new() {
                self.plan.operation.budget.first_try_at(true, now);
            }
            if let Some(sent) = self.sent.take() {
                sent.succeeded_at(now);
            }
            self.record(now, outcome, Reach::Answered, &verdict);
            if self.attempts.len() > 1 {
                let report = self.report(now, None, None);
                observe::recovered(self.about(), &report);
                response.extensions_mut().insert(report);
            } else {
                observe::answered(&self.plan, Class::Success);
            }
            return None;
        }
        if !verdict.is_listed() {
            observe::unclassified(self.about(), self.attempt(), outcome);
        }
        // Nobody watches what becomes of the request below.
        let mut ended = Ended::with(result.as_ref().ok().map(Response::status), fault, &verdict).of_several_requests();
        let out_of_time = now >= self.deadline && fault.is_some_and(|fault| fault.kind() == FaultKind::Timeout);
        if out_of_time && now < later(self.sent_at, self.plan.timeouts().attempt) {
            ended = ended.cut_short();
        }
        if self.is_new() {
            ended.of_first_try(&self.plan.operation.budget, now);
        }
        if let Some(sent) = self.sent.take() {
            ended.of_retry(sent, now);
        }
        let hold = self.plan.operation.held_for(Some(&verdict), now);
        self.record(now, outcome, ended.reach, &verdict);
        let situation = Situation {
            plan: &self.plan,
            verdict: &verdict,
            reach: ended.reach,
            calm: ended.calm,
            throttled: ended.throttled,
            attempt: self.attempts.len() as u32,
            caller_retries: self.caller_retries,
            upgrade: self.upgrade,
            replayable: true,
            free_used: true,
            previous_wait: self.previous_wait,
            hold,
            now,
            deadline: self.deadline,
        };
        match situation.decide() {
            Ok(again) => {
                self.charge = Some(again.charge);
                self.previous_wait = Some(again.own);
                if let Some(last) = self.attempts.last_mut() {
                    (last.wait, last.held) = (Some(again.wait), again.held);
                }
                if let Some(last) = self.attempts.last() {
                    observe::will_retry(self.about(), last);
                }
                Some(again.wait)
            }
            Err(stop) => {
                let first = self.attempts.len() == 1;
                let report = self.report(now, Some(stop.reason), stop.not_before);
                match result {
                    // A business answer at the first try: no retry was refused, nothing to report.
                    Ok(_) if first && verdict.class() == Class::Permanent => {
                        observe::answered(&self.plan, Class::Permanent);
                    }
                    Ok(response) => {
                        observe::ended(self.about(), &report, verdict.class(), false);
                        response.extensions_mut().insert(report);
                    }
                    Err(error) => {
                        observe::ended(self.about(), &report, verdict.class(), true);
                        error.attach_call(self.plan.clone(), report);
                    }
                }
                None
            }
        }
    }
}
