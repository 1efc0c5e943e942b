//! The bucket: tokens in thousandths and the moving share of failed first tries, in one word.
//!
//! ```text
//! 63                            18 17                    0
//! | base: 46 bits, wrapping       | share: 18 bits       |       level = base + what time has brought
//! ```
//!
//! One word means one compare-and-swap for any step, and no state between two steps that another thread could see.
//! Time is not stored: `brought` is a function of the clock alone (rate x time since the start, in thousandths, cut
//! down), so that fractions carry over and an idle week costs what an idle millisecond does. Without a refill `brought`
//! is 0, the clock is not read, and `base` is the level.
//!
//! `base + brought` is taken modulo 2^46. The level itself stays below 2^42; what lies in the last 2^40 is a little
//! below zero, as seen by a thread whose clock reading is older than another's write. At the highest refill (1000/s)
//! the sum wraps after two years without one call, and may then read as a bucket that is not quite full.

use tokio::time::Instant;

use super::{
    Load,
    settings::BudgetSetting,
    sync::{AtomicU64, Line, Ordering},
};

const SHARE_BITS: u32 = 18;
/// A share of 1.
const WHOLE: u64 = (1 << SHARE_BITS) - 1;
const BASE_BITS: u32 = 64 - SHARE_BITS;
const BASE_MASK: u64 = (1 << BASE_BITS) - 1;
/// How far below zero an older clock reading may see the level.
const SKEW: u64 = 1 << 40;
/// Fixed point of the share's weight.
const WEIGHT_BITS: u32 = 16;

pub(super) struct Bucket {
    capacity: i64,
    cost: i64,
    throttled_cost: i64,
    /// What a first try adds when it succeeds, and when it fails (then it may be negative).
    first_success: i64,
    first_failure: i64,
    retry_success: i64,
    retry_failure: i64,
    refund_on_success: bool,
    /// Open while the level is above this; -1 when the level does not matter.
    open_above: i64,
    /// Open while the share is at most this.
    open_share: u64,
    /// 0: no share is kept.
    weight: u64,
    refill: Option<Refill>,
    word: Line,
}

struct Refill {
    per_second: u64,
    since: Instant,
}

/// Tokens to thousandths. The setting was checked, so that this is exact; were it not, it would saturate.
fn thousandths(tokens: f64) -> i64 {
    (tokens * 1000.0).round() as i64
}

impl Bucket {
    /// `now` is called only for a setting that refills with time.
    pub(super) fn new(setting: &BudgetSetting, now: impl FnOnce() -> Instant) -> Self {
        let capacity = thousandths(setting.capacity);
        let per_try = thousandths(setting.per_first_try);
        let loss = thousandths(setting.per_failure);
        let (open_share, weight) = match setting.close_above {
            Some(close) => (
                (close.share * WHOLE as f64).round() as u64,
                (close.weight * f64::from(1 << WEIGHT_BITS)).round() as u64,
            ),
            None => (WHOLE, 0),
        };
        Self {
            capacity,
            cost: thousandths(setting.cost),
            throttled_cost: thousandths(setting.throttled_cost),
            first_success: per_try + thousandths(setting.per_first_success),
            first_failure: per_try - loss,
            retry_success: thousandths(setting.per_retry_success),
            retry_failure: -loss,
            refund_on_success: setting.refund_on_success,
            open_above: setting.open_above.map_or(-1, |share| (capacity as f64 * share + 1e-6).floor() as i64),
            open_share,
            weight,
            refill: (setting.refill_per_second > 0.0)
                .then(|| Refill { per_second: thousandths(setting.refill_per_second) as u64, since: now() }),
            word: Line(AtomicU64::new(pack(thousandths(setting.initial), 0, 0))),
        }
    }

    /// What time has brought by now, in thousandths; the clock is read only if time brings anything.
    pub(super) fn brought(&self, now: impl FnOnce() -> Instant) -> u64 {
        let Some(refill) = &self.refill else { return 0 };
        let passed = now().saturating_duration_since(refill.since);
        let parts = u64::from(passed.subsec_nanos()) * refill.per_second / 1_000_000_000;
        passed.as_secs().wrapping_mul(refill.per_second).wrapping_add(parts)
    }

    pub(super) fn level(&self, brought: u64) -> i64 {
        self.read(self.word.0.load(Ordering::Relaxed), brought).0.max(0)
    }

    pub(super) fn is_open(&self, brought: u64) -> bool {
        let (level, share) = self.read(self.word.0.load(Ordering::Relaxed), brought);
        self.allows(level, share, self.cost)
    }

    /// Whether the provider is beyond what a retry may add, even one that costs nothing: more first tries fail than the
    /// setting allows, whatever the level. A setting without such a share gives no other sign than to be spent.
    pub(super) fn is_closed(&self, brought: u64) -> bool {
        let (level, share) = self.read(self.word.0.load(Ordering::Relaxed), brought);
        match self.open_share < WHOLE {
            true => share > self.open_share,
            false => !self.allows(level, share, self.cost),
        }
    }

    pub(super) fn first_try(&self, succeeded: bool, brought: u64) {
        let amount = if succeeded { self.first_success } else { self.first_failure };
        self.change(brought, |level, share| (self.moved(level, amount), self.share_after(share, succeeded)));
    }

    /// Takes the cost of a retry and says how much that was.
    pub(super) fn charge(&self, load: Load, brought: u64) -> Option<i64> {
        let cost = match load {
            Load::Retry => self.cost,
            Load::Throttled => self.throttled_cost,
        };
        let mut word = self.word.0.load(Ordering::Relaxed);
        loop {
            let (level, share) = self.read(word, brought);
            if !self.allows(level, share, cost) {
                return None;
            }
            if cost == 0 {
                return Some(0);
            }
            match self.swap(word, pack(level - cost, share, brought)) {
                Ok(()) => return Some(cost),
                Err(newer) => word = newer,
            }
        }
    }

    pub(super) fn refund(&self, cost: i64, brought: u64) {
        self.add(cost, brought);
    }

    pub(super) fn retried(&self, succeeded: bool, cost: i64, brought: u64) {
        self.add(
            match succeeded {
                true if self.refund_on_success => self.retry_success + cost,
                true => self.retry_success,
                false => self.retry_failure,
            },
            brought,
        );
    }

    fn add(&self, amount: i64, brought: u64) {
        if amount != 0 {
            self.change(brought, |level, share| (self.moved(level, amount), share));
        }
    }

    fn allows(&self, level: i64, share: u64, cost: i64) -> bool {
        level >= cost && level > self.open_above && share <= self.open_share
    }

    /// The level after a gain or a loss: within zero and the capacity, except that what an older clock reading sees
    /// below zero stays there, or the difference would be given twice.
    fn moved(&self, level: i64, amount: i64) -> i64 {
        (level + amount).clamp(level.min(0), self.capacity)
    }

    /// The moving share after one more first try. Each step is rounded **towards its target**, so that it is never
    /// zero before the target is reached: rounding to nearest would stall `1 / (2 x weight)` units short of it. The
    /// price is a share that is off by at most `1 / weight` units of 2^-18: 0.00008 at 0.05.
    fn share_after(&self, share: u64, succeeded: bool) -> u64 {
        let step = |distance: u64| (distance * self.weight).div_ceil(1 << WEIGHT_BITS);
        if succeeded { share - step(share) } else { share + step(WHOLE - share) }
    }

    fn read(&self, word: u64, brought: u64) -> (i64, u64) {
        let sum = (word >> SHARE_BITS).wrapping_add(brought) & BASE_MASK;
        let level = if sum > BASE_MASK - SKEW { -((BASE_MASK - sum) as i64) - 1 } else { sum as i64 };
        (level.min(self.capacity), word & WHOLE)
    }

    /// Writes nothing when nothing changes: a full bucket while all goes well costs one load.
    fn change(&self, brought: u64, step: impl Fn(i64, u64) -> (i64, u64)) {
        let mut word = self.word.0.load(Ordering::Relaxed);
        loop {
            let (level, share) = self.read(word, brought);
            let (level, share) = step(level, share);
            let next = pack(level, share, brought);
            if next == word {
                return;
            }
            match self.swap(word, next) {
                Ok(()) => return,
                Err(newer) => word = newer,
            }
        }
    }

    /// Relaxed, since the word stands for itself: no other memory is published by it.
    fn swap(&self, old: u64, new: u64) -> Result<(), u64> {
        self.word.0.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    #[cfg(all(test, not(redial_loom)))]
    pub(super) fn share(&self) -> f64 {
        (self.word.0.load(Ordering::Relaxed) & WHOLE) as f64 / WHOLE as f64
    }
}

fn pack(level: i64, share: u64, brought: u64) -> u64 {
    // Wrapping on purpose: `read` adds `brought` back modulo 2^46.
    ((level as u64).wrapping_sub(brought) & BASE_MASK) << SHARE_BITS | share
}
