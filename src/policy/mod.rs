//! What decides: whether, when and how often a request is repeated.
//!
//! A [`Policy`] sees a request's head once, before the first attempt, and answers with a [`Plan`]. After each
//! attempt it sees the [`Outcome`] and answers with a [`Verdict`]: what the outcome *means*. Whether the request is
//! then sent again is not the policy's to say: the engine applies the rest of the plan, always in the same order
//! (evidence, attempts, body, the server's word, deadline, budget), and names the reason wherever it stops.
//!
//! Policies see heads and errors, never bodies, so they are not generic over them, and
//! `Arc<dyn Policy + Send + Sync>` is a policy too.

mod answer;
mod backoff;
pub mod budget;
mod clock;
mod code;
mod codes;
pub(crate) mod decide;
mod dice;
mod elsewhere;
mod evidence;
mod hold;
pub(crate) mod names;
pub(crate) mod operation;
mod options;
mod outcome;
mod plan;
pub(crate) mod pushback;
mod query;
mod retry_after;
pub(crate) mod routes;
pub(crate) mod rules;
mod standard;
mod stop;
mod transient;
mod verdict;

pub use answer::{AnswerRule, Meaning, PEEK};
pub use backoff::{Backoff, Jitter};
pub use budget::Budget;
pub use clock::{Clock, ClockHand};
pub use code::{GrpcCode, UnknownGrpcCode};
pub use elsewhere::{Elsewhere, Place};
pub use evidence::Evidence;
pub use hold::{Hold, HoldScope};
pub use options::RequestOptions;
pub use outcome::{Outcome, RequestHead};
pub use plan::{Plan, Timeouts};
pub use retry_after::{Unit, WaitHeader};
pub use routes::{Routes, RoutesBuilder, RoutesError};
pub use rules::PolicyError;
pub use standard::{StandardPolicy, StandardPolicyBuilder};
pub use stop::StopReason;
pub use transient::Transient;
pub use verdict::{Class, Hint, Reach, Verdict};

/// Decides for each request: the plan before it is sent, the verdict on each outcome.
///
/// Ordinary calls need no implementation of their own: build a [`StandardPolicy`], override its verdicts with
/// [`judge_with`](StandardPolicyBuilder::judge_with), or pick one per route.
///
/// A hand-written policy cannot escape the limits: a [`Plan`] comes from a built `StandardPolicy` and can only be
/// tightened, and a [`Verdict`] cannot claim that a request was never sent. What it answers for itself is the evidence:
/// it hands the request's own head to the `StandardPolicy` that plans, and not that of another request.
pub trait Policy {
    /// The plan for this request. Called once a call, before the first attempt.
    fn plan(&self, head: &RequestHead<'_>) -> Plan;

    /// What an attempt's outcome means under that plan. Called once an attempt.
    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<P: Policy + ?Sized> Policy for $pointer {
            fn plan(&self, head: &RequestHead<'_>) -> Plan {
                (**self).plan(head)
            }

            fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
                (**self).judge(plan, outcome)
            }
        }
    )*};
}

forward!(std::sync::Arc<P>, Box<P>, &P);
