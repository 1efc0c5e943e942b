//! The sliding window: retries as a share of the first tries of the last seconds (Finagle's rule).
//!
//! A bucket cannot say this: there, what a busy minute has earned stays until it is spent. Here a first try counts for
//! `ttl` and then no more, and so does a retry. The window has ten slices; the oldest is forgotten as a whole, so that
//! a first try counts for nine to ten tenths of `ttl`.
//!
//! Counts are whole (first tries, retries, refunds); the share enters when a retry is decided, in billionths, so that
//! nothing is rounded on the way.
//!
//! Without a lock: each slot holds a slice's number and its count in one word, and whoever comes first in a new slice
//! overwrites what is ten slices old. First tries and refunds only ever allow more, so reading them one by one errs on
//! the low side. Retries must be exact: those of the newest slice are in `gate`, and a retry is granted by a swap of
//! that word alone. Its value never returns (slice and count only grow), so a swap that succeeds proves that no retry
//! was granted since the sum was taken. Before the gate moves to a new slice, its old value is copied to `granted`, by
//! a maximum, which is the same whoever does it and however often.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    settings::BudgetSetting,
    sync::{AtomicU64, Line, Ordering},
};

const SLICES: u64 = 10;
/// One retry, in billionths.
const ONE: i128 = 1_000_000_000;

pub(super) struct Window {
    /// Billionths of a retry that a first try brings.
    per_first_try: i128,
    /// Billionths of a retry that are there without one.
    reserve: i128,
    slice: Duration,
    since: Instant,
    gate: Line,
    first_tries: Slots,
    granted: Slots,
    refunds: Slots,
}

impl Window {
    pub(super) fn new(setting: &BudgetSetting, ttl: Duration, now: Instant) -> Self {
        let reserve_per_second = (setting.reserve_per_second * 1000.0).round() as i128;
        Self {
            // Cut down, never up, beyond what the binary fraction itself is off by.
            per_first_try: (setting.per_first_try * ONE as f64 + 1e-3).floor() as i128,
            reserve: reserve_per_second * ttl.as_nanos() as i128 / 1000,
            slice: ttl / SLICES as u32,
            since: now,
            gate: Line(AtomicU64::new(0)),
            first_tries: Slots::default(),
            granted: Slots::default(),
            refunds: Slots::default(),
        }
    }

    /// The number of the slice that `now` is in. 32 bits last 13 years of the shortest window; then it stands still,
    /// and the budget is what is left in it.
    pub(super) fn slice(&self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.since).as_nanos();
        u32::try_from(passed / self.slice.as_nanos().max(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn level(&self, slice: u32) -> f64 {
        let (_, balance) = self.balance(self.gate.0.load(Ordering::Acquire), slice);
        balance.max(0) as f64 / ONE as f64
    }

    pub(super) fn is_open(&self, slice: u32) -> bool {
        self.balance(self.gate.0.load(Ordering::Acquire), slice).1 >= ONE
    }

    pub(super) fn first_try(&self, slice: u32) {
        self.first_tries.add(slice);
    }

    /// Takes one retry and says in which slice, for a refund.
    pub(super) fn charge(&self, slice: u32) -> Option<u32> {
        let mut gate = self.gate.0.load(Ordering::Acquire);
        loop {
            let (slice, balance) = self.balance(gate, slice);
            if balance < ONE {
                return None;
            }
            let (gate_slice, gate_count) = unpack(gate);
            let next = if gate_slice == slice {
                pack(slice, gate_count.checked_add(1)?)
            } else {
                self.granted.keep(gate);
                pack(slice, 1)
            };
            match self.gate.0.compare_exchange_weak(gate, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(slice),
                Err(newer) => gate = newer,
            }
        }
    }

    /// Gives a retry back in the slice that it was taken in: both are forgotten together.
    pub(super) fn refund(&self, slice: u32) {
        self.refunds.add(slice);
    }

    /// The newest slice known, and the billionths of retries that are left in it.
    fn balance(&self, gate: u64, slice: u32) -> (u32, i128) {
        let (gate_slice, gate_count) = unpack(gate);
        let newest = slice.max(gate_slice);
        let in_window = |slice: u32| u64::from(newest - slice.min(newest)) < SLICES && slice <= newest;
        let mut granted = self.granted.sum(|slice| in_window(slice) && slice < gate_slice);
        if in_window(gate_slice) {
            granted += i128::from(gate_count);
        }
        // A refund may be seen whose retry is newer than `gate`: the swap then fails.
        let refunded = self.refunds.sum(in_window);
        let earned = self.first_tries.sum(in_window) * self.per_first_try;
        (newest, self.reserve + earned + (refunded - granted) * ONE)
    }
}

/// One count a slice, ten slices deep.
struct Slots([AtomicU64; SLICES as usize]);

impl Default for Slots {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Slots {
    fn slot(&self, slice: u32) -> Option<&AtomicU64> {
        self.0.get((u64::from(slice) % SLICES) as usize)
    }

    fn add(&self, slice: u32) {
        let Some(slot) = self.slot(slice) else { return };
        let mut word = slot.load(Ordering::Relaxed);
        loop {
            let (held, count) = unpack(word);
            // A thread that slept through a whole window brings nothing: its slice is forgotten already.
            if held > slice {
                return;
            }
            let count = if held == slice { count.saturating_add(1) } else { 1 };
            match slot.compare_exchange_weak(word, pack(slice, count), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => word = newer,
            }
        }
    }

    /// Keeps the highest count of a slice.
    fn keep(&self, word: u64) {
        if let Some(slot) = self.slot(unpack(word).0) {
            slot.fetch_max(word, Ordering::Relaxed);
        }
    }

    fn sum(&self, counts: impl Fn(u32) -> bool) -> i128 {
        let words = self.0.iter().map(|slot| unpack(slot.load(Ordering::Relaxed)));
        words.filter(|&(slice, _)| counts(slice)).map(|(_, count)| i128::from(count)).sum()
    }
}

fn pack(slice: u32, count: u32) -> u64 {
    u64::from(slice) << 32 | u64::from(count)
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}
