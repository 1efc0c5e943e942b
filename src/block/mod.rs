//! Again, for a block of code: the programmatic form, for what is not one HTTP request.

mod attempt;
mod failure;
mod future;
#[cfg(feature = "grpc")]
mod grpc;

use std::{
    fmt,
    future::{Future, IntoFuture},
    sync::Arc,
};

pub use attempt::Attempt;
pub use failure::Failure;
pub use future::RetryBlockFuture;

use crate::{Deadline, Plan, RequestOptions, StandardPolicy};

/// Repeats a block of code by a policy: the same waits, timeouts, budget, hold, events and report as a
/// [`RetryLayer`](crate::RetryLayer) gives a request.
///
/// For what is not one request: a page fetched, read and checked; a query of a database; two calls of which the second
/// needs the first. Ordinary calls belong into a layer.
///
/// ```
/// use redial::{Failure, StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # async fn rows() -> std::io::Result<u32> { Ok(3) }
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
/// let policy = StandardPolicy::builder("reports", timeouts, Transient::usual()).operation("monthly").build()?;
///
/// let rows = redial::retry(&policy, |attempt| async move {
///     let rows = rows().await?; // judged by what it is: an `io::Error` that resets a connection is transient
///     match rows {
///         0 if attempt.number() == 1 => Err(Failure::transient("the report is not ready yet")),
///         0 => Err(Failure::permanent("the report is empty")),
///         rows => Ok(rows),
///     }
/// })
/// .idempotent("it only reads")
/// .await?;
/// # assert_eq!(rows, 3);
/// # Ok(()) }
/// ```
///
/// # Evidence
///
/// A block has no method by which it could be seen that repeating it is safe, and no error proves that it had no effect:
/// it may have done anything before it failed. Somebody has to say so (S7), so this is not a future until
/// [`idempotent`](NeedsEvidence::idempotent) is given its reason, or
/// [`as_the_policy_says`](NeedsEvidence::as_the_policy_says) leaves it to the policy's own statement; without one,
/// what fails is not repeated.
///
/// ```compile_fail,E0277
/// # async fn example(policy: redial::StandardPolicy) {
/// redial::retry(&policy, |_| async { Ok(()) }).await; // `NeedsEvidence<..>` is not a future
/// # }
/// ```
///
/// # What fails
///
/// The block returns `Result<T, Failure>`, and `?` makes a [`Failure`] of any error. What it says of itself holds
/// ([`Failure::permanent`], [`transient`](Failure::transient), [`retry_after`](Failure::retry_after),
/// [`answer`](Failure::answer)); what says nothing is judged by the policy, as a layer's errors are. An error that is the
/// end of another call's attempts ([`Error`](crate::Error) of a retry layer, or of a block, that was not part of this
/// one) is final: its repeats were made.
///
/// The end is an [`Error`](crate::Error) with the report of all attempts; the block's own error is in its
/// `source()`, and [`find_source`](crate::Error::find_source) finds it by type.
///
/// # One path (D34)
///
/// The calls that are made inside through a [`RetryLayer`](crate::RetryLayer), or by another `retry`, are attempts of this
/// block: they do not repeat by themselves ([`StopReason::Stacked`](crate::StopReason::Stacked)), so that three attempts
/// stay three.
///
/// | of a call's own policy and request | within a block |
/// | --- | --- |
/// | timeouts, a [`Deadline`], [`OutboundHints`](crate::OutboundHints), what its [`RequestOptions`] tighten | hold, beside the block's own |
/// | the hold (S17) | is heeded, and set for others: nothing is sent earlier than the provider said |
/// | attempts, waits, budget, evidence | are the block's |
/// | events and metrics of calls and attempts | are the block's |
/// | an [`IdempotencyKeyLayer`](crate::layers) | gives no key: make one before the block |
///
/// What a call is told ("retry after") the block heeds if it is handed on: as an error by `?`, as an answer by
/// [`Failure::check`]. The end of a call that did repeat by itself is final: its repeats were made.
/// [`redial::independent`](crate::independent) excepts a call.
///
/// A layer knows this in the task that runs the block. It is not known across `tokio::spawn`, nor above a
/// `buffer` whose worker calls the layer: those repeat by themselves, unless
/// [`OutboundHints::current`](crate::OutboundHints::current) is carried there.
///
/// # Time
///
/// One attempt is the whole block once. When its timeout fires the block is dropped where it stands, and its outcome is
/// unknown. A caller's deadline ([`OutboundHints`](crate::OutboundHints), [`deadline`](RetryBlock::deadline)) bounds the
/// whole. Timers need a tokio runtime with time enabled.
pub fn retry<F, Fut, T>(policy: &StandardPolicy, block: F) -> NeedsEvidence<F>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, Failure>>,
{
    NeedsEvidence { policy: policy.clone(), block }
}

/// A block of which nobody has said yet why repeating it is safe: see [`retry`].
#[must_use = "a block does nothing until it is said why repeating it is safe"]
pub struct NeedsEvidence<F> {
    policy: StandardPolicy,
    block: F,
}

impl<F> NeedsEvidence<F> {
    /// Repeating this block is safe, or its duplicates are accepted, for this reason. An empty reason is none.
    pub fn idempotent(self, reason: impl Into<Arc<str>>) -> RetryBlock<F> {
        self.as_the_policy_says().options(RequestOptions::new().idempotent(reason))
    }

    /// Repeating this block is as safe as its policy states
    /// ([`StandardPolicyBuilder::idempotent`](crate::policy::StandardPolicyBuilder::idempotent)). Where that states
    /// nothing, it runs once, and its calls are sent once.
    pub fn as_the_policy_says(self) -> RetryBlock<F> {
        let plan = self.policy.plan_block();
        RetryBlock { policy: self.policy, plan, deadline: None, block: self.block }
    }
}

impl<F> fmt::Debug for NeedsEvidence<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NeedsEvidence").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A block that is repeated by a policy: `.await` it. Made by [`retry`].
#[must_use = "a block does nothing until it is awaited"]
pub struct RetryBlock<F> {
    policy: StandardPolicy,
    plan: Plan,
    deadline: Option<Deadline>,
    block: F,
}

impl<F> RetryBlock<F> {
    /// Tightens what the policy plans: fewer attempts, shorter timeouts.
    pub fn options(self, options: RequestOptions) -> Self {
        RetryBlock { plan: options.apply(self.plan), ..self }
    }

    /// Ends by then, or earlier. Default: by the policy's total, and a caller's deadline.
    pub fn deadline(self, deadline: Deadline) -> Self {
        RetryBlock { deadline: Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline))), ..self }
    }
}

impl<F> fmt::Debug for RetryBlock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBlock").field("plan", &self.plan).field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<F, Fut, T> IntoFuture for RetryBlock<F>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, Failure>>,
{
    type Output = Result<T, crate::Error>;
    type IntoFuture = RetryBlockFuture<F, Fut>;

    fn into_future(self) -> Self::IntoFuture {
        RetryBlockFuture::new(self.policy, self.plan, self.deadline, self.block)
    }
}
