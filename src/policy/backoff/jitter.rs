//! How waits are spread.

use std::time::Duration;

/// How waits are spread, so that clients which failed together do not come back together.
///
/// With *d* for the unjittered wait, `min(initial * multiplier^n, max)`, before retry *n* (the
/// first is 0). Whatever the kind, no wait is under the floor. Source: "Exponential Backoff And
/// Jitter", AWS Architecture Blog, 2015, whose names these are, but for `Around`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// Uniform from the floor to *d*: the widest spread, and the default.
    #[default]
    Full,
    /// Half of *d* is fixed and half is random.
    Equal,
    /// Uniform from so many per cent below *d* to as many above it, as gRPC (20, proposal A6) and
    /// Polly (25) spread theirs. With *d* at most so far below `max` that no wait passes it, and
    /// waits at the maximum are spread like all others. It spreads the least of all: use it where
    /// a provider or a standard asks for it.
    Around {
        /// From 10 to 100; what is below spreads too little to part those who failed together.
        percent: u8,
    },
    /// Uniform from `initial` to three times the previous wait, cut at `max`; the multiplier is
    /// always 3. A wait that would pass `max` is `max`, so of the waits after one that long, two
    /// thirds are alike: `Full` spreads them better.
    Decorrelated,
    /// Always *d*. Needs a reason: see [`Backoff::unjittered`](super::Backoff::unjittered).
    None,
}

/// The bounds around a wait.
pub(super) fn around(wait: Duration, percent: u8) -> (Duration, Duration) {
    let share = wait.saturating_mul(u32::from(percent)) / 100;
    (wait.saturating_sub(share), wait.saturating_add(share))
}

/// The longest wait around which nothing is longer than `max`.
pub(super) fn centre_below(max: Duration, percent: u8) -> Duration {
    // A maximum that is none, or beyond any that a policy may have, bounds nothing here.
    max.checked_mul(100).map_or(max, |hundredfold| hundredfold / (100 + u32::from(percent)))
}
