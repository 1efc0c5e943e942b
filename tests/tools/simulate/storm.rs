//! What a budget costs a provider in trouble: the measured figures of other projects' settings, and ours beside them.
//!
//! 10 calls a second from each client, capacity for 1.2 times that, a refusal costs a quarter of a served request, the
//! fault lasts 20 s; mean of three seeds. The expected figures were measured once with those projects' own budgets on
//! another model of the same description.

use std::time::Duration;

use redial::{
    policy::budget::{Budget, BudgetSetting},
    simulate::Strategy,
};

use super::{
    figures, scenario,
    tower_budget::{self, TowerBudget},
    with_budget,
};

/// Success in a brown-out to half (%) and at 20 % random failures (%), load factor in a full outage.
struct Row {
    strategy: Strategy,
    expected: [f64; 3],
}

fn row(name: &str, budget: Budget, expected: [f64; 3]) -> Row {
    Row { strategy: with_budget(name, budget), expected }
}

/// How far the mean of three seeds may be from what was measured.
const TOLERANCE: [f64; 3] = [1.1, 0.4, 0.02];

#[test]
fn the_measured_rows() {
    let small = BudgetSetting::bucket(100.0).cost(10.0).throttled_cost(10.0).per_first_success(1.0);
    let rows = [
        Row { strategy: Strategy::no_retry(), expected: [47.6, 80.0, 1.0] },
        row("full jitter, no budget", Budget::unlimited("measured"), [2.5, 99.2, 3.0]),
        row("AWS retry 2.1", Budget::aws(), [40.2, 99.2, 1.18]),
        Row { strategy: tower(), expected: [2.7, 99.2, 2.55] },
        row("the same numbers, ours", Budget::finagle(Duration::from_secs(10), 10, 0.2).unwrap(), [14.4, 99.2, 2.2]),
        row("gRPC 10/0.1", Budget::grpc(10.0, 0.1).unwrap(), [46.8, 82.9, 1.02]),
        // The rule that was measured gives a retry's cost back: without, a fifth of failures is more than it pays for.
        row("100, cost 10, +1, back", Budget::custom(small.refund_on_success(true)).unwrap(), [43.8, 99.2, 1.05]),
        row("100, cost 10, +1", Budget::custom(small).unwrap(), [44.5, 89.9, 1.05]),
        row("usual", Budget::usual(), [46.7, 99.1, 1.02]),
    ];
    println!("{:24} {:>9} {:>9} {:>9}", "", "brown-out", "failures", "outage");
    for Row { strategy, expected } in rows {
        let got = measured(&strategy);
        println!("{:24} {:8.1}% {:8.1}% {:9.3}   expected {expected:?}", strategy.name(), got[0], got[1], got[2]);
        for ((got, expected), tolerance) in got.iter().zip(expected).zip(TOLERANCE) {
            assert!((got - expected).abs() <= tolerance, "{}: {got:.3}, expected {expected}", strategy.name());
        }
    }
}

/// tower's own default. Our window with its numbers grants what they say: a load of 2.2.
fn tower() -> Strategy {
    with_budget("tower's own", Budget::unlimited("tower's is asked beside it")).budgeted(|_| TowerBudget::default())
}

fn measured(strategy: &Strategy) -> [f64; 3] {
    let clock = tower_budget::clock();
    let _clock = clock.enter();
    let mut sums = [0.0; 3];
    for seed in [7, 8, 9] {
        let runs = ["brown-out", "random-failures", "outage"].map(|name| {
            let mut scenario = scenario(name);
            scenario.seed = seed;
            figures(&scenario, strategy)
        });
        sums[0] += 100.0 * runs[0].success;
        sums[1] += 100.0 * runs[1].success;
        sums[2] += runs[2].load_factor;
    }
    sums.map(|sum| sum / 3.0)
}

/// Where nothing can be reached, every request is provably unsent, and its first repeat costs nothing: a budget that is
/// closed or spent bounds that as well.
#[test]
fn nothing_can_be_reached() {
    let mut unreachable = scenario("outage");
    unreachable.trouble.kind = redial::simulate::TroubleKind::Unreachable;
    let budgets = [
        ("usual", Budget::usual(), 1.1),
        ("AWS", Budget::aws(), 1.5),
        ("gRPC", Budget::grpc(10.0, 0.1).unwrap(), 1.1),
        ("Finagle", Budget::finagle(Duration::from_secs(10), 0, 0.2).unwrap(), 1.6),
    ];
    for (name, budget, bound) in budgets {
        let load = figures(&unreachable, &with_budget(name, budget)).load_factor;
        println!("{name:8} {load:.3}");
        assert!(load < bound, "{name}: {load}");
    }
}
