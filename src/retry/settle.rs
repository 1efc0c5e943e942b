//! After an attempt: what it means, and what follows.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::{
    AnswerBody, AttemptOutcome, Replay,
    after::{Failed, Next},
    another_host,
    call::Call,
    report,
};
use crate::{
    BoxError, Error, Policy,
    error::AttemptTimedOut,
    fault::{Fault, FaultKind},
    observe,
    policy::{Class, GrpcCode, Outcome, Verdict, decide::Stop},
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
    /// An answer came. `None`: it is what was asked for, and the call is over. By reference, as an answer is large.
    #[inline]
    pub(super) fn answered<P: Policy, RB>(&mut self, policy: &P, response: &mut Response<RB>) -> Option<Verdict> {
        // What a stacked layer below left is absorbed into this call's report.
        if report::take_foreign(response.extensions_mut()) {
            self.course.found_stacked();
        }
        let verdict = self.judge(policy, Outcome::answer(response.status(), response.headers()));
        match verdict.class() {
            Class::Success => {
                self.succeeded(response, &verdict);
                None
            }
            _ => Some(verdict),
        }
    }

    /// An answer came that is not what was asked for: what follows?
    #[cold]
    pub(super) fn declined<RB: Body>(&mut self, response: Answer<RB>, verdict: Verdict) -> End<RB> {
        match verdict.asks_for_body() && is_error(response.status()) {
            true => End::Look(Box::new(response.map(AnswerBody::looked_into))),
            false => self.failed(Ok(response), None, verdict),
        }
    }

    /// The beginning of the answer's body is known, as far as it came in time.
    #[cold]
    pub(super) fn looked<P: Policy, RB: Body>(&mut self, policy: &P, mut response: Answer<RB>) -> End<RB> {
        let outcome = Outcome::answer(response.status(), response.headers());
        let verdict = self.judge(policy, outcome.with_body(response.body().looked_at()));
        if verdict.class() != Class::Success {
            return self.failed(Ok(response), None, verdict);
        }
        self.succeeded(&mut response, &verdict);
        End::Return(Ok(response))
    }

    /// No answer came.
    #[cold]
    pub(super) fn unanswered<P: Policy, RB: Body>(&mut self, policy: &P, error: BoxError) -> End<RB> {
        match self.source.failure() {
            Some(failed) => self.errored(policy, failed.beneath(error), Fault::request_body_failed()),
            None => {
                let fault = self.head.flags().read(&*error);
                self.errored(policy, error, fault)
            }
        }
    }

    /// The attempt's time is over.
    #[cold]
    pub(super) fn timed_out<P: Policy, RB: Body>(&mut self, policy: &P) -> End<RB> {
        let error = AttemptTimedOut(self.course.plan.timeouts().attempt);
        self.errored(policy, error.into(), Fault::attempt_timeout())
    }

    fn errored<P: Policy, RB: Body>(&mut self, policy: &P, error: BoxError, fault: Fault) -> End<RB> {
        if report::failed_stacked(&*error) {
            self.course.found_stacked();
        }
        let verdict = self.judge(policy, Outcome::failed_as(&*error, fault));
        self.failed(Err(error), Some(fault), verdict)
    }

    #[inline]
    fn judge<P: Policy>(&self, policy: &P, outcome: Outcome<'_>) -> Verdict {
        let outcome = if self.course.plan.grpc { outcome.over_grpc() } else { outcome };
        self.course.judge(policy, outcome)
    }

    /// The answer is what was asked for.
    #[inline]
    fn succeeded<RB>(&mut self, response: &mut Response<RB>, verdict: &Verdict) {
        if !self.course.is_part() {
            observe::attempted(&self.course.plan, self.outcome_of_answer(response), verdict);
        }
        if let Some(report) = self.course.succeeded(AttemptOutcome::Status(response.status())) {
            response.extensions_mut().insert(report);
        }
    }

    fn outcome_of<RB>(&self, result: &Result<Response<RB>, BoxError>, fault: Option<Fault>) -> AttemptOutcome {
        match result {
            Ok(response) => self.outcome_of_answer(response),
            Err(_) => AttemptOutcome::Fault(fault.map_or(FaultKind::Unclassified, |fault| fault.kind())),
        }
    }

    /// By its code, where it is an answer of gRPC that says one.
    fn outcome_of_answer<RB>(&self, response: &Response<RB>) -> AttemptOutcome {
        let code = if self.course.plan.grpc { GrpcCode::said(response.headers()) } else { None };
        code.map_or(AttemptOutcome::Status(response.status()), AttemptOutcome::Grpc)
    }

    #[cold]
    fn failed<RB: Body>(
        &mut self,
        result: Result<Answer<RB>, BoxError>,
        fault: Option<Fault>,
        verdict: Verdict,
    ) -> End<RB> {
        if !self.course.is_part() {
            observe::attempted(&self.course.plan, self.outcome_of(&result, fault), &verdict);
        }
        let failed = Failed {
            verdict: &verdict,
            outcome: self.outcome_of(&result, fault),
            fault,
            timed_out: result.as_ref().is_err_and(|error| error.is::<AttemptTimedOut>()),
            upgrade: self.head.upgrade,
            of_one_request: self.head.flags().is_of_one_request(),
            of_another_host: result
                .as_ref()
                .is_ok_and(|response| another_host::is_of_another_host(response.extensions())),
        };
        match self.course.failed(failed, || self.source.can_repeat()) {
            Next::Answered => End::Return(result.map_err(Error::of_inner)),
            Next::Stop { now, stop, over } => End::Return(self.stop(now, result, fault, verdict.class(), stop, over)),
            Next::Again { now, deadline, resume } => self.let_go(now, deadline, resume, result),
        }
    }

    /// The failed attempt is let go.
    fn let_go<RB: Body>(
        &mut self,
        now: Instant,
        deadline: Instant,
        resume: Instant,
        result: Result<Answer<RB>, BoxError>,
    ) -> End<RB> {
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
        let bodiless = self.course.line.as_ref().is_some_and(|line| line.method == Method::HEAD)
            || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = response.body();
        !bodiless && !body.is_end_stream() && body.size_hint().lower() <= super::drain::MOST as u64
    }

    fn stop<RB>(
        &mut self,
        now: Instant,
        result: Result<Response<RB>, BoxError>,
        fault: Option<Fault>,
        class: Class,
        stop: Stop,
        over: bool,
    ) -> Result<Response<RB>, Error> {
        match result {
            Ok(mut response) => {
                let report = self.course.report(now, Some(self.course.reason(stop.reason)), stop.not_before);
                self.course.ended(&report, class, false);
                response.extensions_mut().insert(report);
                Ok(response)
            }
            Err(error) => {
                let error = match fault {
                    _ if over => self.course.over(),
                    Some(fault) => Error::failed(error, fault),
                    None => Error::of_inner(error),
                };
                Err(self.course.give_up(now, error, class, stop.reason, stop.not_before))
            }
        }
    }
}

/// Whether a policy may look into it (S6).
fn is_error(status: StatusCode) -> bool {
    status.as_u16() >= 400
}
