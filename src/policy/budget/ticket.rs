//! What the engine holds while a retry is decided and on its way.

use tokio::time::Instant;

use super::Budget;

/// Why a retry is made, as far as its cost goes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// After a failure.
    Retry,
    /// After an answer that says "too many requests".
    Throttled,
}

/// A retry that is decided and paid for, but not sent: dropped, it gives its cost back.
#[doc(hidden)]
#[must_use = "dropping a charge gives it back"]
#[derive(Debug)]
pub struct Charge(Option<Ticket>);

/// A retry on its way. Dropped (cancelled), it stays paid for: the provider has its load.
#[doc(hidden)]
#[must_use = "a retry that was sent ends in `succeeded` or `failed`"]
#[derive(Debug)]
pub struct Sent(Option<Ticket>);

#[derive(Debug)]
struct Ticket {
    budget: Budget,
    receipt: Receipt,
}

/// What the budget needs to find what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
    /// Thousandths of tokens, from a bucket.
    Tokens(i64),
    /// One retry, from this slice of a window.
    Slice(u32),
    /// Nothing: the budget is unlimited, or the retry was not charged and leaves no trace in a window.
    Nothing,
}

impl Charge {
    pub(super) fn new(budget: Budget, receipt: Receipt) -> Self {
        Self(Some(Ticket { budget, receipt }))
    }

    /// The retry goes out.
    pub fn sent(mut self) -> Sent {
        Sent(self.0.take())
    }

    /// The retry is not sent, as of `now`.
    pub fn refund_at(mut self, now: Instant) {
        if let Some(Ticket { budget, receipt }) = self.0.take() {
            budget.refund(receipt, || now);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(Ticket { budget, receipt }) = self.0.take() {
            budget.refund(receipt, Instant::now);
        }
    }
}

impl Sent {
    /// The retry succeeded.
    pub fn succeeded(self) {
        self.end(true, Instant::now);
    }

    /// The retry failed, in a way that counts against the provider.
    pub fn failed(self) {
        self.end(false, Instant::now);
    }

    /// [`succeeded`](Self::succeeded), as of `now`.
    pub fn succeeded_at(self, now: Instant) {
        self.end(true, || now);
    }

    /// [`failed`](Self::failed), as of `now`.
    pub fn failed_at(self, now: Instant) {
        self.end(false, || now);
    }

    fn end(self, succeeded: bool, now: impl FnOnce() -> Instant) {
        if let Some(Ticket { budget, receipt }) = self.0 {
            budget.retried(succeeded, receipt, now);
        }
    }
}
