//! What a backoff must keep to before a policy may hold it.

use std::{ops::RangeInclusive, time::Duration};

use super::{Backoff, DECORRELATED_MULTIPLIER, Jitter, LONGEST, jitter};

/// What timers can tell apart: less is none.
const STEP: Duration = Duration::from_millis(1);

/// Percent: what spreads those who failed together, and no further than to zero.
const AROUND: RangeInclusive<u8> = 10..=100;

impl Backoff {
    /// Every rule that these values break: its number, which value, and how to mend it.
    pub(crate) fn broken(&self) -> Vec<(&'static str, String)> {
        let mut broken = Vec::new();
        self.broken_floor(&mut broken);
        self.broken_jitter(&mut broken);
        self.broken_growth(&mut broken);
        broken
    }

    /// S9: no immediate repeat.
    fn broken_floor(&self, broken: &mut Vec<(&'static str, String)>) {
        let Self { initial, floor, .. } = self;
        if floor.is_zero() {
            broken.push(("S9", "backoff `floor` is zero, so jitter could repeat at once: state one above zero".into()));
        }
        if !floor.is_zero() && *floor < STEP {
            broken.push(("S9", format!("backoff `floor` ({floor:?}) is less than timers can tell: at least 1 ms")));
        }
        if initial.is_zero() {
            broken.push(("S9", "backoff `initial` is zero and would never grow: state a first wait above zero".into()));
        }
        // Under a `max` that is lower still, the message about that one says it all.
        let under_max = self.max.is_none_or(|max| *floor <= max);
        if !initial.is_zero() && floor > initial && under_max {
            broken.push((
                "S9",
                format!(
                    "backoff `initial` ({initial:?}) is below `floor` ({floor:?}) and would never \
                     be used: raise `initial` or lower `floor`"
                ),
            ));
        }
    }

    /// S10: waits are spread, or it is said why not.
    fn broken_jitter(&self, broken: &mut Vec<(&'static str, String)>) {
        if self.jitter == Jitter::None {
            if self.reason.as_ref().is_none_or(|r| r.trim().is_empty()) {
                broken.push((
                    "S10",
                    "backoff has no jitter and no reason for that: use `unjittered(reason)`, or a \
                     jitter"
                        .into(),
                ));
            }
            return;
        }
        if let Jitter::Around { percent } = self.jitter {
            if !AROUND.contains(&percent) {
                broken.push(("S10", format!("backoff has jitter of {percent} percent around: state 10 to 100")));
                return;
            }
        }
        // With `floor` above `initial` the values are refused already, and for that.
        let sound = !self.initial.is_zero() && self.floor <= self.initial;
        if sound && self.shortest(0).saturating_add(STEP) > self.longest(0) {
            broken.push((
                "S10",
                format!(
                    "backoff leaves no room for jitter before the first retry, from {:?} to {:?}: \
                     lower `floor` ({:?}), or use `unjittered(reason)`",
                    self.shortest(0),
                    self.longest(0),
                    self.floor
                ),
            ));
        }
    }

    /// S11: growth is stated, and bounded.
    fn broken_growth(&self, broken: &mut Vec<(&'static str, String)>) {
        let multiplier = self.get_multiplier();
        if self.linear && self.jitter == Jitter::Decorrelated {
            broken.push(("S11", "backoff grows linearly, which decorrelated jitter would ignore: choose one".into()));
        } else if self.linear {
            if let Some(stated) = self.multiplier {
                let text = format!(
                    "backoff `multiplier` is {stated}, which linear growth would ignore: leave it out, or begin with \
                     `exponential`"
                );
                broken.push(("S11", text));
            }
        } else if !multiplier.is_finite() || multiplier < 1.0 {
            broken.push(("S11", format!("backoff `multiplier` is {multiplier}: state a finite one of 1.0 or more")));
        } else if self.jitter == Jitter::Decorrelated && multiplier != f64::from(DECORRELATED_MULTIPLIER) {
            broken.push((
                "S11",
                format!(
                    "backoff `multiplier` is {multiplier}, which decorrelated jitter would ignore: \
                     leave it out, or choose another jitter"
                ),
            ));
        }
        let Some(max) = self.max else {
            broken.push(("S11", "backoff has no `max`: state the longest wait, at most a day".into()));
            return;
        };
        if max > LONGEST {
            broken
                .push(("S11", format!("backoff `max` ({max:?}) is above a day: what takes so long is work for a job")));
        }
        let above = |value: Duration, name: &str| {
            let text = format!(
                "backoff `{name}` ({value:?}) is above `max` ({max:?}): raise `max` or lower \
                 `{name}`"
            );
            (value > max).then_some(("S11", text))
        };
        let first = match self.jitter {
            Jitter::Around { percent } => jitter::around(self.initial, percent).1,
            _ => self.initial,
        };
        match above(self.initial, "initial") {
            None if first > max => broken.push((
                "S11",
                format!(
                    "backoff `initial` ({:?}) with its jitter is up to {first:?}, above `max` ({max:?}): raise `max` \
                     or lower `initial`",
                    self.initial
                ),
            )),
            alone => broken.extend(alone),
        }
        broken.extend(above(self.floor, "floor"));
    }
}
