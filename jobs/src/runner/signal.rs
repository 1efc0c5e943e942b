//! Something that happens once, and that many wait for.

use tokio::sync::watch;

/// Raises a [`Signal`].
pub(super) struct Raise(watch::Sender<bool>);

impl Raise {
    pub(super) fn raise(&self) {
        self.0.send_replace(true);
    }
}

/// Something that happens once.
#[derive(Clone)]
pub(super) struct Signal(watch::Receiver<bool>);

impl Signal {
    pub(super) fn new() -> (Raise, Self) {
        let (raise, signal) = watch::channel(false);
        (Raise(raise), Signal(signal))
    }

    pub(super) fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends when it was raised, or whoever could raise it is gone.
    pub(super) async fn raised(&self) {
        let _ = self.0.clone().wait_for(|raised| *raised).await;
    }
}
