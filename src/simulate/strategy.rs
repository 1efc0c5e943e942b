//! What the clients do when an attempt fails.

use std::sync::Arc;

use http::Request;
use tokio::time::Instant;

use super::others::{OtherBudget, Others};
use crate::policy::{Plan, Policy, RequestHead};

/// What every client of a run does when an attempt fails.
#[derive(Clone)]
pub struct Strategy {
    name: String,
    pub(super) kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// The loop that everybody writes first: again at once, whatever failed.
    AtOnce { attempts: u32 },
    /// The engine.
    Policy { plan: Plan, policy: Arc<dyn Policy + Send + Sync>, others: Option<Others> },
}

impl Strategy {
    /// Each request is sent once.
    pub fn no_retry() -> Self {
        Strategy { name: "no retry".to_owned(), kind: Kind::AtOnce { attempts: 1 } }
    }

    /// A failed request is sent again at once, up to so many attempts in all: what a policy of this crate cannot be.
    pub fn at_once(attempts: u32) -> Self {
        let attempts = attempts.max(1);
        Strategy { name: format!("{attempts} attempts at once"), kind: Kind::AtOnce { attempts } }
    }

    /// What this policy says of this request, which every call makes. Each client has a budget and a hold of its own,
    /// of the policy's setting.
    pub fn policy<B>(
        name: impl Into<String>,
        policy: impl Policy + Send + Sync + 'static,
        request: &Request<B>,
    ) -> Self {
        let plan = policy.plan(&RequestHead::of(request));
        Strategy { name: name.into(), kind: Kind::Policy { plan, policy: Arc::new(policy), others: None } }
    }

    /// The same, and each client asks a budget of another crate, or of your own, beside the policy's: give the policy
    /// [`Budget::unlimited`](crate::Budget::unlimited) to compare that one alone. `make` is told when the run begins. No
    /// effect without a policy.
    #[must_use]
    pub fn budgeted<O: OtherBudget + 'static>(mut self, make: impl Fn(Instant) -> O + Send + Sync + 'static) -> Self {
        if let Kind::Policy { others, .. } = &mut self.kind {
            *others = Some(Others::new(make));
        }
        self
    }

    /// Its name in tables and pictures.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy").field("name", &self.name).finish_non_exhaustive()
    }
}
