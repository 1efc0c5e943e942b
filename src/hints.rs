//! What whoever is being served wants of the calls that are made meanwhile.

use std::{cell::Cell, future::Future};

use http::Extensions;
use tokio::time::Instant;

use crate::{Deadline, scope::Scoped};

/// What whoever is being served wants of the outgoing calls that are made meanwhile: to end by its own deadline, and,
/// by choice, not to be repeated while it repeats by itself.
///
/// An [`InboundLayer`](crate::layers::InboundLayer) reads it from an incoming request. It only ever tightens: of
/// several deadlines the earliest holds. A [`RetryLayer`](crate::RetryLayer), a
/// [`TimeoutLayer`](crate::TimeoutLayer) and [`redial::retry`](fn@crate::retry) find it
///
/// - in the task that serves the request, by itself: it is around every poll of the handler;
/// - in an outgoing request's extensions, where somebody put it there.
///
/// # What it does not reach by itself
///
/// A spawned task (`tokio::spawn`, a `JoinSet`, a `buffer` above the outgoing client, which calls it from a task of its
/// own) and a response body that is produced after the handler has returned. Carry it there by hand:
///
/// ```
/// use redial::OutboundHints;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # async fn work() {}
/// let hints = OutboundHints::current();
/// tokio::spawn(hints.scope(async { work().await })).await.unwrap();
/// # }
/// ```
///
/// or, for one request, `request.extensions_mut().insert(OutboundHints::current())`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboundHints {
    deadline: Option<Deadline>,
    /// 0: not known.
    caller_attempt: u32,
    once: bool,
    block: Option<InBlock>,
}

/// The calls are attempts of a block of code (D34).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InBlock {
    pub(crate) attempt: u32,
    pub(crate) ends: Instant,
}

thread_local! {
    static CURRENT: Cell<OutboundHints> = const { Cell::new(OutboundHints::new()) };
    /// Whether a call that a block repeats already came through a layer that would have repeated it.
    static STACKED: Cell<bool> = const { Cell::new(false) };
}

impl OutboundHints {
    /// Nothing is wanted.
    pub const fn new() -> Self {
        OutboundHints { deadline: None, caller_attempt: 0, once: false, block: None }
    }

    /// Outgoing calls end by then, or earlier.
    pub fn with_deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = [self.deadline, Some(deadline)].into_iter().flatten().min();
        self
    }

    /// Which attempt of the caller's is being served; its first is 1.
    pub const fn with_caller_attempt(mut self, attempt: u32) -> Self {
        self.caller_attempt = attempt;
        self
    }

    /// Outgoing calls are sent once while the caller's attempt is a repeat: what fails then, the caller repeats.
    pub const fn once_when_caller_retries(mut self) -> Self {
        self.once = true;
        self
    }

    /// By when outgoing calls end.
    pub const fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Which attempt of the caller's is being served, where it said so; its first is 1.
    pub const fn caller_attempt(&self) -> Option<u32> {
        match self.caller_attempt {
            0 => None,
            attempt => Some(attempt),
        }
    }

    /// Whether the caller's attempt is a repeat, as far as it said so.
    pub const fn caller_retries(&self) -> bool {
        self.caller_attempt > 1
    }

    /// Whether outgoing calls are sent once and not repeated
    /// ([`StopReason::CallerRetries`](crate::StopReason::CallerRetries)).
    pub const fn sends_once(&self) -> bool {
        self.once && self.caller_retries()
    }

    /// What holds in this task, just now. Nothing is wanted outside of a scope.
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Runs a future so that calls made within it find this too, beside what holds already.
    pub fn scope<F: Future>(self, future: F) -> Scoped<F> {
        Scoped::tightened(self, future)
    }

    /// What holds for a request: here, and by its own extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<OutboundHints>() {
            Some(own) => Self::current().and(*own),
            None => Self::current(),
        }
    }

    /// Both: the earlier deadline, and once where either says so.
    pub(crate) fn and(self, more: Self) -> Self {
        OutboundHints {
            deadline: [self.deadline, more.deadline].into_iter().flatten().min(),
            caller_attempt: self.caller_attempt.max(more.caller_attempt),
            once: self.once || more.once,
            block: more.block.or(self.block),
        }
    }

    pub(crate) const fn in_block(mut self, block: InBlock) -> Self {
        self.block = Some(block);
        self
    }

    pub(crate) const fn block(&self) -> Option<InBlock> {
        self.block
    }

    /// A path of its own: neither an attempt of a block nor bound to be sent once. The deadline still holds, and so does the
    /// end of the block's attempt: what is cut off there must not be waiting for a server's word.
    pub(crate) fn independent(self) -> Self {
        let own = OutboundHints { once: false, block: None, ..self };
        self.block.map_or(own, |block| own.with_deadline(Deadline::at(block.ends)))
    }

    /// What a server within this process begins with: no attempt of a block any more, and all else still holds.
    pub(crate) fn new_path(self) -> Self {
        OutboundHints { once: self.once, ..self.independent() }
    }

    pub(crate) const fn asks_once(&self) -> bool {
        self.once
    }

    /// Makes this current until the guard is dropped.
    pub(crate) fn enter(self) -> Restore {
        Restore { before: CURRENT.replace(self), stacked: None }
    }

    /// The same for the poll of a block, which learns what was noticed meanwhile.
    pub(crate) fn enter_block(self) -> Restore {
        let mut restore = self.enter();
        restore.stacked = Some(STACKED.replace(false));
        restore
    }
}

/// Puts back what was current before.
pub(crate) struct Restore {
    before: OutboundHints,
    stacked: Option<bool>,
}

impl Restore {
    /// Whether a call within came through a second layer.
    pub(crate) fn found_stacked(&self) -> bool {
        STACKED.get()
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.before);
        if let Some(before) = self.stacked {
            STACKED.set(before);
        }
    }
}

/// A call that a block repeats already came to a layer that would have repeated it.
pub(crate) fn notice_stacked() {
    STACKED.set(true);
}
