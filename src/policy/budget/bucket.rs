//! The bucket: tokens in thousandths, in one word.
//!
//! One word means one compare-and-swap for any step, and no state between two steps that another thread could see.
//! Time is not stored: the word is the level without what time has brought, and `brought` is a function of the clock alone
//! (rate x time since the start, in thousandths, cut down), so that fractions carry over and an idle week costs what an idle
//! millisecond does. Without a refill `brought` is 0, the clock is not read, and the word is the level.
//!
//! The level itself stays below 2^42. It may be a little below zero, as seen by a thread whose clock reading is older than
//! another's write.

use tokio::time::Instant;

use super::{
    Load,
    settings::BudgetSetting,
    sync::{AtomicU64, Line, Ordering},
};

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
            refill: (setting.refill_per_second > 0.0)
                .then(|| Refill { per_second: thousandths(setting.refill_per_second) as u64, since: now() }),
            word: Line(AtomicU64::new(word_of(thousandths(setting.initial), 0))),
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
        self.read(self.word.0.load(Ordering::Relaxed), brought).max(0)
    }

    pub(super) fn is_open(&self, brought: u64) -> bool {
        self.allows(self.read(self.word.0.load(Ordering::Relaxed), brought), self.cost)
    }

    pub(super) fn first_try(&self, succeeded: bool, brought: u64) {
        self.add(if succeeded { self.first_success } else { self.first_failure }, brought);
    }

    /// Takes the cost of a retry and says how much that was.
    pub(super) fn charge(&self, load: Load, brought: u64) -> Option<i64> {
        let cost = match load {
            Load::Retry => self.cost,
            Load::Throttled => self.throttled_cost,
        };
        let mut word = self.word.0.load(Ordering::Relaxed);
        loop {
            let level = self.read(word, brought);
            if !self.allows(level, cost) {
                return None;
            }
            if cost == 0 {
                return Some(0);
            }
            match self.swap(word, word_of(level - cost, brought)) {
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

    fn allows(&self, level: i64, cost: i64) -> bool {
        level >= cost && level > self.open_above
    }

    fn read(&self, word: u64, brought: u64) -> i64 {
        (word.wrapping_add(brought) as i64).min(self.capacity)
    }

    /// Writes nothing when nothing changes: a full bucket while all goes well costs one load.
    fn add(&self, amount: i64, brought: u64) {
        if amount == 0 {
            return;
        }
        let mut word = self.word.0.load(Ordering::Relaxed);
        loop {
            let next = word_of(self.moved(self.read(word, brought), amount), brought);
            if next == word {
                return;
            }
            match self.swap(word, next) {
                Ok(()) => return,
                Err(newer) => word = newer,
            }
        }
    }

    /// The level after a gain or a loss: within zero and the capacity, except that what an older clock reading sees
    /// below zero stays there, or the difference would be given twice.
    fn moved(&self, level: i64, amount: i64) -> i64 {
        (level + amount).clamp(level.min(0), self.capacity)
    }

    /// Relaxed, since the word stands for itself: no other memory is published by it.
    fn swap(&self, old: u64, new: u64) -> Result<(), u64> {
        self.word.0.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }
}

/// Wrapping on purpose: `read` adds `brought` back.
fn word_of(level: i64, brought: u64) -> u64 {
    (level as u64).wrapping_sub(brought)
}
