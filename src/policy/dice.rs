//! Where one wait's randomness comes from.

use std::convert::Infallible;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng, TryRng};

/// The dice of one wait: the thread's own generator, or a sequence that a seed fixes.
///
/// Waits share no lock. Under a seed they are numbered as they are decided: one call after the other, the same seed gives
/// the same waits; calls at the same time take numbers in whatever order they come. Not for secrets.
#[derive(Clone, Debug)]
pub(crate) enum Dice {
    /// The generator of whichever thread rolls: it is looked up at each roll, since a call may move
    /// between threads and the generator may not.
    Thread,
    /// A named generator, not `SmallRng`: a seed written into a test must give the same waits on
    /// every platform and after every update.
    Seeded(Xoshiro256PlusPlus),
}

impl Dice {
    /// The dice of the wait number `wait` under a policy that has a seed, or has none.
    ///
    /// The same seed and number give the same rolls; another number gives unrelated ones.
    pub(crate) fn of_wait(seed: Option<u64>, wait: u64) -> Self {
        let Some(seed) = seed else {
            return Self::Thread;
        };
        // The seed is stirred before the number is added: `seed + wait` itself would make wait 1 of
        // seed 7 the same as wait 0 of seed 8.
        let start = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
        Self::Seeded(Xoshiro256PlusPlus::seed_from_u64(start.wrapping_add(wait)))
    }
}

impl TryRng for Dice {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        match self {
            Self::Thread => rand::rng().try_next_u32(),
            Self::Seeded(rng) => rng.try_next_u32(),
        }
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        match self {
            Self::Thread => rand::rng().try_next_u64(),
            Self::Seeded(rng) => rng.try_next_u64(),
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        match self {
            Self::Thread => rand::rng().try_fill_bytes(bytes),
            Self::Seeded(rng) => rng.try_fill_bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
