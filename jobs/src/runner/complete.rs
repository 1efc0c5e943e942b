//! Writes that jobs are done, many at a time: what was waiting when the last write ended is the next one.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{backoff::persist, hold::Holds};
use crate::{Claimed, JobStore, Lease, observe};

/// How many are written at once, and how many may wait.
const GROUP: usize = 256;

/// A job that is done, and whose row does not say so yet.
pub(super) struct Done {
    pub(super) job: Arc<Claimed>,
}

pub(super) fn channel() -> (mpsc::Sender<Done>, mpsc::Receiver<Done>) {
    mpsc::channel(GROUP)
}

/// Ends when every sender is gone and all is written.
pub(super) async fn complete<S: JobStore>(store: S, holds: Arc<Holds>, mut done: mpsc::Receiver<Done>) {
    let mut group: Vec<Done> = Vec::with_capacity(GROUP);
    while done.recv_many(&mut group, GROUP).await > 0 {
        let leases: Vec<Lease> = group.iter().map(|done| done.job.lease).collect();
        let held = persist("complete", || store.complete(&leases)).await;
        for done in group.drain(..) {
            holds.forget(done.job.lease);
            match held.contains(&done.job.lease) {
                true => observe::completed(&done.job),
                false => observe::dropped(&done.job, "COMPLETED"),
            }
        }
    }
}
