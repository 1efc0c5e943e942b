//! The plan for one request.

use std::{fmt, sync::Arc, time::Duration};

use super::{Evidence, RequestHead, RequestOptions, operation::Operation};

/// How long: one attempt up to its response head, and the whole call up to the head that is returned, waits included.
///
/// Arguments of every policy's constructor, never a setter: a retry without a timeout cannot be expressed (S8). Both
/// are above zero, `attempt` is shorter than `total`, and `total` is at most a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// One attempt, from the moment it is sent to its response head: for the first one, from when the call is first
    /// polled, since an answer at once reads no clock. When it fires, the attempt has failed and its outcome is unknown:
    /// it is repeated only with evidence (D9).
    pub attempt: Duration,
    /// The whole call: attempts, waits and the readiness between them, up to the response head that is returned (D30).
    /// The first readiness comes before the call, and is the caller's own to bound: `oneshot` waits for it for ever. When it fires,
    /// the call is over. The body of a streaming answer is never cut by it.
    pub total: Duration,
}

/// What a policy plans for one request: its operation, timeouts, limits, waits and evidence.
///
/// There is no public constructor: a plan comes from a built [`StandardPolicy`](super::StandardPolicy), and can only
/// be tightened. Cheap to clone.
#[derive(Clone)]
pub struct Plan {
    pub(crate) operation: Arc<Operation>,
    /// `None`: the operation's own. Tightening is rare, and a plan lives in every call's future.
    pub(crate) tighter: Option<Box<Timeouts>>,
    pub(crate) max_attempts: u32,
    pub(crate) evidence: Option<Evidence>,
    /// Answers are judged by their code, and attempts are told when they end.
    pub(crate) grpc: bool,
}

impl Plan {
    /// The provider's name, as the policy was given it.
    pub fn provider(&self) -> &str {
        &self.operation.provider
    }

    /// The operation's name.
    pub fn operation(&self) -> &str {
        &self.operation.name
    }

    /// How long an attempt and the whole call may take.
    pub fn timeouts(&self) -> Timeouts {
        match &self.tighter {
            Some(tighter) => **tighter,
            None => self.operation.timeouts,
        }
    }

    /// How many attempts there may be, the first included.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Why a repeat is safe although the request may have taken effect; `None`: nothing says that it is.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    /// At most this many attempts, the first included. Zero is read as one: the first is always sent.
    pub fn at_most_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = self.max_attempts.min(attempts.max(1));
        self
    }

    /// Never repeated.
    pub fn never_retry(self) -> Self {
        self.at_most_attempts(1)
    }

    /// An attempt may take at most this long.
    pub fn at_most_attempt(self, attempt: Duration) -> Self {
        let Timeouts { attempt: planned, total } = self.timeouts();
        Plan { tighter: Some(Box::new(Timeouts { attempt: planned.min(attempt), total })), ..self }
    }

    /// The whole call may take at most this long.
    pub fn at_most_total(self, total: Duration) -> Self {
        let Timeouts { attempt, total: planned } = self.timeouts();
        Plan { tighter: Some(Box::new(Timeouts { attempt, total: planned.min(total) })), ..self }
    }

    /// Repeated only where it provably was not processed.
    pub fn without_evidence(mut self) -> Self {
        self.evidence = None;
        self
    }
}

impl Plan {
    /// For a call of gRPC.
    #[cfg(feature = "grpc")]
    pub(crate) fn over_grpc(mut self) -> Self {
        self.grpc = true;
        self
    }

    /// What holds for this request whoever planned it: its own options, and evidence only where this request has it,
    /// though a plan that was made for another one says so.
    #[inline]
    pub(crate) fn held_to(mut self, head: &RequestHead<'_>) -> Self {
        // Another request's own statement is gone then; this one's comes with its options.
        if !self.evidence.as_ref().is_none_or(|evidence| self.operation.has_evidence(evidence, head)) {
            self.evidence = None;
        }
        match head.extensions().get::<RequestOptions>() {
            Some(options) => options.apply(self),
            None => self,
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("provider", &self.provider())
            .field("operation", &self.operation())
            .field("timeouts", &self.timeouts())
            .field("max_attempts", &self.max_attempts)
            .field("evidence", &self.evidence)
            .finish_non_exhaustive()
    }
}
