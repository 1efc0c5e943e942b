//! The calls in flight: what a retry layer's future does, step by step, on virtual time.

use std::{cell::RefCell, fmt, time::Duration};

use http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};
use tokio::time::Instant;

use super::{
    events::Time,
    others::OtherBudget,
    scenario::{Scenario, TroubleKind},
    server::{Reply, nanos},
    strategy::Kind,
};
use crate::{
    fault::{Fault, FaultKind},
    policy::{
        Class, Outcome, Plan, Policy, Reach, Verdict,
        budget::{Charge, Sent},
        decide::{self, Ended, Held, Situation},
    },
};

/// One call that is not over yet.
pub(super) struct Call {
    pub(super) client: u32,
    pub(super) began: Time,
    attempt: u32,
    /// What the attempt in flight will end with.
    reply: Reply,
    free_used: bool,
    unknown: bool,
    previous_wait: Option<Duration>,
    waited: Duration,
    charge: Option<Charge>,
    sent: Option<Sent>,
}

/// What a call does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Send,
    /// At this time.
    WaitUntil(Time),
    Succeeded,
    Failed,
}

/// The side of the clients: what they do when an attempt fails.
pub(super) struct Clients {
    kind: Kind,
    /// One a client, where they follow a policy.
    plans: Vec<Plan>,
    /// One a client, where they ask another budget beside the policy's.
    others: Vec<RefCell<Box<dyn OtherBudget>>>,
    start: Instant,
    answers: Answers,
}

impl Clients {
    pub(super) fn new(scenario: &Scenario, kind: &Kind, start: Instant) -> Self {
        let (plans, others) = match kind {
            Kind::AtOnce { .. } => Default::default(),
            Kind::Policy { plan, others, .. } => {
                let seed = scenario.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let plan_of = |client| super::clients::plan_of(plan, client, seed, start);
                let others = others.as_ref().map(|others| others.make(scenario.clients, start));
                ((0..scenario.clients).map(plan_of).collect(), others.unwrap_or_default())
            }
        };
        Clients { kind: kind.clone(), plans, others, start, answers: Answers::new(scenario) }
    }

    /// A client wants something: at once, or not before what the provider asked for.
    pub(super) fn begin(&self, client: u32, now: Time) -> (Call, Next) {
        let call = Call {
            client,
            began: now,
            attempt: 0,
            reply: Reply::Served,
            free_used: false,
            unknown: false,
            previous_wait: None,
            waited: Duration::ZERO,
            charge: None,
            sent: None,
        };
        let mut call = call;
        let next = self.resume(&mut call, now);
        (call, next)
    }

    /// A wait is over, or the call has begun.
    pub(super) fn resume(&self, call: &mut Call, now: Time) -> Next {
        let Some(plan) = self.plan(call) else { return Next::Send };
        let (instant, deadline) = (self.instant(now), self.deadline(plan, call));
        let left = |now| deadline.saturating_duration_since(now);
        match decide::held(&plan.operation, call.attempt == 0, call.waited, || instant, left) {
            Held::TooLong(_) => Next::Failed,
            Held::For(wait) => {
                call.waited += wait;
                Next::WaitUntil(now.saturating_add(nanos(wait)))
            }
            Held::No if instant >= deadline => Next::Failed,
            Held::No => Next::Send,
        }
    }

    /// The attempt is on its way, and will be met so; it ends when this many nanoseconds have passed.
    pub(super) fn sent(&self, call: &mut Call, reply: Reply, takes: Time, now: Time) -> Time {
        call.attempt += 1;
        call.reply = reply;
        call.waited = Duration::ZERO;
        call.sent = call.charge.take().map(Charge::sent);
        let Some(plan) = self.plan(call) else { return takes.min(IMPATIENCE) };
        let left = self.deadline(plan, call).saturating_duration_since(self.instant(now));
        let limit = nanos(plan.timeouts().attempt.min(left));
        if takes >= limit {
            call.reply = Reply::Silence;
        }
        takes.min(limit)
    }

    /// The attempt has ended.
    pub(super) fn ended(&self, call: &mut Call, now: Time) -> Next {
        match &self.kind {
            Kind::AtOnce { .. } if call.reply == Reply::Served => Next::Succeeded,
            Kind::AtOnce { attempts } if call.attempt < *attempts => Next::Send,
            Kind::AtOnce { .. } => Next::Failed,
            Kind::Policy { policy, .. } => match self.plan(call) {
                Some(plan) => self.settle(&**policy, plan, call, now),
                None => Next::Failed,
            },
        }
    }

    /// As a retry layer settles an attempt.
    fn settle(&self, policy: &dyn Policy, plan: &Plan, call: &mut Call, now: Time) -> Next {
        let met = self.answers.of(call.reply);
        let verdict = met.judge(policy, plan, call.attempt, call.unknown);
        let (instant, deadline) = (self.instant(now), self.deadline(plan, call));
        let ended = Ended::with(met.status, met.fault, &verdict);
        if call.attempt == 1 {
            ended.of_first_try(&plan.operation.budget, instant);
        }
        if let Some(sent) = call.sent.take() {
            ended.of_retry(sent, instant);
        }
        let other = self.others.get(call.client as usize);
        if verdict.class() == Class::Success {
            if let Some(other) = other {
                other.borrow_mut().succeeded(instant);
            }
            return Next::Succeeded;
        }
        let hold = plan.operation.held_for(Some(&verdict), instant);
        call.unknown |= ended.reach == Reach::Unknown;
        if instant >= deadline {
            return Next::Failed;
        }
        let situation = Situation {
            plan,
            verdict: &verdict,
            reach: ended.reach,
            calm: ended.calm,
            throttled: ended.throttled,
            attempt: call.attempt,
            caller_retries: false,
            upgrade: false,
            replayable: true,
            free_used: call.free_used,
            previous_wait: call.previous_wait,
            hold,
            now: instant,
            deadline,
        };
        match situation.decide() {
            Err(_) => Next::Failed,
            Ok(_) if other.is_some_and(|other| !other.borrow_mut().withdraw(instant)) => Next::Failed,
            Ok(again) => {
                call.free_used |= again.free;
                call.charge = Some(again.charge);
                call.previous_wait = Some(again.own);
                call.waited = again.wait;
                Next::WaitUntil(now.saturating_add(nanos(again.wait)))
            }
        }
    }

    fn plan(&self, call: &Call) -> Option<&Plan> {
        self.plans.get(call.client as usize)
    }

    fn instant(&self, at: Time) -> Instant {
        self.start + Duration::from_nanos(at)
    }

    fn deadline(&self, plan: &Plan, call: &Call) -> Instant {
        crate::deadline::later(self.instant(call.began), plan.timeouts().total)
    }
}

/// How long those wait who have no policy.
const IMPATIENCE: Time = 10_000_000_000;

/// What an attempt can end with, made once.
struct Answers {
    plain: HeaderMap,
    limited: HeaderMap,
}

impl Answers {
    fn new(scenario: &Scenario) -> Self {
        let mut limited = HeaderMap::new();
        if let TroubleKind::RateLimit { retry_after: Some(wait), .. } = scenario.trouble.kind {
            limited.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        Answers { plain: HeaderMap::new(), limited }
    }

    fn of(&self, reply: Reply) -> Met<'_> {
        let status = |code: StatusCode, headers| Met { status: Some(code), headers, fault: None };
        let fault = |fault| Met { status: None, headers: &self.plain, fault: Some(fault) };
        match reply {
            Reply::Served => status(StatusCode::OK, &self.plain),
            Reply::Refused => status(StatusCode::SERVICE_UNAVAILABLE, &self.plain),
            Reply::Limited => status(StatusCode::TOO_MANY_REQUESTS, &self.limited),
            Reply::Status(code) => {
                status(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &self.plain)
            }
            Reply::Unreachable => fault(Fault::supposed(FaultKind::Connect, true)),
            Reply::Silence => fault(Fault::of(FaultKind::Timeout)),
        }
    }
}

struct Met<'a> {
    status: Option<StatusCode>,
    headers: &'a HeaderMap,
    fault: Option<Fault>,
}

impl Met<'_> {
    fn judge(&self, policy: &dyn Policy, plan: &Plan, attempt: u32, unknown: bool) -> Verdict {
        let outcome = || {
            let outcome = match (self.status, self.fault) {
                (Some(status), _) => Outcome::answer(status, self.headers),
                (None, fault) => Outcome::failed_as(&Simulated, fault.unwrap_or(Fault::of(FaultKind::Unclassified))),
            };
            outcome.of_attempt(attempt, unknown)
        };
        let verdict = policy.judge(plan, &outcome());
        // The answers of this model have no body to look into.
        let verdict = if verdict.asks_for_body() { policy.judge(plan, &outcome().with_body(&[])) } else { verdict };
        plan.operation.heed(verdict, &outcome())
    }
}

/// The error behind a simulated fault.
#[derive(Debug)]
struct Simulated;

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated")
    }
}

impl std::error::Error for Simulated {}
