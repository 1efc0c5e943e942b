//! The wall clock that dates in responses are measured against.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Tells the time of day; a clone tells the same time.
///
/// Waits themselves are measured by tokio's clock. This one is only asked what a date in a response
/// (`Retry-After: Wed, 21 Oct 2015 07:28:00 GMT`) means from here. Default: [`Clock::system`].
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Fixed(SystemTime),
    Settable(Arc<Mutex<SystemTime>>),
    Tokio {
        base: SystemTime,
        start: Instant,
    },
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still.
    #[must_use]
    pub const fn fixed(at: SystemTime) -> Self {
        Self(Source::Fixed(at))
    }

    /// A clock that stands still until its hand is moved.
    #[must_use]
    pub fn settable(at: SystemTime) -> (Self, ClockHand) {
        let time = Arc::new(Mutex::new(at));
        (Self(Source::Settable(Arc::clone(&time))), ClockHand { time })
    }

    /// A clock that reads `base` now and goes on as tokio's clock does.
    ///
    /// Under `tokio::time::pause` it stands still with it and jumps with it, so that the end of a
    /// wait until a date is that date. Make it inside the runtime whose time it is to follow.
    #[must_use]
    pub fn following_tokio(base: SystemTime) -> Self {
        let start = Instant::now();
        Self(Source::Tokio { base, start })
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        match &self.0 {
            Source::System => SystemTime::now(),
            Source::Fixed(at) => *at,
            Source::Settable(time) => *time.lock().unwrap_or_else(PoisonError::into_inner),
            // At the end of representable time the clock stops, rather than panic.
            Source::Tokio { base, start } => base.checked_add(start.elapsed()).unwrap_or(*base),
        }
    }
}

/// Moves a [`Clock::settable`], and with it all its clones.
#[derive(Clone, Debug)]
pub struct ClockHand {
    time: Arc<Mutex<SystemTime>>,
}

impl ClockHand {
    /// Makes the clock read `at`, backwards too: wall clocks do that.
    pub fn set(&self, at: SystemTime) {
        *self.time.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Moves the clock forward. Past the end of representable time it does not move.
    pub fn advance(&self, by: Duration) {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(later) = time.checked_add(by) {
            *time = later;
        }
    }
}

#[cfg(test)]
mod tests;
