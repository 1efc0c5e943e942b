//! Budgets that are not of this crate, to be compared with those that are.

use std::{cell::RefCell, sync::Arc};

use tokio::time::Instant;

/// One client's budget that is not a [`Budget`](crate::Budget), for a comparison: see [`Strategy::budgeted`].
///
/// It is told the model's time, and reads no clock of its own.
///
/// [`Strategy::budgeted`]: super::Strategy::budgeted
pub trait OtherBudget {
    /// An attempt succeeded, a first one or a repeat.
    fn succeeded(&mut self, now: Instant);

    /// Whether a repeat may be made. Asked when it is decided, once all else speaks for it; what it costs is taken.
    fn withdraw(&mut self, now: Instant) -> bool;
}

/// Makes those of a run, one a client.
#[derive(Clone)]
pub(super) struct Others(Arc<Make>);

type Make = dyn Fn(Instant) -> Box<dyn OtherBudget> + Send + Sync;

impl Others {
    pub(super) fn new<O: OtherBudget + 'static>(make: impl Fn(Instant) -> O + Send + Sync + 'static) -> Self {
        Others(Arc::new(move |start| Box::new(make(start))))
    }

    pub(super) fn make(&self, clients: u32, start: Instant) -> Vec<RefCell<Box<dyn OtherBudget>>> {
        (0..clients).map(|_| RefCell::new((self.0)(start))).collect()
    }
}
