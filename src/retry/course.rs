//! The course of one call: which attempt, since when, and what its failures left behind.
//!
//! The same for a request and for a block of code. It lives in the future, never in the policy. What a call that
//! succeeds at once does not need is behind one box that is made at the first failure.

use std::{cell::LazyCell, sync::Arc, time::Duration};

use http::{Method, Uri, request::Parts};
use tokio::time::Instant;

use super::{CallReport, current::AttemptTime, trail::Trail};
use crate::{
    Deadline, Error,
    deadline::later,
    hints::{self, InBlock, OutboundHints},
    observe::{self, About},
    policy::{
        Class, HoldScope, Plan, StopReason,
        budget::Charge,
        decide::{self, Held},
    },
};

pub(crate) struct Course {
    pub(crate) plan: Plan,
    /// `None`: a block of code.
    pub(super) line: Option<RequestLine>,
    /// The current attempt; 0 before the first.
    pub(crate) attempt: u32,
    /// Whoever is served by this call asks for the same once more already.
    pub(super) caller_retries: bool,
    /// It is part of a block, which repeats it and tells what became of it (D34). Which attempt, the trail knows.
    part: bool,
    /// By when the call must end: what is asked of it from outside, and once it has begun its own total too.
    by: Option<Deadline>,
    /// When the call began; `None` while nothing had to be waited for. An answer at once needs no clock.
    started: Option<Instant>,
    pub(super) trail: Option<Box<Trail>>,
}

/// What a request is about.
pub(super) struct RequestLine {
    pub(super) method: Method,
    pub(super) uri: Uri,
}

impl RequestLine {
    #[inline]
    pub(super) fn of(parts: &Parts) -> Self {
        RequestLine { method: parts.method.clone(), uri: parts.uri.clone() }
    }
}

impl Course {
    #[inline]
    pub(super) fn of_request(plan: Plan, line: RequestLine, outer: Option<Deadline>) -> Self {
        Course { line: Some(line), ..Self::of_block(plan, outer) }
    }

    #[inline]
    pub(crate) fn of_block(plan: Plan, outer: Option<Deadline>) -> Self {
        let (attempt, caller_retries, part, started, trail) = (0, false, false, None, None);
        Course { plan, line: None, attempt, caller_retries, part, by: outer, started, trail }
    }

    /// What whoever is being served wants.
    pub(crate) fn heed_caller(&mut self, hints: &OutboundHints) {
        self.by = [self.by, hints.deadline()].into_iter().flatten().min();
        self.caller_retries = hints.sends_once();
        if let Some(block) = hints.block() {
            self.part = true;
            self.trail.get_or_insert_default().part_of = Some(block);
            // That is how it is meant: no WARN.
            hints::notice_stacked();
            observe::part_of_a_block(&self.plan);
        }
    }

    /// Whether a block around this call repeats it. What remains of the policy then: its timeouts, what it judges, and
    /// the hold. The block has its own attempts, budget and events.
    pub(crate) fn is_part(&self) -> bool {
        self.part
    }

    fn part_of(&self) -> Option<InBlock> {
        self.trail.as_ref()?.part_of
    }

    /// The first attempt begins, with the call itself.
    pub(crate) fn begin_first(&mut self) {
        self.attempt = self.part_of().map_or(1, |block| block.attempt);
    }

    /// Whether the first attempt may have to wait, or comes too late: decided when the call is polled.
    pub(crate) fn may_not_start(&self) -> bool {
        let operation = &self.plan.operation;
        let waits = match operation.hold_scope {
            HoldScope::All => true,
            HoldScope::Retries => !self.is_first_try(),
            HoldScope::None => false,
        };
        // One that is over costs a look at the clock, and not a timer, which fires a millisecond later at the earliest.
        let held = waits && operation.hold.was_held() && operation.hold.remaining(Instant::now()).is_some();
        let late = self.by.is_some_and(|outer| outer.remaining().is_zero());
        held || late || self.plan.timeouts().total.is_zero()
    }

    /// Whether nothing of it was sent yet, by this call or by the block that it is part of.
    fn is_first_try(&self) -> bool {
        self.attempt == 0 && self.part_of().is_none_or(|block| block.attempt == 1)
    }

    /// When a wait is over: go on (`None`), or not before an instant, or not at all, because of what another call was
    /// told meanwhile.
    pub(crate) fn still_held(&mut self) -> Result<Option<Instant>, Error> {
        let operation = Arc::clone(&self.plan.operation);
        let waited = match self.trail.as_ref().map(|trail| (trail.attempts.last(), trail.first_held)) {
            Some((Some(last), _)) => last.wait,
            Some((None, first_held)) => first_held,
            None => None,
        };
        let waited = waited.unwrap_or_default();
        let (first, now) = (self.is_first_try(), LazyCell::new(Instant::now));
        let left = |now| self.until().saturating_duration_since(now);
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

    pub(crate) fn about(&self) -> About<'_> {
        About { plan: &self.plan, request: self.line.as_ref().map(|line| (&line.method, &line.uri)) }
    }

    pub(super) fn started(&mut self) -> Instant {
        if let Some(started) = self.started {
            return started;
        }
        let now = Instant::now();
        let own = Deadline::at(later(now, self.plan.timeouts().total));
        self.by = Some(self.by.map_or(own, |outer| outer.min(own)));
        *self.started.insert(now)
    }

    /// The first attempt starts with the call, unless it was held.
    pub(super) fn attempt_started(&mut self) -> Instant {
        let sent_at = self.trail.as_ref().and_then(|trail| trail.sent_at);
        sent_at.unwrap_or_else(|| self.started())
    }

    /// The instant by which the call must end.
    pub(super) fn deadline(&mut self) -> Instant {
        let started = self.started();
        self.by.map_or(started, Deadline::instant)
    }

    /// The same, or the end of the block's attempt, which the block itself enforces.
    fn until(&mut self) -> Instant {
        let deadline = self.deadline();
        self.part_of().map_or(deadline, |block| deadline.min(block.ends))
    }

    /// The instant by which the current attempt must end.
    pub(crate) fn attempt_ends(&mut self) -> Instant {
        later(self.attempt_started(), self.plan.timeouts().attempt).min(self.deadline())
    }

    /// The same, as whoever serves the attempt is to know it: a block's attempt ends its parts too.
    pub(crate) fn attempt_is_over_by(&mut self) -> Instant {
        let ends = self.attempt_ends();
        self.part_of().map_or(ends, |block| ends.min(block.ends))
    }

    /// The same, while it has just begun: without a clock, which an answer at once does not need.
    pub(super) fn attempt_time(&mut self) -> AttemptTime {
        let timeouts = self.plan.timeouts();
        if self.started.is_some() {
            return AttemptTime { within: timeouts.attempt, by: Some(self.attempt_is_over_by()) };
        }
        let by = match (self.by, self.part_of()) {
            (None, None) => None,
            (by, block) => by.map(Deadline::instant).into_iter().chain(block.map(|block| block.ends)).min(),
        };
        AttemptTime { within: timeouts.attempt.min(timeouts.total), by }
    }

    /// Whether earlier attempts may have taken effect.
    pub(crate) fn earlier_unknown(&self) -> bool {
        self.trail.as_ref().is_some_and(|trail| trail.unknown)
    }

    /// A call through a second retry layer was noticed below.
    pub(crate) fn found_stacked(&mut self) {
        self.trail.get_or_insert_default().stacked = true;
    }

    /// The next attempt begins. Here the retry that was decided is sent, and so spent.
    pub(super) fn begin(&mut self, now: Instant) {
        match self.attempt {
            0 => self.begin_first(),
            _ => self.attempt += 1,
        }
        let trail = self.trail.get_or_insert_default();
        trail.sent_at = Some(now);
        trail.sent = trail.charge.take().map(Charge::sent);
    }

    /// The next attempt of a block begins, unless it comes too late.
    pub(crate) fn begin_in_time(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now >= self.deadline() {
            return Err(self.out_of_time());
        }
        self.begin(now);
        Ok(())
    }

    /// The deadline passed between two attempts.
    pub(super) fn out_of_time(&mut self) -> Error {
        let error = self.over();
        self.give_up(Instant::now(), error, Class::Transient, StopReason::Deadline, None)
    }

    /// Whichever ends the call first: its own total, or the caller's deadline.
    pub(crate) fn over(&mut self) -> Error {
        let total = self.plan.timeouts().total;
        let own = later(self.started(), total);
        match self.by {
            Some(outer) if outer.instant() < own => Error::deadline(),
            _ => Error::total(total),
        }
    }

    pub(crate) fn give_up(
        &mut self,
        now: Instant,
        error: Error,
        class: Class,
        reason: StopReason,
        not_before: Option<Duration>,
    ) -> Error {
        self.end(now, error, reason, not_before, class, true)
    }

    /// Ends in an error. `failure`: it is one of what should have worked, whatever its class (S16).
    pub(crate) fn end(
        &mut self,
        now: Instant,
        error: Error,
        reason: StopReason,
        not_before: Option<Duration>,
        class: Class,
        failure: bool,
    ) -> Error {
        if let Some(trail) = &mut self.trail {
            // A retry that is not sent after all: refunded now, however long this future is kept.
            trail.charge = None;
        }
        let report = self.report(now, Some(self.reason(reason)), not_before);
        self.ended(&report, class, failure);
        error.with_call(self.plan.clone(), report)
    }

    /// It ended: whoever listens is told, by the block where it is part of one.
    pub(super) fn ended(&self, report: &CallReport, class: Class, failure: bool) {
        if !self.is_part() {
            observe::ended(self.about(), report, class, failure);
        }
    }

    /// Why there was no other attempt. Part of a block is repeated by the block, unless a provider asked for a wait that
    /// the block cannot afford either.
    pub(super) fn reason(&self, own: StopReason) -> StopReason {
        match own {
            StopReason::WaitTooLong => own,
            _ if self.is_part() => StopReason::Stacked,
            own => own,
        }
    }
}
