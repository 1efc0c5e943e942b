//! The state of one call: which attempt, since when, and what its failures left behind.
//!
//! It lives in the future, never in the policy. What a call that succeeds at once does not need is behind one box that
//! is made at the first failure.

use std::{sync::Arc, time::Duration};

use http::{Extensions, Request};
use http_body::Body;
use tokio::time::Instant;

use super::{AttemptBody, Replay, guard, head::Head, promise, reading::Reading, source::Source, trail::Trail};
use crate::{
    BoxError, Deadline, Error,
    deadline::later,
    observe::{self, About},
    policy::{Class, HoldScope, Plan, StopReason, budget::Charge},
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
        match self.plan.operation.hold_scope {
            HoldScope::None => Ok(None),
            HoldScope::Retries if self.attempt == 0 => Ok(None),
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
        let trail = self.trail.get_or_insert_default();
        let (before, held) = match trail.attempts.last_mut() {
            Some(last) => (&mut last.wait, Some(&mut last.held)),
            None => (&mut trail.first_held, None),
        };
        let waited = before.unwrap_or_default();
        let wait = operation.release(waited, hold, left, &mut operation.dice());
        *before = Some(waited + wait);
        if let Some(held) = held {
            *held = true;
        }
        Ok(Some(later(now, wait)))
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
        self.tell_end(request.extensions_mut());
        Ok(request)
    }

    /// Where the attempt tells its server: when it ends.
    pub(super) fn tell_end(&mut self, extensions: &mut Extensions) {
        if self.plan.grpc {
            extensions.insert(guard::AttemptEnds(self.attempt_ends()));
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
