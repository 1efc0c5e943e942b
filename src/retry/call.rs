//! The state of one call: which attempt, since when, and what its failures left behind.
//!
//! It lives in the future, never in the policy. What a call that succeeds at once does not need is behind one box that
//! is made at the first failure.

use std::{cell::LazyCell, sync::Arc, time::Duration};

use http::Request;
use http_body::Body;
use tokio::time::Instant;

use super::{AttemptBody, Replay, guard, head::Head, promise, reading::Reading, source::Source, trail::Trail};
use crate::{
    BoxError, Deadline, Error,
    deadline::later,
    observe::{self, About},
    policy::{
        Class, HoldScope, Plan, StopReason,
        budget::Charge,
        decide::{self, Held},
    },
};

pub(super) struct Call<B: Body> {
    pub(super) plan: Plan,
    pub(super) head: Head,
    pub(super) source: Source<B>,
    /// How far the client got with the current attempt's body.
    pub(super) reading: Reading,
    /// The current attempt; 0 before the first.
    pub(super) attempt: u32,
    outer: Option<Deadline>,
    /// When the call began; `None` while nothing had to be waited for. An answer at once needs no clock.
    started: Option<Instant>,
    pub(super) trail: Option<Box<Trail>>,
}

impl<B: Replay> Call<B> {
    pub(super) fn new(plan: Plan, request: Request<B>) -> (Self, Request<AttemptBody<B>>) {
        let head = Head::keep(&request);
        let outer = request.extensions().get().copied();
        let (parts, body) = request.into_parts();
        let reading = head.reading();
        let (body, source) = Source::split(body, promise::content_length(&parts.headers), reading.clone());
        let call = Call { plan, head, source, reading, attempt: 0, outer, started: None, trail: None };
        (call, Request::from_parts(parts, body))
    }

    /// Whether the first attempt may have to wait, or comes too late: decided when the call is polled.
    pub(super) fn may_not_start(&self) -> bool {
        let operation = &self.plan.operation;
        let held = operation.hold_scope == HoldScope::All && operation.hold.was_held();
        let late = self.outer.is_some_and(|outer| outer.remaining().is_zero());
        held || late || self.plan.timeouts().total.is_zero()
    }

    /// When a wait is over: go on (`None`), or not before an instant, or not at all, because of what another call was
    /// told meanwhile.
    pub(super) fn still_held(&mut self) -> Result<Option<Instant>, Error> {
        let operation = Arc::clone(&self.plan.operation);
        let waited = match self.trail.as_ref().map(|trail| (trail.attempts.last(), trail.first_held)) {
            Some((Some(last), _)) => last.wait,
            Some((None, first_held)) => first_held,
            None => None,
        };
        let waited = waited.unwrap_or_default();
        let (first, now) = (self.attempt == 0, LazyCell::new(Instant::now));
        let left = |now| self.deadline().saturating_duration_since(now);
        let wait = match decide::held(&operation, first, waited, || *now, left) {
            Held::No => return Ok(None),
            Held::TooLong(hold) => {
                let (class, reason) = (Class::Transient, StopReason::WaitTooLong);
                return Err(self.give_up(*now, Error::held(), class, reason, Some(hold)));
            }
            Held::For(wait) => wait,
        };
        let trail = self.trail.get_or_insert_default();
        match trail.attempts.last_mut() {
            Some(last) => (last.wait, last.held) = (Some(waited + wait), true),
            None => trail.first_held = Some(waited + wait),
        }
        Ok(Some(later(*now, wait)))
    }

    pub(super) fn about(&self) -> About<'_> {
        About { plan: &self.plan, method: &self.head.method, uri: &self.head.uri }
    }

    pub(super) fn started(&mut self) -> Instant {
        *self.started.get_or_insert_with(Instant::now)
    }

    /// The first attempt starts with the call, unless it was held.
    pub(super) fn attempt_started(&mut self) -> Instant {
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
        self.reading = Reading::new();
        let Some(body) = self.source.again(self.reading.clone()) else {
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
    pub(super) fn over(&mut self) -> Error {
        let total = self.plan.timeouts().total;
        let own = later(self.started(), total);
        match self.outer {
            Some(outer) if outer.instant() < own => Error::deadline(),
            _ => Error::total(total),
        }
    }

    pub(super) fn give_up(
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
}
