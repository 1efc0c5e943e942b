//! Which attempt a thread is just now calling or polling, and how long it may still take.

use std::{cell::Cell, time::Duration};

use tokio::time::Instant;

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current::NONE) };
}

/// The attempt that this thread is just now calling or polling.
#[derive(Clone, Copy)]
pub(super) struct Current {
    pub(super) place: Place,
    pub(super) time: Option<AttemptTime>,
}

/// Where the flags of an attempt's body are: each attempt has a place of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of the word; 0 where there is no attempt.
    pub(super) words: usize,
    pub(super) shift: u32,
}

impl Place {
    pub(super) const NONE: Place = Place { words: 0, shift: 0 };
}

/// How long an attempt may still take. Known without a clock where it has just begun: an answer at once asks none.
#[derive(Clone, Copy)]
pub(crate) struct AttemptTime {
    /// From now.
    pub(crate) within: Duration,
    pub(crate) by: Option<Instant>,
}

/// Puts back what was current before.
pub(super) struct Restore(Current);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Current {
    pub(super) const NONE: Current = Current { place: Place::NONE, time: None };

    pub(super) fn get() -> Self {
        CURRENT.get()
    }

    /// Until the guard is dropped.
    pub(super) fn enter(self) -> Restore {
        Restore(CURRENT.replace(self))
    }
}

/// When the attempt that is just now called or polled must end: for a layer below that tells the next hop.
pub(crate) fn attempt_ends(now: Instant) -> Option<Instant> {
    let AttemptTime { within, by } = CURRENT.get().time?;
    let own = crate::deadline::later(now, within);
    Some(by.map_or(own, |by| by.min(own)))
}
