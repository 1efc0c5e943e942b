//! After a failed attempt: repeat it, and when; or stop, and why.
//!
//! One function, always in the same order. The engine runs it, and whatever explains a policy runs it too: there is
//! no second copy of the rules.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Class, Plan, Reach, StopReason, Verdict,
    budget::{Charge, Load},
};

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
    /// `None`: provably unsent, and so outside the budget the first time (D13).
    pub(crate) charge: Option<Charge>,
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
            // Outside the budget is not outside of reason: when a provider cannot be reached at all, nearly every request
            // is unsent, and to repeat each once would be twice the load on whatever is left of it (S20).
            if operation.budget.is_closed() {
                return stop(StopReason::Budget);
            }
            None
        } else {
            let load = if self.throttled { Load::Throttled } else { Load::Retry };
            match operation.budget.charge(load) {
                Some(charge) => Some(charge),
                None => return stop(StopReason::Budget),
            }
        };
        Ok(Again { wait, own, charge, held: held.is_some() })
    }
}
