//! The state of one call: which attempt, since when, and what its failures left behind.
//!
//! It lives in the future, never in the policy. What a call that succeeds at once does not need is behind one box that
//! is made at the first failure.

use std::{mem, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::{
    AttemptBody, AttemptOutcome, AttemptReport, CallReport, Replay, guard, head::Head, promise, report, source::Source,
};
use crate::{
    BoxError, Deadline, Error, Policy,
    deadline::later,
    error::AttemptTimedOut,
    fault::{Fault, FaultKind},
    observe::{self, About},
    policy::{
        Class, HoldScope, Outcome, Plan, Reach, StopReason, Verdict,
        budget::{Charge, Sent},
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

pub(super) struct Call<B: Body> {
    plan: Plan,
    head: Head,
    pub(super) source: Source<B>,
    /// The current attempt; 0 before the first.
    pub(super) attempt: u32,
    outer: Option<Deadline>,
    /// When the call began; `None` while nothing had to be waited for. An answer at once needs no clock.
    started: Option<Instant>,
    trail: Option<Box<Trail>>,
}

/// What failed attempts left behind.
#[derive(Default)]
struct Trail {
    attempts: Vec<AttemptReport>,
    /// For the next attempt, until it is sent.
    charge: Option<Charge>,
    /// For the current attempt.
    sent: Option<Sent>,
    /// When the current attempt was sent, where it was not the start of the call.
    sent_at: Option<Instant>,
    first_held: Option<Duration>,
    free_used: bool,
    unknown: bool,
    stacked: bool,
    previous_wait: Option<Duration>,
}

/// A failed response is read to its end at least this long, even where the wait is shorter: to open a new connection
/// would take as long.
const DRAIN_TIME: Duration = Duration::from_millis(250);

impl<B: Replay> Call<B> {
    pub(super) fn new(plan: Plan, request: Request<B>) -> (Self, Request<AttemptBody<B>>) {
        let head = Head::keep(&request);
        let outer = request.extensions().get().copied();
        let (parts, body) = request.into_parts();
        // Whether the client has begun to read the body decides nothing where a repeat is safe anyway.
        let polled = (plan.evidence().is_none() && plan.max_attempts() > 1).then(|| head.flag());
        let (body, source) = Source::split(body, promise::content_length(&parts.headers), polled);
        let call = Call { plan, head, source, attempt: 0, outer, started: None, trail: None };
        (call, Request::from_parts(parts, body))
    }

    /// Before the first attempt: send at once (`None`), or not before an instant, or not at all.
    pub(super) fn before_first(&mut self) -> Result<Option<Instant>, Error> {
        if self.outer.is_some() && Instant::now() >= self.deadline() {
            return Err(self.out_of_time());
        }
        match self.plan.operation.hold_scope {
            HoldScope::All => self.held_until(),
            _ => Ok(None),
        }
    }

    /// When a wait is over: go on (`None`), or not before an instant, or not at all, because of what another call was
    /// told meanwhile.
    pub(super) fn still_held(&mut self) -> Result<Option<Instant>, Error> {
        match self.plan.operation.hold_scope {
            HoldScope::None => Ok(None),
            _ => self.held_until(),
        }
    }

    /// The hold as it is now. Asked for without a clock while the provider never asked for anything.
    fn held_until(&mut self) -> Result<Option<Instant>, Error> {
        let operation = Arc::clone(&self.plan.operation);
        if !operation.hold.was_held() {
            return Ok(None);
        }
        let now = Instant::now();
        let Some(hold) = operation.hold.remaining(now) else { return Ok(None) };
        let left = self.deadline().saturating_duration_since(now);
        if hold >= left || hold > operation.longest_server_wait {
            return Err(self.give_up(now, Error::held(), Class::Transient, StopReason::WaitTooLong, Some(hold)));
        }
        let wait = operation.spread(Duration::ZERO, hold, left, &mut operation.dice());
        let trail = self.trail.get_or_insert_default();
        match trail.attempts.last_mut() {
            Some(last) => {
                last.wait = last.wait.map(|waited| waited + wait);
                last.held = true;
            }
            None => trail.first_held = Some(trail.first_held.unwrap_or_default() + wait),
        }
        Ok(Some(later(now, wait)))
    }

    pub(super) fn about(&self) -> About<'_> {
        About { plan: &self.plan, method: &self.head.method, uri: &self.head.uri }
    }

    fn started(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    /// The first attempt starts with the call, unless it was held.
    fn attempt_started(&mut self) -> Instant {
        let sent_at = self.trail.as_ref().and_then(|trail| trail.sent_at);
        sent_at.unwrap_or_else(|| self.started())
    }

    /// The instant by which the call must end.
    pub(super) fn deadline(&mut self) -> Instant {
        let total = later(self.started(), self.plan.timeouts().total);
        self.outer.map_or(total, |outer| total.min(outer.instant()))
    }

    /// The instant by which the current attempt must end.
    pub(super) fn attempt_ends(&mut self) -> Instant {
        later(self.attempt_started(), self.plan.timeouts().attempt).min(self.deadline())
    }

    /// The next attempt's request. Here the retry that was decided is sent, and so spent.
    pub(super) fn next(&mut self) -> Result<Request<AttemptBody<B>>, Error> {
        let now = Instant::now();
        if now >= self.deadline() {
            return Err(self.out_of_time());
        }
        let Some(body) = self.source.again() else {
            return Err(self.give_up(now, Error::unrepeatable(), Class::Transient, StopReason::BodyTooLarge, None));
        };
        self.attempt += 1;
        let trail = self.trail.get_or_insert_default();
        trail.sent_at = Some(now);
        trail.sent = trail.charge.take().map(Charge::sent);
        let mut request = self.head.rebuild(body);
        guard::mark(request.extensions_mut(), self.attempt);
        Ok(request)
    }

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
                    let fault = Fault::read_attempt(&*error, self.source.polled());
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
            Ok(response) => report::take_stacked(response.extensions_mut()),
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
        let verdict = policy.judge(&self.plan, &outcome);
        // Whoever judged: never earlier than the server said (S17).
        self.plan.operation.heed(verdict, &outcome)
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
        if self.attempt > 1 {
            // The first try, held back, has a report as well.
            if self.attempt > 1 {
                observe::recovered(self.about(), &report);
            }
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
        let outcome = match &result {
            Ok(response) => AttemptOutcome::Status(response.status()),
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
        // An answer that is no failure of the provider's counts as its success; an error that does not pass (the
        // caller's body, a certificate, one that nobody knows) says nothing about the provider's health.
        let answered = result.is_ok() && !transient;
        if self.attempt == 1 && (answered || transient) {
            self.plan.operation.budget.first_try(answered);
        }
        if answered && self.trail.is_none() && verdict.class() == Class::Permanent {
            // A business answer at the first try: no retry was refused, nothing to report.
            return End::Return(result.map_err(Error::of_inner));
        }
        let hold = self.plan.operation.held_for(&verdict, now);
        let trail = self.record(now, outcome, reach, &verdict);
        trail.unknown |= reach == Reach::Unknown;
        if let Some(sent) = trail.sent.take() {
            match (answered, transient) {
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
            let too_many = outcome == AttemptOutcome::Status(StatusCode::TOO_MANY_REQUESTS);
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

    /// The inner service failed to become ready again.
    pub(super) fn not_ready(&mut self, error: BoxError) -> Error {
        let error = Error::not_ready(error);
        self.give_up(Instant::now(), error, Class::Transient, StopReason::NotReady, None)
    }

    /// The deadline passed between two attempts.
    pub(super) fn out_of_time(&mut self) -> Error {
        let error = self.over();
        self.give_up(Instant::now(), error, Class::Transient, StopReason::Deadline, None)
    }

    /// Whichever ends the call first: its own total, or the caller's deadline.
    fn over(&mut self) -> Error {
        let total = self.plan.timeouts().total;
        let own = later(self.started(), total);
        match self.outer {
            Some(outer) if outer.instant() < own => Error::deadline(),
            _ => Error::total(total),
        }
    }

    fn give_up(
        &mut self,
        now: Instant,
        error: Error,
        class: Class,
        reason: StopReason,
        not_before: Option<Duration>,
    ) -> Error {
        if let Some(trail) = &mut self.trail {
            // A retry that is not sent after all: refunded now, however long this future is kept.
            trail.charge = None;
        }
        let report = self.report(now, Some(reason), not_before);
        observe::ended(self.about(), &report, class, true);
        error.with_call(self.plan.clone(), report)
    }

    fn record(&mut self, now: Instant, outcome: AttemptOutcome, reach: Reach, verdict: &Verdict) -> &mut Trail {
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

    fn report(&mut self, now: Instant, stop: Option<StopReason>, not_before: Option<Duration>) -> CallReport {
        let elapsed = now.saturating_duration_since(self.started());
        let clock = &self.plan.operation.clock;
        let trail = self.trail.as_deref_mut();
        let Trail { attempts, unknown, stacked, first_held, .. } = trail.map(mem::take).unwrap_or_default();
        let retry_at = not_before.and_then(|wait| clock.now().checked_add(wait));
        CallReport::new(report::Inner { attempts, elapsed, stop, retry_at, unknown, stacked, first_held })
    }
}

/// What a stacked layer hands on: the outer one reads the sign, and takes it out of an answer.
pub(super) fn mark_stacked<RB>(result: Result<Response<RB>, BoxError>) -> Result<Response<RB>, Error> {
    match result {
        Ok(mut response) => {
            response.extensions_mut().insert(CallReport::of_stacked());
            Ok(response)
        }
        Err(error) => Err(Error::of_inner(error).sent_once(CallReport::of_stacked())),
    }
}
