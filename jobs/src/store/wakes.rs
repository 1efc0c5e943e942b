//! Workers are woken when there is something to do.

use tokio::sync::watch;

/// Tells when a job may have become claimable. Each worker has its own, and misses nothing that comes between two looks.
#[derive(Clone, Debug)]
pub struct Wakes(Option<watch::Receiver<u64>>);

impl Wakes {
    /// Of a store that cannot tell.
    pub fn never() -> Self {
        Wakes(None)
    }

    /// Wakes each time the number changes.
    pub fn of(count: watch::Receiver<u64>) -> Self {
        Wakes(Some(count))
    }

    /// Ends when a job may have become claimable since the last time this ended, and at times without one. Never, where
    /// the store cannot tell: look at an interval as well.
    pub async fn woken(&mut self) {
        if let Some(count) = &mut self.0
            && count.changed().await.is_ok()
        {
            return;
        }
        // The store is gone, or never told anything.
        std::future::pending().await
    }
}
