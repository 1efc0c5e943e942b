//! Waits, as seven other clients and proxies grow and spread them.

use std::time::Duration;

use redial::policy::{Backoff, Jitter};
use serde_json::Value;

use crate::table::{self, Deviation, Outcome, millis, outcome, seconds, show};

const ABOVE: &str = "S9: spread above the floor; cutting at it heaps waits on the floor itself";
const AT_ONCE: &str = "S9: no immediate repeat";
const LINEAR: &str = "no such setting: growth is a power, jitter is not a share of the wait";
const SHARE: &str = "no such setting: a fifth each way spreads too little, and passes the cap";

const DEVIATIONS: &[Deviation] = &[
    Deviation(28, ABOVE, "500.5ms"),
    Deviation(29, ABOVE, "501.5ms"),
    Deviation(30, ABOVE, "503.5ms"),
    Deviation(31, ABOVE, "504.5ms"),
    Deviation(33, ABOVE, "900ms"),
    Deviation(34, ABOVE, "1.7s"),
    Deviation(35, ABOVE, "3.3s"),
    Deviation(36, ABOVE, "6.5s"),
    Deviation(38, AT_ONCE, "200ms"),
    Deviation(59, LINEAR, "750ms"),
    Deviation(60, LINEAR, "1.95s"),
    Deviation(61, LINEAR, "2.25s"),
    Deviation(62, LINEAR, "2.55s"),
    Deviation(72, SHARE, "50ms to 100ms"),
    Deviation(73, SHARE, "50ms to 200ms"),
    Deviation(74, SHARE, "50ms to 400ms"),
    Deviation(75, SHARE, "50ms to 800ms"),
    Deviation(76, SHARE, "50ms to 1s"),
];

#[test]
fn backoff_table() {
    let json = include_str!("backoff.json");
    table::run("backoff", json, DEVIATIONS, judge);
}

fn judge(case: &Value) -> Outcome {
    match case["kind"].as_str() {
        Some("exponential") => exponential(case),
        Some("full_jitter") => {
            let ours = full(case).wait_at(retry(case), None, roll(&case["rand"]));
            outcome(show(seconds(&case["delay_s"])), show(ours))
        }
        Some("floor") => {
            let ours =
                full(case).floor(seconds(&case["base_s"])).wait_at(retry(case), None, roll(&case["jitter_mult"]));
            outcome(show(seconds(&case["delay_s"])), show(ours))
        }
        Some("full_jitter_mod") => modulo(case),
        Some("urllib3") => urllib3(case),
        Some("constant_jitter50") => {
            let base = seconds(&case["base_s"]);
            let ours = Backoff::exponential(base * 5 / 4)
                .multiplier(1.0)
                .max(base * 5 / 4)
                .floor(base * 3 / 4)
                .wait_at(0, None, roll(&case["rand"]));
            outcome(show(seconds(&case["delay_s"])), show(ours))
        }
        Some("linear_jitter50") => linear(case),
        Some("decorrelated_v2") => decorrelated(case),
        None => grpc(case),
        Some(kind) => panic!("a kind that nothing runs: {kind}"),
    }
}

fn exponential(case: &Value) -> Outcome {
    let ours = full(case).unjittered("the row has none").wait_at(retry(case), None, 0);
    match case["range_s"].as_str() {
        Some(range) => {
            let within = bounds(range).contains(&ours);
            outcome(range, if within { range.into() } else { show(ours) })
        }
        None => outcome(show(seconds(&case["delay_s"])), show(ours)),
    }
}

/// `random % bound` is a uniform wait below the bound: the same bound, and the roll that lies as far
/// below it. (Ours multiplies, which favours no value.)
fn modulo(case: &Value) -> Outcome {
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
    let backoff =
        Backoff::exponential(seconds(&case["factor"])).max(seconds(&case["cap_s"])).unjittered("the row has none");
    let errors = case["errors"].as_u64().expect("a count") as u32;
    // Nothing waits before a first try.
    let ours = errors.checked_sub(1).map_or(Duration::ZERO, |retry| backoff.wait_at(retry, None, 0));
    outcome(show(seconds(&case["delay_s"])), show(ours))
}

/// Three times the base at this attempt: we get there by a power. The jitter is a quarter each way;
/// ours reaches as high, and down to the floor.
fn linear(case: &Value) -> Outcome {
    let base = seconds(&case["base_s"]);
    let ours = Backoff::exponential(base * 5 / 4)
        .multiplier(3_f64.sqrt())
        .max(Duration::from_secs(60))
        .floor(base * 3 / 4)
        .wait_at(retry(case), None, roll(&case["rand"]));
    outcome(show(seconds(&case["delay_s"])), show(ours))
}

/// Another formula of that name, of which the row holds what is to be true of any: ours is run as far.
fn decorrelated(case: &Value) -> Outcome {
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

fn grpc(case: &Value) -> Outcome {
    let expected = bounds(case["range_s"].as_str().expect("a range"));
    let backoff = Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1));
    let ours = backoff.shortest(retry(case))..=backoff.longest(retry(case));
    let show =
        |range: std::ops::RangeInclusive<Duration>| format!("{} to {}", show(*range.start()), show(*range.end()));
    outcome(show(expected), show(ours))
}

fn full(case: &Value) -> Backoff {
    let factor = case["factor"].as_f64().unwrap_or(2.0);
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

fn bounds(range: &str) -> std::ops::RangeInclusive<Duration> {
    let (low, high) = range.split_once("..").expect("two bounds");
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().expect("a number"));
    seconds(low)..=seconds(high)
}
