//! After an attempt: what it means, and what follows.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::{AttemptOutcome, Replay, call::Call, report};
use crate::{
    BoxError, Error, Policy,
    deadline::later,
    error::AttemptTimedOut,
    fault::{Fault, FaultKind},
    observe,
    policy::{
        Class, GrpcCode, Outcome, Reach, StopReason, Verdict,
        decide::{Again, Situation, Stop},
    },
    timeout::Expired,
};

/// What follows an attempt.
pub(super) enum End<RB> {
    /// The call is over.
    Return(Result<Response<RB>, Error>),
    /// Another attempt at `resume`; until then the failed answer is read to its end, but not longer than `until`.
    Drain { body: RB, until: Instant, resume: Instant },
    /// Another attempt at `resume`.
    Wait { resume: Instant },
}

/// A failed response is read to its end at least this long, even where the wait is shorter: to open a new connection
/// would take as long.
const DRAIN_TIME: Duration = Duration::from_millis(250);

impl<B: Replay> Call<B> {
    /// An attempt has ended: what follows?
    pub(super) fn settle<P, RB>(
        &mut self,
        policy: &P,
        result: Result<Result<Response<RB>, BoxError>, Expired>,
    ) -> End<RB>
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
        let verdict = self.judge(policy, &result, fault);
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
    ) -> Verdict {
        let outcome = match result {
            Ok(response) => Outcome::answer(response.status(), response.headers()),
            Err(error) => Outcome::failed_as(&**error, fault.unwrap_or_else(|| Fault::read(&**error))),
        };
        let unknown = self.trail.as_ref().is_some_and(|trail| trail.unknown);
        let outcome = outcome.of_attempt(self.attempt, unknown);
        let outcome = if self.plan.grpc { outcome.over_grpc() } else { outcome };
        let verdict = policy.judge(&self.plan, &outcome);
        // Whoever judged: never earlier than the server said (S17).
        self.plan.operation.heed(verdict, &outcome)
    }

    /// The code of an answer of gRPC, where it says one.
    fn code<RB>(&self, response: &Response<RB>) -> Option<GrpcCode> {
        if self.plan.grpc { GrpcCode::said(response.headers()) } else { None }
    }

    fn succeeded<RB>(&mut self, response: &mut Response<RB>) {
        if self.attempt == 1 {
            self.plan.operation.budget.first_try(true);
        }
        if self.trail.is_none() {
            return;
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
        }
        response.extensions_mut().insert(report);
    }

    fn failed<RB: Body>(
        &mut self,
        result: Result<Response<RB>, BoxError>,
        fault: Option<Fault>,
        verdict: Verdict,
    ) -> End<RB> {
        let now = Instant::now();
        let deadline = self.deadline();
        let transient = verdict.class() == Class::Transient;
        let code = result.as_ref().ok().and_then(|response| self.code(response));
        let outcome = match &result {
            Ok(response) => code.map_or(AttemptOutcome::Status(response.status()), AttemptOutcome::Grpc),
            Err(_) => AttemptOutcome::Fault(fault.map_or(FaultKind::Unclassified, |fault| fault.kind())),
        };
        let reach = match fault {
            Some(fault) if fault.is_unsent() => Reach::NotSent,
            _ if verdict.rejected_because().is_some() => Reach::Rejected,
            _ if result.is_ok() && !transient => Reach::Answered,
            _ => Reach::Unknown,
        };
        if !verdict.is_listed() {
            observe::unclassified(self.about(), self.attempt, outcome);
        }
        let answered = result.is_ok() && !transient;
        // An answer that is no failure of the provider's counts as its success. What does not pass, a 5xx that nobody
        // listed or an error that nobody knows, says nothing about its health.
        let healthy = |response: &Response<RB>| match code {
            Some(code) => !code.is_of_server(),
            None => !response.status().is_server_error(),
        };
        let served = answered && result.as_ref().is_ok_and(healthy);
        if self.attempt == 1 && (served || transient) {
            self.plan.operation.budget.first_try(served);
        }
        if answered && self.trail.is_none() && verdict.class() == Class::Permanent {
            // A business answer at the first try: no retry was refused, nothing to report.
            return End::Return(result.map_err(Error::of_inner));
        }
        let hold = self.plan.operation.held_for(&verdict, now);
        let trail = self.record(now, outcome, reach, &verdict);
        trail.unknown |= reach == Reach::Unknown;
        if let Some(sent) = trail.sent.take() {
            match (served, transient) {
                (true, _) => sent.succeeded(),
                (false, true) => sent.failed(),
                (false, false) => drop(sent),
            }
        }
        let (free_used, previous_wait) = (trail.free_used, trail.previous_wait);
        let over = now >= deadline && result.as_ref().is_err_and(|error| error.is::<AttemptTimedOut>());
        let decision = if over {
            Err(Stop { reason: StopReason::Deadline, not_before: verdict.hint().wait.max(hold) })
        } else {
            let calm = fault.is_some_and(|fault| fault.asks_calm());
            let too_many = outcome == AttemptOutcome::Status(StatusCode::TOO_MANY_REQUESTS)
                || outcome == AttemptOutcome::Grpc(GrpcCode::ResourceExhausted);
            let situation = Situation {
                plan: &self.plan,
                verdict: &verdict,
                reach,
                calm,
                throttled: calm || too_many || reach == Reach::Rejected,
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
        result: Result<Response<RB>, BoxError>,
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
