//! The policy that is data.

use std::{sync::Arc, time::Duration};

use http::HeaderName;

use super::{
    Backoff, Budget, Clock, Elsewhere, Hold, HoldScope, Outcome, Plan, Policy, PolicyError, RequestHead, Timeouts,
    Transient, Verdict,
    elsewhere::worst_case,
    names::Names,
    operation::{Given, Operation},
    rules,
};

/// A policy made of values: timeouts, attempts, waits, budget, and what is transient.
///
/// Cheap to clone; clones share the budget and the hold, as they stand for one provider.
///
/// ```
/// use redial::{StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
/// # Ok::<(), redial::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StandardPolicy {
    operation: Arc<Operation>,
}

impl StandardPolicy {
    /// A policy with the documented defaults: 3 attempts in all, [`Backoff::default`], [`Budget::usual`], evidence by
    /// method and by a filled `Idempotency-Key` header.
    ///
    /// # Errors
    ///
    /// [`PolicyError`], naming every broken rule: a timeout of zero, a total above a day, an attempt timeout not
    /// shorter than the total, a status that may not be listed.
    pub fn new(provider: impl Into<String>, timeouts: Timeouts, transient: Transient) -> Result<Self, PolicyError> {
        Self::builder(provider, timeouts, transient).build()
    }

    /// A policy that never repeats, with one timeout for the only attempt.
    ///
    /// # Errors
    ///
    /// [`PolicyError`], where the timeout is zero or above a day.
    pub fn unretried(provider: impl Into<String>, timeout: Duration) -> Result<Self, PolicyError> {
        let timeouts = Timeouts { attempt: timeout, total: timeout };
        Self::builder(provider, timeouts, Transient::none()).attempts(1).build()
    }

    /// Begins a policy. Everything it does not say has a documented default; [`build`](StandardPolicyBuilder::build)
    /// validates it in one place.
    pub fn builder(provider: impl Into<String>, timeouts: Timeouts, transient: Transient) -> StandardPolicyBuilder {
        StandardPolicyBuilder {
            operation: Operation {
                provider: one_line(provider.into()),
                name: "any".into(),
                timeouts,
                max_attempts: 3,
                elsewhere: Vec::new(),
                backoff: Backoff::default(),
                budget: Budget::usual(),
                hold: Hold::new(),
                hold_scope: HoldScope::default(),
                given: Given::default(),
                transient,
                business: Vec::new(),
                answers: Vec::new(),
                business_codes: Vec::new(),
                key_header: HeaderName::from_static("idempotency-key"),
                key_replays: false,
                preconditions: Vec::new(),
                query_preconditions: Vec::new(),
                stated: None,
                not_idempotent: Vec::new(),
                no_method: false,
                longest_server_wait: rules::LONGEST,
                wait_headers: Vec::new(),
                should_retry_header: None,
                clock: Clock::system(),
                seed: None,
                waits: Arc::default(),
                judge: None,
                names: Names::default(),
                warnings: Vec::new(),
                #[cfg(feature = "metrics")]
                meters: crate::observe::meter::Meters::of("", ""),
            },
            attempts_reason: None,
            reset_headers: Vec::new(),
        }
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.operation.provider
    }

    /// The operation's name; `any` where none was given.
    pub fn operation(&self) -> &str {
        &self.operation.name
    }

    pub(crate) fn plan_block(&self) -> super::Plan {
        self.operation.plan_block()
    }

    pub(crate) fn max_attempts(&self) -> u32 {
        self.operation.max_attempts
    }

    /// How long an attempt and the whole call may take.
    pub fn timeouts(&self) -> Timeouts {
        self.operation.timeouts
    }

    /// What else was said to retry on the path, by [`StandardPolicyBuilder::elsewhere`].
    pub fn elsewhere(&self) -> &[Elsewhere] {
        &self.operation.elsewhere
    }

    /// How many requests one call may come to when everything fails: the attempts, times those of whatever else
    /// retries on the path. As many as the attempts where nothing else was declared.
    pub fn worst_case_requests(&self) -> u32 {
        worst_case(self.operation.max_attempts, &self.operation.elsewhere)
    }

    /// The same policy, with what others of its provider have where it was given none of its own.
    pub(crate) fn sharing(self, shared: &Operation) -> Self {
        let mut operation = Operation::clone(&self.operation);
        if !operation.given.budget {
            operation.budget = shared.budget.clone();
        }
        if !operation.given.hold {
            operation.hold = shared.hold.clone();
        }
        StandardPolicy { operation: Arc::new(operation) }
    }

    pub(crate) fn shared(&self) -> &Arc<Operation> {
        &self.operation
    }

    /// What is allowed, but probably not meant. Also logged as WARN when the policy is built.
    pub fn warnings(&self) -> &[String] {
        &self.operation.warnings
    }
}

impl Policy for StandardPolicy {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        self.operation.plan(head)
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        // The plan's own operation, which another policy may have chosen.
        plan.operation.judge(plan, outcome)
    }
}

/// A name goes into every event and error: made fit for them once, here.
fn one_line(name: String) -> Box<str> {
    crate::redact::Redacted(&name).to_string().into()
}

mod builder;

pub use builder::StandardPolicyBuilder;
