//! What one request asks for itself.

use std::{sync::Arc, time::Duration};

use super::{Evidence, Plan};

/// Overrides for one request, carried in its extensions. They tighten what the policy plans; only evidence can be
/// added.
///
/// ```
/// use redial::RequestOptions;
/// use std::time::Duration;
///
/// let mut request = http::Request::post("https://api.example/orders").body(())?;
/// request.extensions_mut().insert(
///     RequestOptions::new().attempts(2).total(Duration::from_secs(3)).idempotent("order numbers are unique"),
/// );
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    attempts: Option<u32>,
    attempt: Option<Duration>,
    total: Option<Duration>,
    stated: Option<Arc<str>>,
}

impl RequestOptions {
    /// Nothing overridden.
    pub fn new() -> Self {
        Self::default()
    }

    /// Never repeat this request.
    pub fn never_retry(self) -> Self {
        self.attempts(1)
    }

    /// At most this many attempts, the first included. Never more than the policy allows; zero is read as one.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// One attempt may take at most this long, and never longer than the policy allows.
    pub fn attempt(mut self, attempt: Duration) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// The whole call may take at most this long, and never longer than the policy allows.
    pub fn total(mut self, total: Duration) -> Self {
        self.total = Some(total);
        self
    }

    /// Repeating this request is safe, or its duplicates are accepted, for this reason (S7). An empty reason is none.
    pub fn idempotent(mut self, reason: impl Into<Arc<str>>) -> Self {
        let reason = reason.into();
        self.stated = (!reason.trim().is_empty()).then_some(reason);
        self
    }

    #[cfg(feature = "idempotency-key")]
    pub(crate) fn states_idempotency(&self) -> bool {
        self.stated.is_some()
    }

    pub(crate) fn apply(&self, mut plan: Plan) -> Plan {
        if let Some(attempts) = self.attempts {
            plan = plan.at_most_attempts(attempts);
        }
        if let Some(attempt) = self.attempt {
            plan = plan.at_most_attempt(attempt);
        }
        if let Some(total) = self.total {
            plan = plan.at_most_total(total);
        }
        if let (None, Some(stated)) = (&plan.evidence, &self.stated) {
            plan.evidence = Some(Evidence::Stated(Arc::clone(stated)));
        }
        plan
    }
}
