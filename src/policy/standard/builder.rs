//! What a policy is built from, a value at a time.

use std::{borrow::Cow, sync::Arc, time::Duration};

use http::{HeaderName, Method};

use super::{StandardPolicy, one_line};
use crate::policy::{
    AnswerRule, Backoff, Budget, Clock, Elsewhere, GrpcCode, Hold, HoldScope, Outcome, Place, Plan, PolicyError, Unit,
    Verdict, WaitHeader,
    operation::{JudgeFn, Operation},
    rules,
};

/// Builds a [`StandardPolicy`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct StandardPolicyBuilder {
    pub(super) operation: Operation,
    pub(super) attempts_reason: Option<Cow<'static, str>>,
    pub(super) reset_headers: Vec<WaitHeader>,
}

impl StandardPolicyBuilder {
    /// The operation's name in events, metrics and errors. Default: `any`.
    pub fn operation(mut self, name: impl Into<String>) -> Self {
        self.operation.name = one_line(name.into());
        self
    }

    /// How many attempts in all, the first included: 1 (never repeated) to 3. Default: 3 (S12).
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.operation.max_attempts = attempts;
        self.attempts_reason = None;
        self
    }

    /// More than 3 attempts, up to 9, for a written reason; or fewer that come to more than 3 requests by what retries
    /// [`elsewhere`](Self::elsewhere).
    pub fn attempts_because(mut self, attempts: u32, reason: impl Into<Cow<'static, str>>) -> Self {
        self.operation.max_attempts = attempts;
        self.attempts_reason = Some(reason.into());
        self
    }

    /// Something else on the path retries as well: an SDK, the client, a gateway, the application above (S13). It
    /// makes up to this many requests of one, the first included; 1 says that it was switched off. May be said more
    /// than once. Default: nothing else retries.
    ///
    /// Stacked retries multiply, so the product is what S12 bounds: above 3 it needs the reason that
    /// [`attempts_because`](Self::attempts_because) is given, and 10 or more cannot be built. Where it is more than the
    /// attempts, the policy warns; [`StandardPolicy::worst_case_requests`] says how many.
    ///
    /// ```
    /// use redial::{Place, StandardPolicy, Timeouts, Transient};
    /// use std::time::Duration;
    ///
    /// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    /// let policy = StandardPolicy::builder("orders", timeouts, Transient::usual())
    ///     .attempts_because(2, "the gateway's one repeat cannot be switched off before March")
    ///     .elsewhere(Place::Gateway, "nginx", 2)
    ///     .build()?;
    /// assert_eq!(policy.worst_case_requests(), 4);
    /// # Ok::<(), redial::PolicyError>(())
    /// ```
    pub fn elsewhere(mut self, place: Place, by: impl Into<String>, attempts: u32) -> Self {
        self.operation.elsewhere.push(Elsewhere { place, by: one_line(by.into()), attempts });
        self
    }

    /// The waits between attempts. Default: [`Backoff::default`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.operation.backoff = backoff;
        self
    }

    /// The budget that bounds the extra load. Give policies of the same provider clones of one budget. Default: a
    /// [`Budget::usual`], which policies of one provider share within [`Routes`](crate::Routes).
    pub fn budget(mut self, budget: Budget) -> Self {
        self.operation.budget = budget;
        self.operation.given.budget = true;
        self
    }

    /// Which calls wait when one was told "rejected, wait", and the hold they share. Give policies of the same
    /// provider clones of one hold. Default: [`HoldScope::Retries`], by a hold that policies of one provider share
    /// within [`Routes`](crate::Routes).
    pub fn hold(mut self, scope: HoldScope, hold: Hold) -> Self {
        self.operation.hold_scope = scope;
        self.operation.hold = hold;
        self.operation.given.hold = true;
        self
    }

    /// Answers that are known and final: not counted as `unclassified`. An answer below 400 needs no listing.
    pub fn business(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.operation.business.extend(statuses);
        self
    }

    /// One more rule on answers, tried after those before it and before the lists of statuses (S6).
    pub fn answer(mut self, rule: AnswerRule) -> Self {
        self.operation.answers.push(rule);
        self
    }

    /// Codes of gRPC that are known and final: not counted as `unclassified`.
    pub fn business_codes(mut self, codes: impl IntoIterator<Item = GrpcCode>) -> Self {
        self.operation.business_codes.extend(codes);
        self
    }

    /// The header that carries an idempotency key. Default: `idempotency-key`.
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.operation.key_header = name;
        self
    }

    /// The provider saves its answer to a key, failures too, and gives it again to a repeat: what was answered is then not
    /// repeated for its key's sake, since the repeat would be told the same; what was not answered is, and so is what the
    /// provider documents as not processed (D31). Default: it does not.
    pub fn key_replays(mut self) -> Self {
        self.operation.key_replays = true;
        self
    }

    /// A filled header of this name makes a repeat safe: it fails instead of taking effect twice (such as
    /// `If-Match`). Default: none.
    pub fn precondition(mut self, name: HeaderName) -> Self {
        self.operation.preconditions.push(name);
        self
    }

    /// A filled query parameter of this name makes a repeat safe, as a header does that is a
    /// [`precondition`](Self::precondition) (such as Cloud Storage's `ifGenerationMatch`). Default: none.
    ///
    /// The name is given as it reads, not percent-encoded, and case matters. An empty value is none; of a parameter that
    /// is repeated, each must have a value.
    pub fn precondition_query(mut self, name: impl Into<Box<str>>) -> Self {
        self.operation.query_preconditions.push(name.into());
        self
    }

    /// Repeating this operation is safe, or its duplicates are accepted, for this reason (S7).
    pub fn idempotent(mut self, reason: impl Into<Arc<str>>) -> Self {
        self.operation.stated = Some(reason.into());
        self
    }

    /// This method is not idempotent here, whatever RFC 9110 says (such as a `DELETE` by position).
    pub fn not_idempotent(mut self, method: Method) -> Self {
        self.operation.not_idempotent.push(method);
        self
    }

    /// No method is idempotent here, whatever RFC 9110 says, those of RFCs to come included: only a key, a precondition
    /// or a statement is evidence. Default: the method is.
    pub fn no_method_is_idempotent(mut self) -> Self {
        self.operation.no_method = true;
        self
    }

    /// The longest wait that a server may ask for; a longer one ends the call at once (D1). What it asks for counts, and
    /// not over how long the return is spread of those who were told the same: a fifth of it, and for the calls that
    /// another one's answer holds as long again as they were held. Default: whatever the deadline allows.
    pub fn longest_server_wait(mut self, longest: Duration) -> Self {
        self.operation.longest_server_wait = longest;
        self
    }

    /// A header of the provider's own that says how long to wait, asked before `Retry-After`.
    pub fn wait_header(mut self, name: HeaderName, unit: Unit) -> Self {
        self.operation.wait_headers.push(WaitHeader::new(name, unit));
        self
    }

    /// A header of the provider's own that says when a limit resets, asked after `Retry-After`.
    pub fn reset_header(mut self, name: HeaderName, unit: Unit) -> Self {
        self.reset_headers.push(WaitHeader::new(name, unit));
        self
    }

    /// A header of the provider's own that says `true` or `false`: repeat or do not (D19). `false` is final whatever
    /// the status; `true` makes an unlisted failure transient, and gives no evidence.
    pub fn should_retry_header(mut self, name: HeaderName) -> Self {
        self.operation.should_retry_header = Some(name);
        self
    }

    /// Overrides verdicts: the closure is shown the plan, the outcome and the standard verdict, and returns its own.
    /// It can forbid or allow a repeat, but it cannot claim that a request was never sent, and a wait that the server
    /// asked for still holds.
    pub fn judge_with<F>(mut self, judge: F) -> Self
    where
        F: Fn(&Plan, &Outcome<'_>, Verdict) -> Verdict + Send + Sync + 'static,
    {
        let judge: Arc<JudgeFn> = Arc::new(judge);
        self.operation.judge = Some(judge);
        self
    }

    /// The clock that HTTP dates are measured against. Default: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.operation.clock = clock;
        self
    }

    /// Makes the jitter reproducible, for tests that make one call after the other. Default: independent randomness for
    /// every wait.
    pub fn seed(mut self, seed: u64) -> Self {
        self.operation.seed = Some(seed);
        self
    }

    /// Builds the policy.
    ///
    /// # Errors
    ///
    /// [`PolicyError`], naming every broken rule with its number in the standard.
    pub fn build(mut self) -> Result<StandardPolicy, PolicyError> {
        let broken = rules::broken(&self.operation, self.attempts_reason.as_deref());
        if !broken.is_empty() {
            return Err(PolicyError::new(&self.operation, broken));
        }
        self.operation.wait_headers.push(WaitHeader::new(http::header::RETRY_AFTER, Unit::RetryAfter));
        self.operation.wait_headers.append(&mut self.reset_headers);
        self.operation.warnings = rules::warnings(&self.operation);
        #[cfg(feature = "metrics")]
        {
            self.operation.meters = crate::observe::meter::Meters::of(&self.operation.provider, &self.operation.name);
        }
        for warning in &self.operation.warnings {
            crate::observe::policy_warning(&self.operation, warning);
        }
        Ok(StandardPolicy { operation: Arc::new(self.operation) })
    }
}
