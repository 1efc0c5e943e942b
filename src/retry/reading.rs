//! How far the client got with an attempt's body: what an error can prove depends on it.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::fault::{Fault, FaultKind};

/// Shared by an attempt's body, which notes, and by its call, which asks.
#[derive(Clone)]
pub(super) struct Reading(Arc<[AtomicU8]>);

const LOOKED_AT: u8 = 1;
const POLLED: u8 = 2;

impl Reading {
    pub(super) fn new() -> Self {
        Reading(Arc::new([AtomicU8::new(0)]))
    }

    /// The first byte of a longer allocation.
    pub(super) fn first_of(bytes: Arc<[AtomicU8]>) -> Self {
        Reading(bytes)
    }

    /// Somebody asked how long the body is, or whether it has ended.
    pub(super) fn look_at(&self) {
        if !self.has(LOOKED_AT) {
            self.set(LOOKED_AT);
        }
    }

    /// Somebody asked for a frame.
    pub(super) fn poll(&self) {
        if !self.has(POLLED) {
            self.set(LOOKED_AT | POLLED);
        }
    }

    pub(super) fn was_looked_at(&self) -> bool {
        self.has(LOOKED_AT)
    }

    /// What an attempt's error says. `early`: the body was looked at before the client could have sent anything.
    ///
    /// An error speaks of the last request that was sent. hyper looks at a body only when it takes the request onto a
    /// connection, and not while it makes one, so:
    /// - a failure to connect, after the body was looked at, is that of another request, which followed ours: a layer
    ///   below has followed a redirect, or answered a challenge;
    /// - a body that was looked at as soon as the request was handed down was looked at by such a layer: nothing that
    ///   follows is a proof any more.
    pub(super) fn read(&self, error: &(dyn std::error::Error + 'static), early: bool) -> Fault {
        let fault = Fault::read_attempt(error, self.has(POLLED));
        let of_a_stream = matches!(fault.kind(), FaultKind::RefusedStream | FaultKind::Goaway);
        if early || (self.was_looked_at() && !of_a_stream) { fault.unproved() } else { fault }
    }

    fn has(&self, flag: u8) -> bool {
        self.0.first().is_some_and(|flags| flags.load(Ordering::Acquire) & flag == flag)
    }

    fn set(&self, flags: u8) {
        if let Some(place) = self.0.first() {
            place.fetch_or(flags, Ordering::Release);
        }
    }
}
