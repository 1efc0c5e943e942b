//! Mistakes that other clients made with waits, one a test.

use super::*;

#[test]
fn c064_a_servers_wait_is_only_ever_lengthened() {
    for cap in [secs(5), secs(60)] {
        let backoff = Backoff::default().max(cap);
        let waits: Vec<_> = (0..1000)
            .map(|call| {
                let mut dice = Dice::of_wait(Some(64), call);
                let own = backoff.wait(0, None, &mut dice);
                backoff.heed(own, secs(5), rand::Rng::next_u64(&mut dice))
            })
            .collect();
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*least >= secs(5) && *most <= secs(6), "{least:?} {most:?}");
        assert!(*most - *least > ms(900), "{least:?} {most:?}");
    }
    let unjittered = Backoff::default().unjittered("one client");
    assert_eq!(unjittered.heed(ms(200), secs(5), u64::MAX), secs(5));
    assert_eq!(unjittered.heed(secs(7), secs(5), u64::MAX), secs(7));
}

#[test]
fn c066_waits_at_the_cap_vary_and_never_exceed_it() {
    for jitter in KINDS.into_iter().filter(|kind| *kind != Jitter::None) {
        let backoff = tenth_to_one_second().jitter(jitter);
        for retry in 10..20 {
            let mut waits: Vec<_> = (0..1000)
                .map(|call| {
                    let mut dice = Dice::of_wait(Some(66), call);
                    backoff.wait(retry, Some(secs(1)), &mut dice)
                })
                .collect();
            assert!(waits.iter().all(|wait| (ms(20)..=secs(1)).contains(wait)));
            waits.sort_unstable();
            waits.dedup();
            assert!(waits.len() > 250, "{jitter:?}: {} waits", waits.len());
        }
    }
}

#[test]
fn c068_growth_saturates() {
    let retries = || (0..=200).chain([1023, 1024, 1025, u32::MAX - 1, u32::MAX]);
    for cap in [ms(10), secs(3600), Duration::MAX] {
        let backoff =
            Backoff::exponential(secs(1)).max(cap).floor(Duration::from_nanos(1)).unjittered("to see growth alone");
        let mut before = Duration::ZERO;
        for retry in retries() {
            let wait = backoff.wait(retry, Some(before), &mut Loaded(u64::MAX));
            assert!(wait >= before && wait <= cap && !wait.is_zero());
            before = wait;
        }
        assert_eq!(before, cap);
    }
    // 10 ms under 1 s is also refused before it gets so far.
    let repro = Backoff::exponential(secs(1)).max(ms(10)).floor(ms(1));
    assert_eq!(rules(&repro), ["S11"]);
}

#[test]
fn c069_large_powers_are_the_cap_and_shrinking_ones_are_refused() {
    let of = |multiplier| {
        Backoff::exponential(secs(1)).multiplier(multiplier).max(secs(60)).unjittered("to see growth alone")
    };
    for (multiplier, retry) in [(10.0, 309), (2.0, 1024), (1.5, 5000)] {
        let wait = of(multiplier).wait(retry, None, &mut Dice::Thread);
        assert_eq!(wait, secs(60));
    }
    for multiplier in [f64::NAN, 0.5, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(rules(&of(multiplier)), ["S11"], "{multiplier}");
        // Refused, and harmless where nobody asked.
        for retry in [0, 1, 2, 309, u32::MAX] {
            let wait = of(multiplier).wait(retry, None, &mut Dice::Thread);
            assert!((ms(50)..=secs(60)).contains(&wait), "{multiplier} {retry}");
        }
    }
}

#[test]
fn c070_powers_without_a_cap() {
    let backoff = Backoff::exponential(ms(6)).multiplier(6.0).floor(ms(1)).unjittered("to see growth alone");
    let waits: Vec<_> = (0..4).map(|retry| backoff.wait(retry, None, &mut Dice::Thread)).collect();
    assert_eq!(waits, [ms(6), ms(36), ms(216), ms(1296)]);
    assert_eq!(rules(&backoff), ["S11"]);
}

#[test]
fn c148_tiny_waits_and_no_jitter_do_not_panic() {
    for nanos in [0, 1, 9, 10] {
        let initial = Duration::from_nanos(nanos);
        for jitter in KINDS {
            for floor in [Duration::ZERO, Duration::from_nanos(1), initial] {
                let backoff = Backoff::exponential(initial).floor(floor).jitter(jitter);
                for retry in [0, 1, u32::MAX] {
                    for roll in [0, u64::MAX / 2, u64::MAX] {
                        assert!(backoff.wait(retry, None, &mut Loaded(roll)) >= floor);
                    }
                }
            }
        }
        if nanos > 0 {
            // No jitter is valid, and means always the same.
            let fixed = Backoff::fixed(initial, "to see that it is");
            assert!(fixed.broken().iter().all(|(rule, _)| *rule == "S9"), "but too short for any timer");
            assert_eq!(fixed.wait(7, None, &mut Dice::Thread), initial);
        }
    }
}
