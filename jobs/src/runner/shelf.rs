//! Jobs that were claimed and not begun.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    backoff::persist,
    desk::{Desk, Run},
};
use crate::{JobStore, Lease};

/// Jobs that were claimed and not begun, the next one first.
#[derive(Clone, Default)]
pub(super) struct Shelf(Arc<Mutex<VecDeque<Run>>>);

impl Shelf {
    pub(super) fn put(&self, jobs: impl IntoIterator<Item = Run>) {
        self.runs().extend(jobs);
    }

    pub(super) fn next(&self) -> Option<Run> {
        self.runs().pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.runs().len()
    }

    /// Gives back what is here: whoever stops does not keep it from other workers until what runs has ended.
    pub(super) async fn give_back<S: JobStore>(&self, desk: &Desk<S>) {
        let runs = std::mem::take(&mut *self.runs());
        // A renewal that crosses this is no loss.
        runs.iter().for_each(|run| run.hold.closes());
        let leases: Vec<Lease> = runs.iter().map(|run| run.hold.lease).collect();
        if leases.is_empty() {
            return;
        }
        // Whose lease is lost was not begun: nothing is dropped.
        let _ = persist("release", || desk.store.release(&leases)).await;
        for lease in leases {
            desk.holds.forget(lease);
        }
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
