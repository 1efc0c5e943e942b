use std::convert::Infallible;
use std::time::Duration;

use proptest::prelude::*;
use rand::TryRng;

use super::{Backoff, Jitter, LONGEST};
use crate::policy::dice::Dice;

mod cases;

/// Always rolls the same.
struct Loaded(u64);

impl TryRng for Loaded {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0 >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(self.0 as u8);
        Ok(())
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const AROUND: Jitter = Jitter::Around { percent: 20 };
const KINDS: [Jitter; 5] = [Jitter::Full, Jitter::Equal, AROUND, Jitter::Decorrelated, Jitter::None];

fn tenth_to_one_second() -> Backoff {
    Backoff::exponential(ms(100)).max(secs(1)).floor(ms(20))
}

fn rules(backoff: &Backoff) -> Vec<&'static str> {
    backoff.broken().into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn the_default_is_as_documented_and_sound() {
    let backoff = Backoff::default();
    assert_eq!(backoff.get_initial(), ms(200));
    assert_eq!(backoff.get_multiplier(), 2.0);
    assert_eq!(backoff.get_max(), Some(secs(10)));
    assert_eq!(backoff.get_floor(), ms(50));
    assert_eq!(backoff.get_jitter(), Jitter::Full);
    assert_eq!(backoff.get_reason(), None);
    assert_eq!(backoff.broken(), []);
}

#[test]
fn full_jitter_is_uniform_above_the_floor() {
    let backoff = tenth_to_one_second();
    let mut dice = Dice::of_wait(Some(1), 0);
    let mut quarters = [0; 4];
    for _ in 0..4000 {
        let wait = backoff.wait(2, None, &mut dice); // from 20 to 400 ms
        let above = (wait - ms(20)).as_nanos() * 4 / ms(380).as_nanos();
        quarters[usize::try_from(above.min(3)).unwrap()] += 1;
    }
    assert!(quarters.iter().all(|count| (850..1150).contains(count)), "{quarters:?}");
}

#[test]
fn equal_jitter_keeps_one_half() {
    let backoff = tenth_to_one_second().jitter(Jitter::Equal);
    assert_eq!(backoff.wait(1, None, &mut Loaded(0)), ms(100));
    assert_eq!(backoff.wait(1, None, &mut Loaded(u64::MAX)), ms(200));
    assert_eq!((backoff.shortest(9), backoff.longest(9)), (ms(500), secs(1)));
    // Spread above a floor that is over the half, not cut at it.
    let backoff = backoff.floor(ms(150));
    let half = backoff.wait(1, None, &mut Loaded(u64::MAX / 2));
    assert!(half.abs_diff(ms(175)) < ms(1), "{half:?}");
}

#[test]
fn jitter_around_never_passes_the_maximum_and_spreads_there_too() {
    let backoff = tenth_to_one_second().jitter(AROUND);
    assert_eq!((backoff.shortest(0), backoff.longest(0)), (ms(80), ms(120)));
    assert_eq!((backoff.shortest(2), backoff.longest(2)), (ms(320), ms(480)));
    let (low, high) = (backoff.shortest(9), backoff.longest(9));
    assert!(high <= secs(1) && secs(1) - high < ms(1), "{high:?}");
    assert!(low.abs_diff(high.mul_f64(2.0 / 3.0)) < ms(1), "{low:?} of {high:?}");
    // Spread above a floor that is within, not cut at it.
    let backoff = backoff.floor(ms(100));
    let half = backoff.wait(0, None, &mut Loaded(u64::MAX / 2));
    assert!(half.abs_diff(ms(110)) < ms(1), "{half:?}");
    // All of it, down to the floor.
    let backoff = tenth_to_one_second().jitter(Jitter::Around { percent: 100 });
    assert_eq!((backoff.shortest(0), backoff.longest(0)), (ms(20), ms(200)));
}

#[test]
fn linear_growth_adds_the_same_step_until_the_maximum() {
    let backoff = Backoff::linear(ms(100)).max(secs(1)).unjittered("to see growth alone");
    let waits: Vec<_> = (0..4).map(|retry| backoff.wait(retry, None, &mut Dice::Thread)).collect();
    assert_eq!(waits, [100, 200, 300, 400].map(ms));
    assert_eq!([9, 10, u32::MAX].map(|retry| backoff.longest(retry)), [secs(1); 3]);
    assert!(backoff.is_linear() && !Backoff::default().is_linear());
}

#[test]
fn decorrelated_jitter_grows_from_what_was_waited() {
    let backoff = tenth_to_one_second().jitter(Jitter::Decorrelated);
    let high = &mut Loaded(u64::MAX);
    assert_eq!(backoff.wait(0, None, high), ms(300));
    assert_eq!(backoff.wait(1, Some(ms(110)), high), ms(330));
    assert_eq!(backoff.wait(2, Some(ms(900)), high), secs(1));
    assert_eq!(backoff.wait(2, Some(ms(900)), &mut Loaded(0)), ms(100));
    // A previous wait that cannot be: the range is empty, not upside down.
    assert_eq!(backoff.wait(2, Some(Duration::ZERO), high), ms(100));
}

#[test]
fn fixed_keeps_its_reason() {
    let backoff = Backoff::fixed(secs(3), "one client, a lease of 3 s");
    assert_eq!(backoff.get_reason(), Some("one client, a lease of 3 s"));
    assert_eq!(backoff.broken(), []);
    for retry in [0, 1, 5, u32::MAX] {
        assert_eq!(backoff.wait(retry, None, &mut Dice::Thread), secs(3));
    }
}

#[test]
fn each_broken_rule_is_named() {
    let sound = tenth_to_one_second;
    let cases = [
        (sound().floor(Duration::ZERO), "S9", "floor"),
        (sound().floor(ms(200)), "S9", "initial"),
        (sound().floor(secs(2)), "S11", "floor"),
        (Backoff::exponential(Duration::ZERO).max(secs(1)), "S9", "initial"),
        (sound().jitter(Jitter::None), "S10", "reason"),
        (sound().unjittered(" \t"), "S10", "reason"),
        (Backoff::fixed(secs(1), ""), "S10", "reason"),
        (sound().floor(ms(100)), "S10", "no room"),
        (sound().floor(ms(100)).jitter(Jitter::Equal), "S10", "no room"),
        (Backoff::fixed(secs(1), "why").jitter(Jitter::Full), "S10", "no room"),
        (sound().multiplier(f64::NAN), "S11", "multiplier"),
        (sound().multiplier(f64::INFINITY), "S11", "multiplier"),
        (sound().multiplier(0.99), "S11", "multiplier"),
        (sound().jitter(Jitter::Decorrelated).multiplier(2.0), "S11", "ignore"),
        (Backoff::exponential(secs(1)), "S11", "`max`"),
        (Backoff::linear(ms(100)).max(secs(1)).multiplier(2.0), "S11", "ignore"),
        (Backoff::linear(ms(100)).max(secs(1)).jitter(Jitter::Decorrelated), "S11", "ignore"),
        (Backoff::linear(ms(100)), "S11", "`max`"),
        (sound().jitter(Jitter::Around { percent: 9 }), "S10", "10 to 100"),
        (sound().jitter(Jitter::Around { percent: 101 }), "S10", "10 to 100"),
        (sound().jitter(AROUND).max(ms(119)), "S11", "with its jitter"),
        (sound().jitter(AROUND).max(ms(99)), "S11", "is above"),
        (sound().max(LONGEST + ms(1)), "S11", "a day"),
        (sound().max(ms(99)), "S11", "initial"),
    ];
    for (backoff, rule, word) in cases {
        let broken = backoff.broken();
        assert_eq!(rules(&backoff), [rule], "{backoff:?}: {broken:?}");
        assert!(broken[0].1.contains(word), "{broken:?}");
    }
}

#[test]
fn all_broken_rules_are_named_at_once() {
    let backoff = Backoff::exponential(Duration::ZERO).multiplier(f64::NAN).floor(Duration::ZERO).jitter(Jitter::None);
    assert_eq!(rules(&backoff), ["S9", "S9", "S10", "S11", "S11"]);
}

#[test]
fn what_is_sound_is_not_refused() {
    let sound = [
        tenth_to_one_second().max(LONGEST),
        tenth_to_one_second().multiplier(1.0),
        tenth_to_one_second().max(ms(100)),
        tenth_to_one_second().unjittered("one client"),
        tenth_to_one_second().jitter(Jitter::Equal),
        tenth_to_one_second().jitter(AROUND).floor(ms(100)).max(ms(120)),
        Backoff::linear(ms(100)).max(secs(1)),
        Backoff::linear(ms(100)).max(secs(1)).jitter(AROUND),
        tenth_to_one_second().jitter(Jitter::Decorrelated).floor(ms(100)),
        tenth_to_one_second().jitter(Jitter::Decorrelated).multiplier(3.0),
        Backoff::fixed(ms(1), "in process"),
    ];
    for backoff in sound {
        assert_eq!(backoff.broken(), [], "{backoff:?}");
    }
}

/// Every duration, with the ends of the range more often than by chance.
fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
        6 => (0..120_000_u64).prop_map(Duration::from_millis),
        2 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

fn any_retry() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..20_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

prop_compose! {
    fn any_backoff()(
        initial in any_duration(),
        max in proptest::option::of(any_duration()),
        floor in any_duration(),
        multiplier in prop_oneof![4 => 1.0..10.0, 1 => proptest::num::f64::ANY],
        kind in 0..KINDS.len(),
        percent in any::<u8>(),
        linear in any::<bool>(),
    ) -> Backoff {
        let jitter = match KINDS[kind] {
            Jitter::Around { .. } => Jitter::Around { percent },
            kind => kind,
        };
        let backoff = match linear {
            true => Backoff::linear(initial),
            false => Backoff::exponential(initial),
        };
        let backoff = backoff.floor(floor).multiplier(multiplier).jitter(jitter);
        match max {
            Some(max) => backoff.max(max),
            None => backoff,
        }
    }
}

prop_compose! {
    /// Whole values and a multiplier that a policy may hold.
    fn sound_backoff()(
        floor in 1..1_000_u64,
        above in 1..10_000_u64,
        room in 0..100_000_u64,
        multiplier in 1.0..10.0,
        kind in 0..KINDS.len(),
        linear in any::<bool>(),
    ) -> Backoff {
        // Jitter around less than 3 ms leaves no room that timers can tell.
        let (initial, floor) = (ms((floor + above).max(3)), ms(floor));
        let max = match KINDS[kind] {
            AROUND => initial * 6 / 5 + ms(room),
            _ => initial + ms(room),
        };
        let backoff = Backoff::exponential(initial).floor(floor).max(max);
        match KINDS[kind] {
            kind if linear && kind != Jitter::Decorrelated => {
                let backoff = Backoff::linear(initial).floor(floor).max(max).jitter(kind);
                if kind == Jitter::None { backoff.unjittered("for the test") } else { backoff }
            }
            Jitter::None => backoff.multiplier(multiplier).unjittered("for the test"),
            Jitter::Decorrelated => backoff.jitter(Jitter::Decorrelated),
            kind => backoff.multiplier(multiplier).jitter(kind),
        }
    }
}

proptest! {
    #[test]
    fn any_values_stay_within_floor_and_cap(
        backoff in any_backoff(),
        retry in any_retry(),
        previous in proptest::option::of(any_duration()),
        roll in any::<u64>(),
    ) {
        let wait = backoff.wait(retry, previous, &mut Loaded(roll));
        prop_assert!(wait >= backoff.get_floor());
        let cap = backoff.get_max().unwrap_or(Duration::MAX);
        prop_assert!(wait <= cap.max(backoff.get_floor()));
        let _ = (backoff.longest(retry), backoff.shortest(retry), backoff.broken());
    }

    #[test]
    fn sound_values_are_not_refused_and_bounds_hold_along_a_call(
        backoff in sound_backoff(),
        seed in any::<u64>(),
    ) {
        prop_assert_eq!(backoff.broken(), []);
        let mut dice = Dice::of_wait(Some(seed), 0);
        let mut previous = None;
        let mut bound = Duration::ZERO;
        for retry in 0..12 {
            let wait = backoff.wait(retry, previous, &mut dice);
            prop_assert!(backoff.shortest(retry) <= wait && wait <= backoff.longest(retry));
            prop_assert!(backoff.longest(retry) >= bound, "the bound shrank");
            bound = backoff.longest(retry);
            previous = Some(wait);
        }
        prop_assert!(Some(backoff.longest(u32::MAX)) <= backoff.get_max());
    }

    #[test]
    fn a_servers_wait_is_never_cut(
        backoff in any_backoff(),
        own in any_duration(),
        asked in any_duration(),
        roll in any::<u64>(),
    ) {
        let wait = backoff.heed(own, asked, roll);
        prop_assert!(wait >= own.max(asked));
    }
}
