//! Waits, as seven other clients and proxies grow and spread them.

use std::{ops::RangeInclusive, time::Duration};

use redial::policy::{Backoff, Jitter};
use serde_json::Value;

use crate::table::{self, Deviation, Outcome, millis, only, outcome, seconds, show};

const AT_ONCE: &str = "D2, S9: no immediate repeat; the floor holds even where a server says 0";

const DEVIATIONS: &[Deviation] = &[Deviation(38, AT_ONCE, "200ms")];

#[test]
fn backoff_table() {
    let json = include_str!("backoff.json");
    table::run("backoff", json, DEVIATIONS, judge);
}

fn judge(case: &Value) -> Outcome {
    match case["kind"].as_str() {
        Some("exponential") => exponential(case),
        Some("full_jitter") => {
            only(case, &["src", "kind", "base_s", "factor", "cap_s", "retry_index", "rand", "delay_s"]);
            delay(case, full(case).wait_at(retry(case), None, roll(&case["rand"])))
        }
        Some("floor") => floor(case),
        Some("full_jitter_mod") => modulo(case),
        Some("urllib3") => urllib3(case),
        Some("constant_jitter50") => {
            only(case, &["src", "kind", "base_s", "rand", "delay_s"]);
            let base = seconds(&case["base_s"]);
            let backoff = quarter(Backoff::exponential(base).multiplier(1.0), base);
            delay(case, backoff.wait_at(0, None, roll(&case["rand"])))
        }
        Some("linear_jitter50") => {
            only(case, &["src", "kind", "base_s", "retry_index", "rand", "delay_s"]);
            let backoff = quarter(Backoff::linear(seconds(&case["base_s"])), Duration::from_secs(60));
            delay(case, backoff.wait_at(retry(case), None, roll(&case["rand"])))
        }
        Some("decorrelated_v2") => decorrelated(case),
        None => grpc(case),
        Some(kind) => panic!("a kind that nothing runs: {kind}"),
    }
}

/// A row without jitter, or, where it says a range and nothing of jitter, one of a wait that has to be within.
fn exponential(case: &Value) -> Outcome {
    let ours = full(case).unjittered("the row has none").wait_at(retry(case), None, 0);
    match case["range_s"].as_str() {
        Some(range) => {
            only(case, &["src", "kind", "base_s", "cap_s", "retry_index", "range_s", "note"]);
            let within = bounds(range).contains(&ours);
            outcome(range, if within { range.into() } else { show(ours) })
        }
        None => {
            only(case, &["src", "kind", "base_s", "factor", "cap_s", "retry_index", "jitter", "delay_s"]);
            assert_eq!(case["jitter"], "none");
            delay(case, ours)
        }
    }
}

/// Stripe multiplies with a half to one, which is our jitter by halves, and cuts at the floor. Its test of the floor puts
/// a thousandth in the place of that, which no jitter of its own gives: it asks for the least wait that there is.
fn floor(case: &Value) -> Outcome {
    only(case, &["src", "kind", "base_s", "cap_s", "jitter_mult", "retry_index", "delay_s"]);
    let backoff = full(case).floor(seconds(&case["base_s"]));
    let times = case["jitter_mult"].as_f64().expect("a factor");
    let ours = match times >= 0.5 {
        true => backoff.jitter(Jitter::Equal).wait_at(retry(case), None, roll(&Value::from(2.0 * times - 1.0))),
        false => backoff.shortest(retry(case)),
    };
    delay(case, ours)
}

/// `random % bound` is a uniform wait below the bound: the same bound, and the roll that lies as far
/// below it. (Ours multiplies, which favours no value.)
fn modulo(case: &Value) -> Outcome {
    only(case, &["src", "kind", "base_ms", "cap_ms", "retry_index", "random_u64", "rule", "delay_ms"]);
    assert_eq!(case["rule"], "random_u64 % min(base*2^retry_index, cap)", "the rule that is followed here");
    let (base, cap) = (millis(&case["base_ms"]), millis(&case["cap_ms"]));
    let backoff = least(Backoff::exponential(base).max(cap));
    let bound = backoff.longest(retry(case));
    let remainder = case["random_u64"].as_u64().expect("a number") % bound.as_millis() as u64;
    let fraction = Value::from(remainder as f64 / bound.as_millis() as f64);
    let ours = backoff.wait_at(retry(case), None, roll(&fraction));
    outcome(show(millis(&case["delay_ms"])), show(ours))
}

/// `factor * 2^(errors - 1)`, but nothing after the first error. Ours counts retries from 0.
fn urllib3(case: &Value) -> Outcome {
    only(case, &["src", "kind", "factor", "cap_s", "errors", "delay_s"]);
    let backoff =
        Backoff::exponential(seconds(&case["factor"])).max(seconds(&case["cap_s"])).unjittered("the row has none");
    let errors = case["errors"].as_u64().expect("a count") as u32;
    // Nothing waits before a first try.
    let ours = errors.checked_sub(1).map_or(Duration::ZERO, |retry| backoff.wait_at(retry, None, 0));
    delay(case, ours)
}

/// Polly's jitter: a quarter each way. Our maximum is that of waits with their jitter, and Polly's that of waits without.
fn quarter(backoff: Backoff, max: Duration) -> Backoff {
    backoff.max(max * 5 / 4).jitter(Jitter::Around { percent: 25 })
}

/// Another formula of that name, of which the row holds what is to be true of any: ours is run as far.
fn decorrelated(case: &Value) -> Outcome {
    only(case, &["src", "kind", "base_s", "retry_index", "invariant"]);
    let max = Duration::from_secs(3600);
    let backoff = Backoff::exponential(seconds(&case["base_s"])).max(max).jitter(Jitter::Decorrelated);
    let invariant = case["invariant"].as_str().expect("an invariant");
    assert_eq!(invariant, "0 <= delay <= max_delay, no panic, no negative", "the invariant that is checked here");
    for roll in [0, 1, u64::MAX / 3, u64::MAX / 2, u64::MAX] {
        let mut previous = None;
        for retry in 0..=retry(case) {
            let wait = backoff.wait_at(retry, previous, roll);
            if wait > max || wait < backoff.get_floor() {
                return outcome(invariant, show(wait));
            }
            previous = Some(wait);
        }
    }
    outcome(invariant, invariant)
}

/// gRPC's jitter: a fifth each way, beyond its maximum too. Ours is never passed, so it is a fifth above that one.
fn grpc(case: &Value) -> Outcome {
    only(case, &["src", "retry_index", "range_s"]);
    assert_eq!(case["src"], "gRPC A6 initialBackoff=0.1s max=1s mult=2 jitter 0.8..1.2", "the settings that follow");
    let (initial, max) = (Duration::from_millis(100), Duration::from_secs(1));
    let backoff = Backoff::exponential(initial).multiplier(2.0).max(max * 6 / 5).jitter(Jitter::Around { percent: 20 });
    let ours = backoff.shortest(retry(case))..=backoff.longest(retry(case));
    let show = |range: RangeInclusive<Duration>| format!("{} to {}", show(*range.start()), show(*range.end()));
    outcome(show(bounds(case["range_s"].as_str().expect("a range"))), show(ours))
}

fn delay(case: &Value, ours: Duration) -> Outcome {
    outcome(show(seconds(&case["delay_s"])), show(ours))
}

fn full(case: &Value) -> Backoff {
    // Who does not say it doubles.
    let factor = case.get("factor").map_or(2.0, |factor| factor.as_f64().expect("a factor"));
    least(Backoff::exponential(seconds(&case["base_s"]))).max(seconds(&case["cap_s"])).multiplier(factor)
}

/// The least floor there is: these clients have none.
fn least(backoff: Backoff) -> Backoff {
    backoff.floor(Duration::from_nanos(1))
}

fn retry(case: &Value) -> u32 {
    let index = case["retry_index"].as_u64().expect("an index");
    u32::try_from(index).expect("an index of a retry")
}

/// From a random number of 0 to 1.
fn roll(rand: &Value) -> u64 {
    (rand.as_f64().expect("a random number") * 2_f64.powi(64)) as u64
}

fn bounds(range: &str) -> RangeInclusive<Duration> {
    let (low, high) = range.split_once("..").expect("two bounds");
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().expect("a number"));
    seconds(low)..=seconds(high)
}
