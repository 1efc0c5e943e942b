//! Whether an attempt's body was asked for.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Whether the client has begun to read an attempt's body: what makes a `GOAWAY` a proof
/// (see [`Fault::read_attempt`](crate::Fault::read_attempt)).
#[derive(Clone)]
pub(super) struct Polled(Arc<[AtomicU8]>);

impl Polled {
    pub(super) fn new() -> Self {
        Polled(Arc::new([AtomicU8::new(0)]))
    }

    /// The first byte of a longer allocation.
    pub(super) fn first_of(bytes: Arc<[AtomicU8]>) -> Self {
        Polled(bytes)
    }

    pub(super) fn set(&self) {
        if let Some(flag) = self.0.first() {
            flag.store(1, Ordering::Release);
        }
    }

    pub(super) fn get(&self) -> bool {
        self.0.first().is_some_and(|flag| flag.load(Ordering::Acquire) == 1)
    }
}
