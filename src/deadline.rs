//! The instant by which a call must end.

use std::time::Duration;

use tokio::time::Instant;

/// The instant by which a call must end, carried in a request's extensions.
///
/// A [`RetryLayer`](crate::RetryLayer) never sends, waits or listens past it, whatever its policy allows. A
/// [`TimeoutLayer`](crate::TimeoutLayer) waits for a response head no longer than it says, and puts its own in where
/// no earlier one is there already. Put one in by hand to hand down what is left of your own caller's time; an
/// [`InboundLayer`](crate::layers::InboundLayer) does that for all calls ([`OutboundHints`](crate::OutboundHints)).
///
/// ```
/// use redial::Deadline;
/// use std::time::Duration;
///
/// let mut request = http::Request::get("https://api.example/orders").body(())?;
/// request.extensions_mut().insert(Deadline::after(Duration::from_millis(300)));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

/// What stands for "never" where an instant would overflow: about thirty years.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

impl Deadline {
    /// At this instant of tokio's clock.
    pub const fn at(instant: Instant) -> Self {
        Deadline(instant)
    }

    /// This long from now.
    pub fn after(time: Duration) -> Self {
        Deadline(later(Instant::now(), time))
    }

    /// The instant.
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// How much time is left; zero when it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// `from + time`, without overflow.
pub(crate) fn later(from: Instant, time: Duration) -> Instant {
    from.checked_add(time).unwrap_or_else(|| from + FAR)
}
