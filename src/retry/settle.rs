//! After an attempt: what it means, and what follows.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::{AnswerBody, AttemptOutcome, Replay, call::Call, report};
use crate::{
    BoxError, Error, Policy,
    deadline::later,
    error::AttemptTimedOut,
    fault::{Fault, FaultKind},
    observe,
    policy::{
        Class, Outcome, Reach, StopReason, Verdict,
        decide::{Again, Ended, Situation, Stop},
    },
    timeout::Expired,
};

/// An answer, of whose body a policy may have read the beginning.
type Answer<RB> = Response<AnswerBody<RB>>;

/// What follows an attempt.
pub(super) enum End<RB: Body> {
    /// The call is over.
    Return(Result<Answer<RB>, Error>),
    /// The policy asks for the beginning of the body.
    Look(Box<Answer<RB>>),
    /// Another attempt at `resume`; until then the failed answer is read to its end, but not longer than `until`.
    Drain { body: AnswerBody<RB>, until: Instant, resume: Instant },
    /// Another attempt at `resume`.
    Wait { resume: Instant },
}

/// A failed response is read to its end at least this long, even where the wait is shorter: to open a new connection
/// would take as long.
const DRAIN_TIME: Duration = Duration::from_millis(250);

impl<B: Replay> Call<B> {
    /// An attempt has ended: what follows?
    pub(super) fn settle<P, RB>(&mut self, policy: &P, result: Result<Result<Answer<RB>, BoxError>, Expired>) -> End<RB>
    where
        P: Policy,
        RB: Body,
    {
        let (mut result, fault) = match result {
            Ok(Ok(response)) => (Ok(response), None),
            Ok(Err(error)) => match self.source.failure() {
                Some(failed) => (Err(failed.beneath(error)), Some(Fault::request_body_failed())),
                None => {
                    let fault = self.reading.read(&*error);
                    (Err(error), Some(fault))
                }
            },
            Err(Expired) => {
                let error = AttemptTimedOut(self.plan.timeouts().attempt);
                (Err(error.into()), Some(Fault::attempt_timeout()))
            }
        };
        // What a stacked layer below left is absorbed into this call's report.
        let stacked = match &mut result {
            Ok(response) => report::take_foreign(response.extensions_mut()),
            Err(error) => report::failed_stacked(&**error),
        };
        if stacked {
            self.trail.get_or_insert_default().stacked = true;
        }
        let verdict = self.judge(policy, &result, fault, None);
        match result {
            Ok(response) if verdict.asks_for_body() && is_error(response.status()) => {
                End::Look(Box::new(response.map(AnswerBody::looked_into)))
            }
            result => self.judged(result, fault, verdict),
        }
    }

    /// The beginning of the answer's body is known, as far as it came in time.
    pub(super) fn settle_looked<P: Policy, RB: Body>(&mut self, policy: &P, response: Answer<RB>) -> End<RB> {
        let result = Ok(response);
        let body = result.as_ref().map_or(&[][..], |response| response.body().looked_at());
        let verdict = self.judge(policy, &result, None, Some(body));
        self.judged(result, None, verdict)
    }

    fn judged<RB: Body>(
        &mut self,
        mut result: Result<Answer<RB>, BoxError>,
        fault: Option<Fault>,
        verdict: Verdict,
    ) -> End<RB> {
        observe::attempted(&self.plan, outcome_of(&result, fault), &verdict);
        match (&mut result, verdict.class()) {
            (Ok(response), Class::Success) => {
                self.succeeded(response);
                End::Return(result.map_err(Error::of_inner))
            }
            _ => self.failed(result, fault, verdict),
        }
    }

    fn judge<P: Policy, RB>(
        &self,
        policy: &P,
        result: &Result<Response<RB>, BoxError>,
        fault: Option<Fault>,
        body: Option<&[u8]>,
    ) -> Verdict {
        let outcome = match result {
            Ok(response) => Outcome::answer(response.status(), response.headers()),
            Err(error) => Outcome::failed_as(&**error, fault.unwrap_or_else(|| Fault::read(&**error))),
        };
        let unknown = self.trail.as_ref().is_some_and(|trail| trail.unknown);
        let mut outcome = outcome.of_attempt(self.attempt, unknown);
        if let Some(body) = body {
            outcome = outcome.with_body(body);
        }
        let verdict = policy.judge(&self.plan, &outcome);
        // Whoever judged: never earlier than the server said (S17).
        self.plan.operation.heed(verdict, &outcome)
    }

    fn succeeded<RB>(&mut self, response: &mut Response<RB>) {
        if self.attempt == 1 {
            self.plan.operation.budget.first_try(true);
        }
        if self.trail.is_none() {
            return observe::answered(&self.plan, Class::Success);
        }
        let now = Instant::now();
        let outcome = AttemptOutcome::Status(response.status());
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
        response.extensions_mut().insert(report);
    }

    fn failed<RB: Body>(
        &mut self,
        result: Result<Answer<RB>, BoxError>,
        fault: Option<Fault>,
        verdict: Verdict,
    ) -> End<RB> {
        let now = Instant::now();
        let deadline = self.deadline();
        let outcome = outcome_of(&result, fault);
        let status = result.as_ref().ok().map(Response::status);
        let ended = Ended::with(status, fault, &verdict);
        if !verdict.is_listed() {
            observe::unclassified(self.about(), self.attempt, outcome);
        }
        let answered = result.is_ok() && verdict.class() != Class::Transient;
        if self.attempt == 1 {
            ended.of_first_try(&self.plan.operation.budget, now);
        }
        if answered && self.trail.is_none() && verdict.class() == Class::Permanent {
            // A business answer at the first try: no retry was refused, nothing to report.
            observe::answered(&self.plan, Class::Permanent);
            return End::Return(result.map_err(Error::of_inner));
        }
        let hold = self.plan.operation.held_for(&verdict, now);
        let trail = self.record(now, outcome, ended.reach, &verdict);
        trail.unknown |= ended.reach == Reach::Unknown;
        if let Some(sent) = trail.sent.take() {
            ended.of_retry(sent, now);
        }
        let (free_used, previous_wait) = (trail.free_used, trail.previous_wait);
        let over = now >= deadline && result.as_ref().is_err_and(|error| error.is::<AttemptTimedOut>());
        let decision = if over {
            Err(Stop { reason: StopReason::Deadline, not_before: verdict.hint().wait.max(hold) })
        } else {
            let situation = Situation {
                plan: &self.plan,
                verdict: &verdict,
                reach: ended.reach,
                calm: ended.calm,
                throttled: ended.throttled,
                attempt: self.attempt,
                upgrade: self.head.upgrade,
                replayable: self.source.can_repeat(),
                free_used,
                previous_wait,
                hold,
                now,
                deadline,
            };
            situation.decide()
        };
        match decision {
            Err(stop) => End::Return(self.stop(now, result, fault, verdict.class(), stop)),
            Ok(again) => self.again(now, deadline, result, again),
        }
    }

    fn again<RB: Body>(
        &mut self,
        now: Instant,
        deadline: Instant,
        result: Result<Answer<RB>, BoxError>,
        again: Again,
    ) -> End<RB> {
        let resume = later(now, again.wait);
        if let Some(trail) = &mut self.trail {
            trail.free_used |= again.charge.is_none();
            trail.charge = again.charge;
            trail.previous_wait = Some(again.own);
            if let Some(last) = trail.attempts.last_mut() {
                last.wait = Some(again.wait);
                last.held = again.held;
            }
        }
        if let Some(last) = self.trail.as_ref().and_then(|trail| trail.attempts.last()) {
            observe::will_retry(self.about(), last);
        }
        // Asked before the upload is cut off, which would look like its end.
        let uploading = self.source.may_be_uploading();
        self.source.revoke();
        match result {
            Ok(response) if !uploading && self.worth_draining(&response) => {
                // Not for longer than the call can afford: half of what the wait leaves is the next attempt's.
                let affordable = resume + deadline.saturating_duration_since(resume) / 2;
                let until = resume.max(affordable.min(now + DRAIN_TIME));
                End::Drain { body: response.into_body(), until, resume }
            }
            _ => End::Wait { resume },
        }
    }

    fn worth_draining<RB: Body>(&self, response: &Response<RB>) -> bool {
        let bodiless = self.head.method == Method::HEAD
            || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = response.body();
        !bodiless && !body.is_end_stream() && body.size_hint().lower() <= super::future::DRAIN as u64
    }

    fn stop<RB>(
        &mut self,
        now: Instant,
        result: Result<Response<RB>, BoxError>,
        fault: Option<Fault>,
        class: Class,
        stop: Stop,
    ) -> Result<Response<RB>, Error> {
        match result {
            Ok(mut response) => {
                let report = self.report(now, Some(stop.reason), stop.not_before);
                observe::ended(self.about(), &report, class, false);
                response.extensions_mut().insert(report);
                Ok(response)
            }
            Err(error) => {
                let timed_out = now >= self.deadline() && error.is::<AttemptTimedOut>();
                let error = match fault {
                    _ if timed_out => self.over(),
                    Some(fault) => Error::failed(error, fault),
                    None => Error::of_inner(error),
                };
                Err(self.give_up(now, error, class, stop.reason, stop.not_before))
            }
        }
    }
}

fn outcome_of<RB>(result: &Result<Response<RB>, BoxError>, fault: Option<Fault>) -> AttemptOutcome {
    match result {
        Ok(response) => AttemptOutcome::Status(response.status()),
        Err(_) => AttemptOutcome::Fault(fault.map_or(FaultKind::Unclassified, |fault| fault.kind())),
    }
}

/// Whether a policy may look into it (S6).
fn is_error(status: StatusCode) -> bool {
    status.as_u16() >= 400
}
