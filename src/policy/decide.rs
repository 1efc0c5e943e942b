//! After a failed attempt: repeat it, and when; or stop, and why.
//!
//! One function, always in the same order. The engine runs it, and whatever explains a policy runs it too: there is
//! no second copy of the rules.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::{
    Budget, Class, GrpcCode, HoldScope, Plan, Reach, StopReason, Verdict,
    budget::{Charge, Load, Sent},
    operation::Operation,
};
use crate::fault::Fault;

/// What an attempt's end says: of the request, how far it got; of the provider, whether it did its work.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) reach: Reach,
    /// An answer that is no failure of the provider's counts as its success. What does not pass, a 5xx that nobody
    /// listed or an error that nobody knows, says nothing about its health: it is neither served nor transient.
    served: bool,
    transient: bool,
    /// The provider asked for less load: a 429, a documented rejection, or HTTP/2's word for it.
    pub(crate) throttled: bool,
    /// The peer asked to be left in peace (HTTP/2's ENHANCE_YOUR_CALM).
    pub(crate) calm: bool,
}

impl Ended {
    /// With an answer of this status, or without one, in this fault.
    pub(crate) fn with(status: Option<StatusCode>, fault: Option<Fault>, verdict: &Verdict) -> Self {
        let transient = verdict.class() == Class::Transient;
        let reach = match fault {
            Some(fault) if fault.is_unsent() => Reach::NotSent,
            _ if verdict.rejected_because().is_some() => Reach::Rejected,
            None if !transient => Reach::Answered,
            _ => Reach::Unknown,
        };
        let calm = fault.is_some_and(|fault| fault.asks_calm());
        Ended {
            reach,
            served: !transient && fault.is_none() && !status.is_some_and(|status| status.is_server_error()),
            transient,
            throttled: calm || reach == Reach::Rejected || status == Some(StatusCode::TOO_MANY_REQUESTS),
            calm,
        }
    }

    /// The answer is one of gRPC, and said this code.
    pub(crate) fn with_code(mut self, code: GrpcCode) -> Self {
        self.served &= !code.is_of_server();
        self.throttled |= code == GrpcCode::ResourceExhausted;
        self
    }

    /// The attempt may have been more than one request: it was a block of code, or a redirect was followed. What an answer
    /// says, it says of one of them, and another may have done anything before.
    pub(crate) fn of_several_requests(mut self) -> Self {
        if self.reach == Reach::Rejected {
            self.reach = Reach::Unknown;
        }
        self
    }

    /// The attempt had not its full time: that says nothing about the provider. Callers may wait for next to no time, and
    /// must not close the budget for others.
    pub(crate) fn cut_short(mut self) -> Self {
        self.transient = false;
        self
    }

    /// What a first try that ended so tells the budget.
    pub(crate) fn of_first_try(self, budget: &Budget, now: Instant) {
        if self.served || self.transient {
            budget.first_try_at(self.served, now);
        }
    }

    /// What a retry that ended so tells the budget.
    pub(crate) fn of_retry(self, sent: Sent, now: Instant) {
        match (self.served, self.transient) {
            (true, _) => sent.succeeded_at(now),
            (false, true) => sent.failed_at(now),
            (false, false) => drop(sent),
        }
    }
}

/// What is known when an attempt has failed.
pub(crate) struct Situation<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) verdict: &'a Verdict,
    pub(crate) reach: Reach,
    /// The peer asked to be left in peace (HTTP/2's ENHANCE_YOUR_CALM).
    pub(crate) calm: bool,
    /// The provider asked for less load: a 429, a documented rejection, or HTTP/2's word for it.
    pub(crate) throttled: bool,
    /// The attempt that has just ended; the first is 1.
    pub(crate) attempt: u32,
    /// Whoever is served by this call asks once more already, and that is to be enough.
    pub(crate) caller_retries: bool,
    /// `CONNECT`, or a request for an upgrade.
    pub(crate) upgrade: bool,
    /// The body can be sent again from its start.
    pub(crate) replayable: bool,
    /// An unsent request was already repeated once without being charged.
    pub(crate) free_used: bool,
    pub(crate) previous_wait: Option<Duration>,
    /// What other calls were told, still to be waited for.
    pub(crate) hold: Option<Duration>,
    pub(crate) now: Instant,
    pub(crate) deadline: Instant,
}

/// The attempt will be repeated.
pub(crate) struct Again {
    pub(crate) wait: Duration,
    /// The backoff alone, which the next one may grow from.
    pub(crate) own: Duration,
    pub(crate) charge: Charge,
    /// Provably unsent, and so not charged the first time (D13).
    pub(crate) free: bool,
    /// The wait is longer than this call's own because of what another call was told.
    pub(crate) held: bool,
}

/// The call ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    /// How long the server asked to be left alone, counted from now.
    pub(crate) not_before: Option<Duration>,
}

impl Situation<'_> {
    pub(crate) fn decide(&self) -> Result<Again, Stop> {
        let told = self.verdict.hint().wait;
        let stop = |reason| Err(Stop { reason, not_before: told.max(self.hold) });

        // The verdict.
        match self.verdict.class() {
            Class::Transient => {}
            Class::Verify => return stop(StopReason::Verify),
            Class::Success | Class::Permanent => return stop(StopReason::Permanent),
        }
        if self.upgrade {
            return stop(StopReason::Upgrade);
        }
        // Evidence, unless it provably was not processed.
        if self.reach == Reach::Unknown && self.plan.evidence().is_none() {
            return stop(StopReason::NoEvidence);
        }
        if self.attempt >= self.plan.max_attempts() {
            return stop(StopReason::Attempts);
        }
        if self.caller_retries {
            return stop(StopReason::CallerRetries);
        }
        if !self.replayable {
            return stop(StopReason::BodyTooLarge);
        }
        // The server's word, and what it told others.
        if self.verdict.hint().retry == Some(false) {
            return stop(StopReason::ServerSaidNo);
        }
        let operation = &self.plan.operation;
        let left = self.deadline.saturating_duration_since(self.now);
        let asked = told.max(self.hold).filter(|wait| !wait.is_zero());
        if asked.is_some_and(|wait| wait > operation.longest_server_wait || wait >= left) {
            return stop(StopReason::WaitTooLong);
        }
        // The wait, against the deadline.
        let mut dice = operation.dice();
        let own = operation.backoff.wait(self.attempt - 1, self.previous_wait, &mut dice);
        if own >= left {
            return stop(StopReason::Deadline);
        }
        let own_or_told = match told.filter(|wait| !wait.is_zero()) {
            Some(told) => operation.spread(own, told, left, &mut dice),
            None => own,
        };
        let held = self.hold.filter(|hold| *hold > own_or_told);
        let wait = held.map_or(own_or_told, |hold| operation.release(Duration::ZERO, hold, left, &mut dice));
        // The budget, last: what is refused for another reason costs nothing.
        let free = self.reach == Reach::NotSent && !self.calm && !self.free_used;
        let charge = if free {
            // Not charged, and not made while the budget is closed: when a provider cannot be reached at all, nearly every
            // request is unsent, and to repeat each once would be twice the load on whatever is left of it (S20).
            operation.budget.uncharged_at(self.now)
        } else {
            let load = if self.throttled { Load::Throttled } else { Load::Retry };
            operation.budget.charge_at(load, self.now)
        };
        let Some(charge) = charge else { return stop(StopReason::Budget) };
        Ok(Again { wait, own, charge, free, held: held.is_some() })
    }
}

/// At the end of a wait, or before a first try: what other calls were told meanwhile.
pub(crate) enum Held {
    No,
    /// To be waited for, from now.
    For(Duration),
    /// Longer than the call may wait.
    TooLong(Duration),
}

/// Whether this call is held as of `now`. `now` is not asked while the provider never asked for anything.
///
/// `first`: before the first try. `waited`: how long it has waited for this attempt already. `left`: until its deadline.
pub(crate) fn held(
    operation: &Operation,
    first: bool,
    waited: Duration,
    now: impl FnOnce() -> Instant,
    left: impl FnOnce(Instant) -> Duration,
) -> Held {
    let free = match operation.hold_scope {
        HoldScope::None => true,
        HoldScope::Retries => first,
        HoldScope::All => false,
    };
    if free || !operation.hold.was_held() {
        return Held::No;
    }
    let now = now();
    let Some(hold) = operation.hold.remaining(now) else { return Held::No };
    let left = left(now);
    if hold >= left || hold > operation.longest_server_wait {
        return Held::TooLong(hold);
    }
    Held::For(operation.release(waited, hold, left, &mut operation.dice()))
}
