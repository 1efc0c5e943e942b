//! Property tests: any sequence of steps against plain arithmetic, and steps in four threads at once.

use std::{thread, time::Duration};

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
enum Op {
    FirstTry(bool),
    Charge(Load),
    Refund(usize),
    Send(usize),
    End(usize, bool),
    Cancel(usize),
    Pass(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any::<bool>().prop_map(Op::FirstTry),
        4 => prop_oneof![Just(Load::Retry), Just(Load::Throttled)].prop_map(Op::Charge),
        1 => any::<usize>().prop_map(Op::Refund),
        2 => any::<usize>().prop_map(Op::Send),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(n, ok)| Op::End(n, ok)),
        1 => any::<usize>().prop_map(Op::Cancel),
        1 => (0..5000_u32).prop_map(Op::Pass),
    ]
}

fn milli(max: u32) -> impl Strategy<Value = f64> {
    (0..=max).prop_map(|n| f64::from(n) / 1000.0)
}

fn bucket_setting() -> impl Strategy<Value = BudgetSetting> {
    let amounts = (milli(20_000), 0.0..=1.0_f64, milli(3000), milli(3000), milli(2000), milli(2000));
    let rest = (milli(2000), milli(2000), any::<bool>(), prop_oneof![Just(0.0), milli(3000)]);
    (amounts, rest, proptest::option::of(0.0..0.99_f64)).prop_map(|(a, r, open)| {
        let mut setting = BudgetSetting::bucket(a.0)
            .initial((a.0 * a.1 * 1000.0).floor() / 1000.0)
            .cost(a.2 + 0.001)
            .throttled_cost(a.3 + 0.001)
            .per_first_try(a.4)
            .per_first_success(a.5)
            .per_retry_success(r.0)
            .per_failure(r.1)
            .refund_on_success(r.2)
            .refill_per_second(r.3);
        setting.open_above = open.map(|share| (share * 100.0).floor() / 100.0);
        setting
    })
}

/// A bucket told in thousandths, step by step, with its refill laid down at each millisecond of time.
struct Model {
    level: i64,
    capacity: i64,
    open_above: i64,
    /// Thousandths per second, and what is not yet a thousandth.
    rate: i64,
    carried: i64,
}

impl Model {
    fn new(s: &BudgetSetting) -> Self {
        Self {
            level: whole(s.initial),
            capacity: whole(s.capacity),
            open_above: s.open_above.map_or(-1, |share| whole(s.capacity) * (share * 100.0).round() as i64 / 100),
            rate: whole(s.refill_per_second),
            carried: 0,
        }
    }

    fn add(&mut self, amount: i64) {
        self.level = (self.level + amount).clamp(0, self.capacity);
    }

    fn pass(&mut self, millis: u32) {
        for _ in 0..millis {
            self.carried += self.rate;
            let gained = self.carried / 1000;
            self.carried %= 1000;
            self.add(gained);
        }
    }

    fn charge(&mut self, cost: i64) -> bool {
        let granted = self.level >= cost && self.level > self.open_above;
        if granted {
            self.level -= cost;
        }
        granted
    }
}

fn whole(tokens: f64) -> i64 {
    (tokens * 1000.0).round() as i64
}

fn pick<T>(from: &mut Vec<T>, n: usize) -> Option<T> {
    if from.is_empty() { None } else { Some(from.swap_remove(n % from.len())) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of steps leaves the level where plain arithmetic leaves it.
    #[test]
    fn a_bucket_is_exact(setting in bucket_setting(), ops in proptest::collection::vec(op(), 1..120)) {
        let mut now = Instant::now();
        let budget = Budget::custom_at(setting, now).unwrap();
        let mut model = Model::new(&setting);
        let (mut charges, mut sent) = (Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::FirstTry(ok) => {
                    budget.first_try_at(ok, now);
                    let gain = if ok { whole(setting.per_first_success) } else { -whole(setting.per_failure) };
                    model.add(whole(setting.per_first_try) + gain);
                }
                Op::Charge(load) => {
                    let cost = whole(if load == Load::Retry { setting.cost } else { setting.throttled_cost });
                    let charge = budget.charge_at(load, now);
                    prop_assert_eq!(charge.is_some(), model.charge(cost));
                    charges.extend(charge.map(|charge| (charge, cost)));
                }
                Op::Refund(n) => {
                    if let Some((charge, cost)) = pick(&mut charges, n) {
                        charge.refund_at(now);
                        model.add(cost);
                    }
                }
                Op::Send(n) => sent.extend(pick(&mut charges, n).map(|(charge, cost)| (charge.sent(), cost))),
                Op::End(n, ok) => {
                    if let Some((retry, cost)) = pick(&mut sent, n) {
                        if ok {
                            retry.succeeded_at(now);
                            model.add(whole(setting.per_retry_success) + if setting.refund_on_success { cost } else { 0 });
                        } else {
                            retry.failed_at(now);
                            model.add(-whole(setting.per_failure));
                        }
                    }
                }
                Op::Cancel(n) => drop(pick(&mut sent, n)),
                Op::Pass(millis) => {
                    now += Duration::from_millis(millis.into());
                    model.pass(millis);
                }
            }
            prop_assert_eq!(whole(budget.level_at(now)), model.level);
        }
        // Those left over go back by `Drop`, on the real clock, which is behind: no less than nothing, no overflow.
        drop(charges);
        prop_assert!(budget.level_at(now) <= setting.capacity);
    }

    /// Over any window, retries stay at or below their share of first tries and the reserve.
    #[test]
    fn a_window_is_exact(
        ttl in 1..=60_u32,
        reserve in 0..3_u32,
        percent in 0..3000_u32,
        ops in proptest::collection::vec(op(), 1..200),
    ) {
        let start = Instant::now();
        let slice = ttl * 100;
        let budget = Budget::custom_at(BudgetSetting::finagle(ttl * SECOND, reserve, f64::from(percent) / 1000.0), start).unwrap();
        let (mut first_tries, mut retries) = (Vec::<u32>::new(), Vec::<u32>::new());
        let mut charges = Vec::new();
        let mut millis = 0;
        for op in ops {
            let (now, at) = (start + Duration::from_millis(millis.into()), millis / slice);
            let live = |of: &[u32]| of.iter().filter(|then| at - **then < 10).count() as i64;
            let left = i64::from(reserve * ttl) * 1000 + live(&first_tries) * i64::from(percent) - live(&retries) * 1000;
            prop_assert_eq!(whole(budget.level_at(now)), left.max(0));
            match op {
                Op::FirstTry(ok) => {
                    budget.first_try_at(ok, now);
                    first_tries.push(at);
                }
                Op::Charge(load) => {
                    let charge = budget.charge_at(load, now);
                    prop_assert_eq!(charge.is_some(), left >= 1000);
                    if let Some(charge) = charge {
                        retries.push(at);
                        charges.push((charge, at));
                    }
                }
                Op::Refund(n) => {
                    if let Some((charge, then)) = pick(&mut charges, n) {
                        drop(charge);
                        let index = retries.iter().position(|of| *of == then).unwrap();
                        retries.swap_remove(index);
                    }
                }
                Op::Send(n) | Op::Cancel(n) | Op::End(n, _) => drop(pick(&mut charges, n).map(|(charge, _)| charge.sent())),
                Op::Pass(passed) => millis += passed * ttl / 10,
            }
        }
    }

    /// Whatever four threads do at once, nothing is lost and nothing is made.
    #[test]
    fn threads_lose_nothing(plans in proptest::collection::vec(proptest::collection::vec(op(), 1..200), 4)) {
        // So large that neither end is met, so that the order does not matter.
        let setting = BudgetSetting::bucket(1_000_000.0).initial(500_000.0).cost(1.7).throttled_cost(0.3).per_first_success(0.201).refund_on_success(true);
        let budget = Budget::custom(setting).unwrap();
        let moved: i64 = thread::scope(|scope| {
            let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(|| run(&budget, plan))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        prop_assert_eq!(whole(budget.level()), 500_000_000 + moved);
    }

    /// Threads that deposit and withdraw at once never get more than the fraction of all deposits.
    #[test]
    fn threads_stay_within_their_fraction(percent in 0..1500_u32, tries in 1..400_usize, windowed in any::<bool>()) {
        let share = f64::from(percent) / 1000.0;
        let setting = if windowed { BudgetSetting::window(60 * SECOND, share) } else { BudgetSetting::bucket(1e6).initial(0.0).per_first_try(share) };
        let budget = Budget::custom(setting).unwrap();
        let granted: usize = thread::scope(|scope| {
            let attempt = || {
                budget.first_try(false);
                budget.charge(Load::Retry).map(Charge::sent).is_some()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(move || (0..tries).filter(|_| attempt()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let earned = 4 * tries * percent as usize / 1000;
        prop_assert!(granted <= earned, "{} of {}", granted, earned);
        prop_assert_eq!(granted + std::iter::from_fn(|| budget.charge(Load::Retry).map(Charge::sent)).count(), earned);
    }
}

/// Runs a plan and says by how many thousandths it should have moved the level.
fn run(budget: &Budget, plan: &[Op]) -> i64 {
    let (mut charges, mut sent, mut moved) = (Vec::new(), Vec::new(), 0);
    for op in plan {
        match *op {
            Op::FirstTry(ok) => {
                budget.first_try(ok);
                moved += if ok { 201 } else { 0 };
            }
            Op::Charge(load) => {
                if let Some(charge) = budget.charge(load) {
                    let cost = if load == Load::Retry { 1700 } else { 300 };
                    moved -= cost;
                    charges.push((charge, cost));
                }
            }
            Op::Refund(n) => moved += pick(&mut charges, n).map_or(0, |(_, cost)| cost),
            Op::Send(n) => sent.extend(pick(&mut charges, n).map(|(charge, cost)| (charge.sent(), cost))),
            Op::End(n, ok) => {
                if let Some((retry, cost)) = pick(&mut sent, n) {
                    if ok {
                        retry.succeeded();
                        moved += cost;
                    } else {
                        retry.failed();
                    }
                }
            }
            Op::Cancel(n) => drop(pick(&mut sent, n)),
            Op::Pass(_) => thread::yield_now(),
        }
    }
    moved + charges.iter().map(|(_, cost)| cost).sum::<i64>()
}
