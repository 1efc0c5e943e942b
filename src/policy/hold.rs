//! What one call was told holds for the others (S17, D32).

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::rules::LONGEST;

/// Which calls wait while a provider that said "rejected, wait" is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldScope {
    /// Each call learns it for itself.
    None,
    /// Retries wait; first tries go out. The default.
    #[default]
    Retries,
    /// First tries wait as well, or fail at once where the wait would cross their deadline.
    All,
}

/// The instant before which a provider asked to be left alone. Shared by clones: give the same hold to every policy
/// of a provider (or budget group). Lock-free.
#[derive(Clone, Default)]
pub struct Hold(Arc<State>);

#[derive(Default)]
struct State {
    /// Where counting starts: instants themselves do not fit an atomic.
    base: OnceLock<Instant>,
    /// Microseconds after `base`; zero: never held.
    until: AtomicU64,
}

impl Hold {
    /// A provider that has not asked for anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends it: the next call may go out. For an operator who knows better than the provider's last word.
    pub fn release(&self) {
        self.0.until.store(0, Ordering::Relaxed);
    }

    /// Leave the provider alone for at least this long, but for no more than a day: one absurd word must not end the
    /// traffic for ever. Never shortens what it asked for before.
    pub(crate) fn extend(&self, now: Instant, wait: Duration) {
        let wait = wait.min(LONGEST);
        let base = *self.0.base.get_or_init(|| now);
        let until = now.saturating_duration_since(base).saturating_add(wait);
        // Rounded up: a hold never ends early.
        let micros = u64::try_from(until.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        // Whoever sees it sees the base as well.
        self.0.until.fetch_max(micros, Ordering::Release);
    }

    /// Whether it ever asked. Cheaper than a clock.
    pub(crate) fn was_held(&self) -> bool {
        self.0.until.load(Ordering::Relaxed) > 0
    }

    /// How long it is still to be left alone.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        let until = Duration::from_micros(self.0.until.load(Ordering::Acquire));
        let base = self.0.base.get()?;
        until.checked_sub(now.saturating_duration_since(*base)).filter(|left| !left.is_zero())
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("was_held", &self.was_held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
