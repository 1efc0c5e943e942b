//! How long to wait before the next attempt, where the server does not say.

use std::borrow::Cow;
use std::time::Duration;

use rand::Rng;

use super::rules::LONGEST;

pub use jitter::Jitter;

const DEFAULT_FLOOR: Duration = Duration::from_millis(50);
const DEFAULT_MULTIPLIER: f64 = 2.0;
/// The published formula of decorrelated jitter knows no other.
const DECORRELATED_MULTIPLIER: u32 = 3;

/// Backoff with jitter, bounded below and above; exponential, unless it is [`linear`](Self::linear).
///
/// ```
/// use std::time::Duration;
/// use redial::policy::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_millis(500)).max(Duration::from_secs(20));
/// assert_eq!(backoff.longest(2), Duration::from_secs(2));
/// ```
///
/// Nothing is checked here: the policy that it goes into refuses, when it is built, every value
/// that breaks a rule, and names them all. No value is ever silently replaced by another. A
/// `Backoff` that would be refused still never panics and never overflows; where its floor is above
/// its `max`, the floor wins.
///
/// The default is 200 ms, doubled each time, at most 10 s, at least 50 ms, full jitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    initial: Duration,
    linear: bool,
    /// `None` until one is stated: decorrelated jitter has its own, and a stated one is not ignored.
    multiplier: Option<f64>,
    max: Option<Duration>,
    floor: Duration,
    jitter: Jitter,
    reason: Option<Cow<'static, str>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_millis(200)).max(Duration::from_secs(10))
    }
}

impl Backoff {
    /// Waits that grow from `initial`: doubled each time, full jitter, at least 50 ms.
    ///
    /// It has no maximum until [`max`](Self::max) is stated; a policy without one is refused. So is
    /// an `initial` below the floor: state a lower [`floor`](Self::floor) with it.
    #[must_use]
    pub const fn exponential(initial: Duration) -> Self {
        let (linear, jitter) = (false, Jitter::Full);
        Self { initial, linear, multiplier: None, max: None, floor: DEFAULT_FLOOR, jitter, reason: None }
    }

    /// Waits of one, two, three times `initial` and so on; all else is as with [`exponential`](Self::exponential).
    ///
    /// Slower to give way than exponential growth, so for a provider that asks for it. A multiplier beside it is
    /// refused, and so is decorrelated jitter, which grows in its own way.
    #[must_use]
    pub const fn linear(initial: Duration) -> Self {
        let mut backoff = Self::exponential(initial);
        backoff.linear = true;
        backoff
    }

    /// The same wait each time, without jitter, and the reason why that does no harm.
    ///
    /// A herd that waits alike comes back alike, so an empty reason is refused. For waits that do
    /// not grow but are spread, use `exponential(wait).multiplier(1.0).max(wait)`.
    #[must_use]
    pub fn fixed(wait: Duration, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::exponential(wait).multiplier(1.0).max(wait).floor(wait).unjittered(reason)
    }

    /// By what each wait is longer than the one before. Default 2.0; refused below 1.0, beside linear
    /// growth, and beside decorrelated jitter unless it is 3.0.
    #[must_use]
    pub const fn multiplier(mut self, multiplier: f64) -> Self {
        self.multiplier = Some(multiplier);
        self
    }

    /// No wait is longer than this, jitter included. Has no default; refused above a day.
    #[must_use]
    pub const fn max(mut self, max: Duration) -> Self {
        self.max = Some(max);
        self
    }

    /// No wait is shorter than this, jitter included. Default 50 ms; refused at zero.
    #[must_use]
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.floor = floor;
        self
    }

    /// How waits are spread. Default [`Jitter::Full`].
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Waits that are not spread, and the reason why that does no harm. An empty one is refused.
    #[must_use]
    pub fn unjittered(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.jitter = Jitter::None;
        self.reason = Some(reason.into());
        self
    }

    /// The first unjittered wait.
    #[must_use]
    pub const fn get_initial(&self) -> Duration {
        self.initial
    }

    /// Whether waits grow by the same step each time, and not by a multiplier.
    #[must_use]
    pub const fn is_linear(&self) -> bool {
        self.linear
    }

    /// The multiplier in force. Without a meaning where growth is linear.
    #[must_use]
    pub fn get_multiplier(&self) -> f64 {
        self.multiplier.unwrap_or(match self.jitter {
            Jitter::Decorrelated => f64::from(DECORRELATED_MULTIPLIER),
            _ => DEFAULT_MULTIPLIER,
        })
    }

    /// The longest wait, if one was stated.
    #[must_use]
    pub const fn get_max(&self) -> Option<Duration> {
        self.max
    }

    /// The shortest wait.
    #[must_use]
    pub const fn get_floor(&self) -> Duration {
        self.floor
    }

    /// How waits are spread.
    #[must_use]
    pub const fn get_jitter(&self) -> Jitter {
        self.jitter
    }

    /// Why waits are not spread, if a reason was given.
    #[must_use]
    pub fn get_reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The wait before retry number `retry` (the first is 0) for one roll of fair dice over all of
    /// `u64`: 0 gives the shortest, `u64::MAX` the longest.
    ///
    /// `previous` is what this function gave for the retry before, not a longer wait that a server
    /// asked for. Only decorrelated jitter looks at it.
    ///
    /// Meant for simulations and for tests; a retry layer rolls by itself.
    #[must_use]
    pub fn wait_at(&self, retry: u32, previous: Option<Duration>, roll: u64) -> Duration {
        let (low, high) = match self.jitter {
            Jitter::Full => (self.floor, self.growth(retry)),
            Jitter::Equal => (self.growth(retry) / 2, self.growth(retry)),
            Jitter::Around { percent } => jitter::around(self.growth(retry), percent),
            Jitter::Decorrelated => {
                let previous = previous.unwrap_or(self.initial);
                (self.initial.max(self.floor), previous.saturating_mul(DECORRELATED_MULTIPLIER))
            }
            Jitter::None => (self.growth(retry), self.growth(retry)),
        };
        let low = low.max(self.floor);
        self.bounded(between(low, high, roll))
    }

    /// The longest that [`wait_at`](Self::wait_at) can be before retry number `retry`.
    #[must_use]
    pub fn longest(&self, retry: u32) -> Duration {
        match self.jitter {
            Jitter::Decorrelated => {
                let start = self.initial.max(self.floor);
                let growth = f64::from(DECORRELATED_MULTIPLIER).powf(f64::from(retry) + 1.0);
                self.bounded(saturating_mul_f64(start, growth))
            }
            _ => self.wait_at(retry, None, u64::MAX),
        }
    }

    /// The shortest that [`wait_at`](Self::wait_at) can be before retry number `retry`.
    #[must_use]
    pub fn shortest(&self, retry: u32) -> Duration {
        self.wait_at(retry, None, 0)
    }

    /// The wait where the server asked for one too: the longer of the two, and never less than
    /// `asked`.
    ///
    /// All clients may have been told the same second, so unless the backoff is unjittered, up to a
    /// fifth is added to what was asked, by `roll`. Whether `asked` is too long for a policy or a
    /// deadline is to be decided before, on `asked` alone.
    #[must_use]
    pub fn heed(&self, own: Duration, asked: Duration, roll: u64) -> Duration {
        if self.jitter == Jitter::None {
            return own.max(asked);
        }
        own.max(between(asked, asked.saturating_add(asked / 5), roll))
    }

    /// [`wait_at`](Self::wait_at) with one roll of `rng`.
    pub(crate) fn wait(&self, retry: u32, previous: Option<Duration>, rng: &mut (impl Rng + ?Sized)) -> Duration {
        self.wait_at(retry, previous, rng.next_u64())
    }

    /// `initial * multiplier^retry`, or `initial * (retry + 1)`; at most what jitter leaves of `max`.
    fn growth(&self, retry: u32) -> Duration {
        let times = match self.linear {
            true => f64::from(retry) + 1.0,
            false => self.get_multiplier().powf(f64::from(retry)), // `powi` would need an `i32`
        };
        let most = match self.jitter {
            Jitter::Around { percent } => jitter::centre_below(self.cap(), percent),
            _ => self.cap(),
        };
        saturating_mul_f64(self.initial, times).min(most)
    }

    fn cap(&self) -> Duration {
        self.max.unwrap_or(Duration::MAX)
    }

    /// Not `clamp`, which panics where the floor is above the cap.
    fn bounded(&self, wait: Duration) -> Duration {
        wait.min(self.cap()).max(self.floor)
    }
}

/// Infinity, NaN and all else that a `Duration` cannot hold become the longest one.
fn saturating_mul_f64(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// The point of `low..=high` at `roll` out of `u64::MAX`; `low` where the range is empty.
///
/// One multiplication, not the sampler of `rand`: that one may roll again without end for a
/// generator that always gives the same, and may change what a seed gives.
fn between(low: Duration, high: Duration, roll: u64) -> Duration {
    // A span is cut at the 584 years that fit, far beyond any `max` that a policy may have.
    let span = u64::try_from(high.saturating_sub(low).as_nanos()).unwrap_or(u64::MAX);
    let offset = (u128::from(roll) * (u128::from(span) + 1)) >> u64::BITS;
    let offset = u64::try_from(offset).unwrap_or(span);
    low.saturating_add(Duration::from_nanos(offset))
}

mod jitter;
mod rules;
#[cfg(test)]
mod tests;
