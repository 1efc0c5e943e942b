//! How far the client got with an attempt's body: what an error can prove depends on it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::current::{AttemptTime, Current, Place, Restore};
use crate::fault::{Fault, FaultKind};

/// An attempt's body notes it here.
#[derive(Clone)]
pub(super) struct Reading {
    words: Words,
    turn: u8,
}

/// The first word has the flags of all attempts of a call; the rest is the call's own ([`Head`](super::head::Head)).
pub(super) type Words = Arc<[AtomicU64]>;

/// The flags of one attempt: its call asks here.
#[derive(Clone, Copy)]
pub(super) struct Flags<'a> {
    words: &'a [AtomicU64],
    /// Where they are in the first word.
    shift: u32,
}

const LOOKED_AT: u64 = 1;
const POLLED: u64 = 2;
/// By a layer below, and not by the client.
const BY_A_LAYER: u64 = 4;
/// Whoever sends it may send another request after it, and nobody would see that.
const MAY_BE_FOLLOWED: u64 = 8;

/// So many flags has an attempt. There are at most 9 attempts in a call (S12), and there is room for 16.
const FLAGS: u32 = 4;

/// Whether this thread is just now calling or polling an attempt, and not what a client does in a task of its own.
#[cfg(feature = "reqwest")]
pub(crate) fn within_an_attempt() -> bool {
    Current::get().place != Place::NONE
}

/// Polls a body as a client does that has a task of its own: for a service without one that stands for a client.
#[cfg(feature = "testing")]
pub(crate) fn as_the_client<T>(poll: impl FnOnce() -> T) -> T {
    let _restore = Current::NONE.enter();
    poll()
}

impl Reading {
    #[cfg(test)]
    pub(super) fn new() -> Self {
        Self::of(Arc::new([AtomicU64::new(0)]), 0)
    }

    /// `turn`: how many attempts there were before.
    pub(super) fn of(words: Words, turn: u8) -> Self {
        Reading { words, turn }
    }

    /// Somebody asked how long the body is, or whether it has ended.
    pub(super) fn look_at(&self) {
        self.note(LOOKED_AT);
    }

    /// Somebody may send it more than once. No client does that: a layer, in whatever task it runs.
    pub(super) fn cloned(&self) {
        self.flags().set(LOOKED_AT | BY_A_LAYER);
    }

    /// The client may follow a redirect by itself.
    #[cfg(feature = "reqwest")]
    pub(super) fn may_be_followed(&self) {
        self.flags().set(MAY_BE_FOLLOWED);
    }

    /// Somebody asked for a frame.
    pub(super) fn poll(&self) {
        self.note(LOOKED_AT | POLLED);
    }

    /// A client sends a request from a task of its connection. Who looks at the body while the attempt itself is called
    /// or polled is a layer below: one that may follow a redirect, answer a challenge, or collect the body.
    fn note(&self, noted: u64) {
        let flags = self.flags();
        let by_a_layer = Current::get().place == flags.place();
        let noted = if by_a_layer { noted | BY_A_LAYER } else { noted };
        if !flags.has(noted) {
            flags.set(noted);
        }
    }

    fn flags(&self) -> Flags<'_> {
        Flags::of(&self.words, self.turn)
    }
}

impl<'a> Flags<'a> {
    pub(super) fn of(words: &'a [AtomicU64], turn: u8) -> Self {
        Flags { words, shift: u32::from(turn) * FLAGS % u64::BITS }
    }

    /// The attempt that this belongs to is called or polled, until the guard is dropped.
    pub(super) fn enter(self, time: AttemptTime) -> Restore {
        Current { place: self.place(), time: Some(time) }.enter()
    }

    /// What the attempt's error says.
    ///
    /// An error speaks of the last request that was sent. hyper looks at a body only when it takes the request onto a
    /// connection, and not while it makes one, so a failure to connect, after the body was looked at, is that of
    /// another request, which followed ours. And where a layer has looked at it, nothing that follows is a proof: it may
    /// have sent several, and `GOAWAY` is one only for a body that the client itself has begun to read
    /// (see [`Fault::read_attempt`]). A client that follows redirects by itself may have sent several too: what it says
    /// of a stream may be said of a later one.
    pub(super) fn read(self, error: &(dyn std::error::Error + 'static)) -> Fault {
        let fault = Fault::read_attempt(error, self.has(POLLED));
        let of_a_stream = matches!(fault.kind(), FaultKind::RefusedStream | FaultKind::Goaway);
        let of_a_later_one = if of_a_stream { self.has(MAY_BE_FOLLOWED) } else { self.has(LOOKED_AT) };
        match self.has(BY_A_LAYER) || of_a_later_one {
            true => fault.unproved(),
            false => fault,
        }
    }

    /// Whether what came of the attempt can only be said of this request: no layer below, and no client that follows
    /// redirects by itself, may have sent another one after it.
    pub(super) fn is_of_one_request(self) -> bool {
        !self.has(BY_A_LAYER) && !self.has(MAY_BE_FOLLOWED)
    }

    fn place(self) -> Place {
        Place { words: self.words.as_ptr().addr(), shift: self.shift }
    }

    fn set(self, flags: u64) {
        if let Some(word) = self.words.first() {
            word.fetch_or(flags << self.shift, Ordering::Release);
        }
    }

    fn has(self, flags: u64) -> bool {
        self.words.first().is_some_and(|word| word.load(Ordering::Acquire) >> self.shift & flags == flags)
    }
}
