//! The script of the day: what the server does to a request, by the time of day.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

/// What an attempt is given.
pub const ATTEMPT: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Healthy,
    Errors,
    Resets,
    Throttled,
    Slow,
    Outage,
    Recovery,
}

pub const PHASES: [Phase; 7] = {
    use Phase::*;
    [Healthy, Errors, Resets, Throttled, Slow, Outage, Recovery]
};

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Healthy => "healthy",
            Phase::Errors => "20 % 503",
            Phase::Resets => "resets",
            Phase::Throttled => "429",
            Phase::Slow => "slow",
            Phase::Outage => "outage",
            Phase::Recovery => "recovery",
        }
    }

    /// The phase at this time of a day of this length.
    pub fn at(time: Duration, day: Duration) -> Self {
        PHASES[index(time, day)]
    }
}

/// The same as an index into [`PHASES`].
pub fn index(time: Duration, day: Duration) -> usize {
    let index = (time.as_secs_f64() / day.as_secs_f64() * PHASES.len() as f64) as usize;
    index.min(PHASES.len() - 1)
}

/// How much of its phase has passed at this time, from 0 to 1.
pub fn share(time: Duration, day: Duration) -> f64 {
    (time.as_secs_f64() / day.as_secs_f64() * PHASES.len() as f64).fract()
}

/// What the server does with one request.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Does the work and says so, after this time.
    Answer(Duration),
    /// Answers 503; every second time it has done the work.
    Fail { worked: bool },
    /// Does the work and resets the connection before it can say so.
    WorkAndReset,
    /// Refuses before any work, and says when to come back.
    Throttle,
    /// Takes no connection and resets those it has.
    Gone,
}

/// The same for all three clients: it depends on the call and on how often it has come, not on who sends it.
/// `share`: how much of the phase has passed.
pub fn fate(phase: Phase, share: f64, seed: u64, call: u64, arrival: u64) -> Fate {
    let stir = seed ^ call.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ arrival.wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(stir);
    let answer = Fate::Answer(Duration::from_millis(dice.random_range(3..15)));
    match phase {
        Phase::Healthy | Phase::Recovery => answer,
        Phase::Errors if dice.random_bool(0.2) => Fate::Fail { worked: dice.random_bool(0.5) },
        Phase::Resets if dice.random_bool(0.15) => Fate::WorkAndReset,
        // The quota is used up for a while, and then it is back.
        Phase::Throttled if share < 0.5 && dice.random_bool(0.15) => Fate::Throttle,
        // It does answer, but nobody waits that long.
        Phase::Slow if dice.random_bool(0.1) => Fate::Answer(ATTEMPT * 2),
        Phase::Outage => Fate::Gone,
        _ => answer,
    }
}
