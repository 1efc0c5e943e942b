//! What a policy was built from: one operation of one provider.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderName, HeaderValue, Method};
use rand::Rng;
use tokio::time::Instant;

use super::{
    AnswerRule, Backoff, Budget, Class, Clock, Elsewhere, Evidence, GrpcCode, Hint, Hold, HoldScope, Outcome, Plan,
    RequestHead, RequestOptions, Timeouts, Transient, Verdict, WaitHeader, dice::Dice, names::Names, pushback, query,
    retry_after,
};
use crate::fault::Fault;

/// An override of verdicts, as given to [`StandardPolicyBuilder::judge_with`](super::StandardPolicyBuilder).
pub(crate) type JudgeFn = dyn Fn(&Plan, &Outcome<'_>, Verdict) -> Verdict + Send + Sync;

/// Everything a built policy knows. Shared by its clones and by every plan it makes.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) provider: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_attempts: u32,
    /// What else retries on the path.
    pub(crate) elsewhere: Vec<Elsewhere>,
    pub(crate) backoff: Backoff,
    pub(crate) budget: Budget,
    pub(crate) hold: Hold,
    pub(crate) hold_scope: HoldScope,
    /// Whether the budget and the hold are ones that the policy was given; if not, routes share them by provider.
    pub(crate) given: Given,
    pub(crate) transient: Transient,
    pub(crate) business: Vec<u16>,
    /// Tried in order, before the lists.
    pub(crate) answers: Vec<AnswerRule>,
    pub(crate) business_codes: Vec<GrpcCode>,
    pub(crate) key_header: HeaderName,
    /// Whether the provider answers a key that it has answered before with the same answer again (D31).
    pub(crate) key_replays: bool,
    pub(crate) preconditions: Vec<HeaderName>,
    /// Query parameters that are preconditions, percent-decoded.
    pub(crate) query_preconditions: Vec<Box<str>>,
    pub(crate) stated: Option<Arc<str>>,
    pub(crate) not_idempotent: Vec<Method>,
    /// Whether a method says nothing here, whichever it is.
    pub(crate) no_method: bool,
    pub(crate) longest_server_wait: Duration,
    pub(crate) wait_headers: Vec<WaitHeader>,
    pub(crate) should_retry_header: Option<HeaderName>,
    pub(crate) clock: Clock,
    pub(crate) seed: Option<u64>,
    /// How many waits were rolled, where a seed fixes them.
    pub(crate) waits: Arc<AtomicU64>,
    pub(crate) judge: Option<Arc<JudgeFn>>,
    /// Of the headers of requests that were repeated.
    pub(crate) names: Names,
    pub(crate) warnings: Vec<String>,
    #[cfg(feature = "metrics")]
    pub(crate) meters: crate::observe::meter::Meters,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) budget: bool,
    pub(crate) hold: bool,
}

impl Operation {
    pub(crate) fn plan(self: &Arc<Self>, head: &RequestHead<'_>) -> Plan {
        let (operation, evidence) = (Arc::clone(self), self.evidence(head));
        let plan = Plan { operation, tighter: None, max_attempts: self.max_attempts, evidence, grpc: false };
        match head.extensions().get::<RequestOptions>() {
            Some(options) => options.apply(plan),
            None => plan,
        }
    }

    /// The plan of a block of code: it has neither method nor headers, so that a statement is its only evidence.
    pub(crate) fn plan_block(self: &Arc<Self>) -> Plan {
        let evidence = self.stated.clone().map(Evidence::Stated);
        Plan { operation: Arc::clone(self), tighter: None, max_attempts: self.max_attempts, evidence, grpc: false }
    }

    /// Why repeating this request is safe, if anything says so (S7).
    fn evidence(&self, head: &RequestHead<'_>) -> Option<Evidence> {
        if self.has_method(head) {
            return Some(Evidence::Method);
        }
        if self.has_key(head) {
            return Some(Evidence::Key);
        }
        if self.has_precondition(head) {
            return Some(Evidence::Precondition);
        }
        self.stated.clone().map(Evidence::Stated)
    }

    /// Whether this request has this evidence. The operation's statement holds for all its requests; any other was made
    /// for one of them.
    pub(crate) fn has_evidence(&self, evidence: &Evidence, head: &RequestHead<'_>) -> bool {
        match evidence {
            Evidence::Method => self.has_method(head),
            Evidence::Key => self.has_key(head),
            Evidence::Precondition => self.has_precondition(head),
            Evidence::Stated(reason) => self.stated.as_ref() == Some(reason),
        }
    }

    #[inline]
    fn has_method(&self, head: &RequestHead<'_>) -> bool {
        let denied = || self.no_method || self.not_idempotent.contains(head.method());
        Evidence::by_method(head.method()) && !denied()
    }

    #[inline]
    fn has_key(&self, head: &RequestHead<'_>) -> bool {
        header(head, &self.key_header).is_some_and(|key| !key.as_bytes().trim_ascii().is_empty())
    }

    #[inline]
    fn has_precondition(&self, head: &RequestHead<'_>) -> bool {
        let query = || head.uri().query().unwrap_or_default();
        let kept = |name: &HeaderName| Evidence::by_condition(name, head.headers().get(name));
        self.preconditions.iter().any(kept)
            || self.query_preconditions.iter().any(|name| query::is_filled(query(), name))
    }

    /// Whether the policy speaks of this status.
    #[cfg(feature = "metrics")]
    pub(crate) fn has_listed(&self, status: u16) -> bool {
        self.transient.has_status(status) || self.business.contains(&status)
    }

    pub(crate) fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        let verdict = match outcome.fault() {
            Some(fault) => self.judge_fault(fault),
            None => self.judge_answer(outcome),
        };
        let verdict = self.heed(self.replayed(plan, verdict, outcome), outcome);
        match &self.judge {
            // Not yet judged: it is asked again.
            _ if verdict.asks_for_body() => verdict,
            Some(judge) => self.heed(judge(plan, outcome, verdict), outcome),
            None => verdict,
        }
    }

    /// Where answers are saved by key, a repeat of what was answered would be told the same (D31): the failure stays one,
    /// and is not repeated.
    fn replayed(&self, plan: &Plan, verdict: Verdict, outcome: &Outcome<'_>) -> Verdict {
        if !self.key_replays {
            return verdict;
        }
        let saved = plan.evidence == Some(Evidence::Key) && outcome.status().is_some();
        let passes = verdict.class() == Class::Transient && verdict.rejected_because().is_none();
        let hint = Hint { retry: Some(false), ..verdict.hint() };
        if saved && passes { verdict.with_hint(hint) } else { verdict }
    }

    fn judge_answer(&self, outcome: &Outcome<'_>) -> Verdict {
        let Some(status) = outcome.status() else { return Verdict::unclassified() };
        let ruled = self.answers.iter().find_map(|rule| rule.judge(status, outcome, || self.clock.now()));
        if let Some(verdict) = ruled {
            return verdict;
        }
        if let Some(code) = outcome.said_code() {
            return self.judge_code(code, outcome);
        }
        let code = status.as_u16();
        if self.transient.has_status(code) {
            let verdict = match self.transient.rejected_because(status) {
                Some(documented) => Verdict::rejected(documented),
                None => Verdict::transient(),
            };
            return verdict;
        }
        // What stands between client and server knows no codes. Its status stands for one, but the provider's document
        // does not speak of it: it is never "not processed".
        let stands_for = outcome.grpc_code();
        match code {
            _ if stands_for.is_some_and(|code| self.transient.has_code(code)) => Verdict::transient(),
            0..400 if stands_for.is_none() => Verdict::success(),
            // The server's word makes an unlisted failure transient, and gives no evidence (D19).
            _ if self.told(outcome) == Some(true) => Verdict::transient(),
            _ if self.business.contains(&code) => Verdict::permanent(),
            _ => Verdict::unclassified(),
        }
    }

    fn judge_code(&self, code: GrpcCode, outcome: &Outcome<'_>) -> Verdict {
        if code == GrpcCode::Ok {
            return Verdict::success();
        }
        if self.transient.has_code(code) {
            return match self.transient.code_rejected_because(code) {
                Some(documented) => Verdict::rejected(documented),
                None => Verdict::transient(),
            };
        }
        if self.told(outcome) == Some(true) {
            return Verdict::transient();
        }
        if self.business_codes.contains(&code) { Verdict::permanent() } else { Verdict::unclassified() }
    }

    /// What the provider's own "should retry" header says, where the policy names one.
    fn told(&self, outcome: &Outcome<'_>) -> Option<bool> {
        match outcome.headers()?.get(self.should_retry_header.as_ref()?)?.as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    fn judge_fault(&self, fault: Fault) -> Verdict {
        if fault.is_permanent() {
            Verdict::permanent()
        } else if self.transient.has_fault(fault.kind()) {
            Verdict::transient()
        } else {
            Verdict::unclassified()
        }
    }

    /// Whoever judged: a transient failure is repeated no earlier than its answer said (S17), a redirect's
    /// `Retry-After` excepted (D8), and not at all where the answer said so (D19); and without an answer nobody can
    /// have rejected anything (D13).
    #[inline]
    pub(crate) fn heed(&self, verdict: Verdict, outcome: &Outcome<'_>) -> Verdict {
        // Nothing else is repeated, or was rejected.
        if verdict.class() == Class::Transient { self.heed_transient(verdict, outcome) } else { verdict }
    }

    fn heed_transient(&self, verdict: Verdict, outcome: &Outcome<'_>) -> Verdict {
        let Some(headers) = outcome.headers() else { return verdict.without_rejection() };
        if outcome.status().is_some_and(|status| status.is_redirection()) {
            return verdict;
        }
        let now = self.clock.now();
        let asked = retry_after::first_wait(&self.wait_headers, headers, now);
        let hint = verdict.hint();
        let pushed = if outcome.is_of_grpc() { pushback::read(headers) } else { None }.unwrap_or_default();
        let no = self.told(outcome) == Some(false) || pushed.retry == Some(false);
        let retry = if no { Some(false) } else { hint.retry };
        verdict.with_hint(Hint { wait: hint.wait.max(asked).max(pushed.wait), retry })
    }

    /// How long other calls' answers hold this one, before this verdict is added to what holds the others, where there is
    /// one that this provider gave.
    pub(crate) fn held_for(&self, verdict: Option<&Verdict>, now: Instant) -> Option<Duration> {
        if self.hold_scope == HoldScope::None {
            return None;
        }
        let hold = self.hold.remaining(now);
        let rejected = verdict.filter(|verdict| verdict.rejected_because().is_some());
        if let Some(wait) = rejected.and_then(|verdict| verdict.hint().wait) {
            self.hold.extend(now, wait);
        }
        hold
    }

    /// The dice of one wait.
    pub(crate) fn dice(&self) -> Dice {
        let wait = if self.seed.is_some() { self.waits.fetch_add(1, Ordering::Relaxed) } else { 0 };
        Dice::of_wait(self.seed, wait)
    }

    /// The wait where the answer asked for one: never shorter, and spread, so that those who were told the same do not
    /// come back together; but the spread takes at most half of the time that would be left.
    pub(crate) fn spread(&self, own: Duration, asked: Duration, left: Duration, dice: &mut Dice) -> Duration {
        let least = own.max(asked);
        let most = least + left.saturating_sub(least) / 2;
        self.backoff.heed(own, asked, dice.next_u64()).min(most)
    }

    /// The wait of a call that is held by what another was told. Many may be held until the same instant, those who
    /// came last with next to no time to wait, and those who came first again and again: so the release has a width of
    /// its own, under any backoff. It is as long as the call was held: whoever gathered in ten seconds takes ten to leave.
    /// But it takes at most half of the time that would be left.
    pub(crate) fn release(&self, waited: Duration, hold: Duration, left: Duration, dice: &mut Dice) -> Duration {
        let width = self.backoff.get_initial().max(waited + hold).min(left.saturating_sub(hold) / 2);
        hold + width.mul_f64(dice.next_u32() as f64 / f64::from(u32::MAX))
    }
}

/// So many names are compared faster than one is hashed. Counted by their values, of which one name may have thousands.
const FEW: usize = 16;

fn header<'a>(head: &RequestHead<'a>, name: &HeaderName) -> Option<&'a HeaderValue> {
    let headers = head.headers();
    match headers.len() {
        0..=FEW => headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value),
        _ => headers.get(name),
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .field("timeouts", &self.timeouts)
            .field("max_attempts", &self.max_attempts)
            .field("backoff", &self.backoff)
            .field("budget", &self.budget)
            .field("transient", &self.transient)
            .finish_non_exhaustive()
    }
}
