//! Unit tests. The case numbers (C116...) are those of the case collection.

use std::{thread, time::Duration};

use tokio::time::{Instant, advance};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What each test would otherwise say in three lines.
impl Budget {
    fn retry(&self) -> Option<Sent> {
        self.charge(Load::Retry).map(Charge::sent)
    }

    /// Retries until it is spent, and says how many.
    fn drain(&self) -> usize {
        std::iter::from_fn(|| self.retry()).take(1_000_000).count()
    }
}

/// Tokens that retries are paid with, and get back when they succeed.
fn five() -> Budget {
    bucket(BudgetSetting::bucket(5.0).per_first_success(0.2).refund_on_success(true))
}

fn bucket(setting: BudgetSetting) -> Budget {
    Budget::custom(setting).unwrap()
}

// ---- the usual setting

#[test]
fn a_new_process_retries_its_first_failure() {
    // C122 (b)
    let budget = Budget::usual();
    budget.first_try(false);
    let retry = budget.retry().unwrap();
    assert_eq!(budget.level(), 11.5);
    retry.succeeded();
    assert_eq!(budget.level(), 12.5);
}

#[test]
fn five_failures_and_an_outage_is_over() {
    let budget = Budget::usual();
    let mut retries = 0;
    for _ in 0..1000 {
        budget.first_try(false);
        if let Some(retry) = budget.retry() {
            retries += 1;
            retry.failed();
        }
    }
    assert_eq!(retries, 2, "the five failures are three first tries and two retries");
    assert_eq!(budget.level(), 0.0);
    // Twelve successes bring 7.2 tokens, the thirteenth opens it.
    (0..12).for_each(|_| budget.first_try(true));
    assert!(!budget.is_open());
    budget.first_try(true);
    assert!(budget.is_open());
}

#[test]
fn of_a_thousand_that_fail_at_once_four_are_repeated() {
    // Each is heard before it is decided; that retries are free does not mean that they are many.
    let budget = Budget::usual();
    let retries: Vec<_> = (0..1000)
        .filter_map(|_| {
            budget.first_try(false);
            budget.retry()
        })
        .collect();
    assert_eq!(retries.len(), 4);
}

/// Attempts of which a share fails, by a full-period generator: reproducible, and not in step with the calls.
struct Provider {
    state: u32,
    budget: Budget,
}

impl Provider {
    fn fails(&mut self, percent: u32) -> bool {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 16) * 100 < percent << 16
    }

    /// Makes a thousand calls of at most two attempts: how many failed without a retry, and how many retries there were.
    fn thousand_calls(&mut self, percent: u32) -> (usize, usize) {
        let (mut refused, mut retries) = (0, 0);
        for _ in 0..1000 {
            let failed = self.fails(percent);
            self.budget.first_try(!failed);
            if !failed {
                continue;
            }
            match self.budget.retry() {
                None => refused += 1,
                Some(retry) => {
                    retries += 1;
                    if self.fails(percent) { retry.failed() } else { retry.succeeded() }
                }
            }
        }
        (refused, retries)
    }
}

#[test]
fn a_fifth_is_chance_and_a_half_is_trouble() {
    let mut provider = Provider { state: 0, budget: Budget::usual() };
    let (refused, retries) = provider.thousand_calls(20);
    assert!(refused <= 10 && retries > 150, "{refused} refused, {retries} retries");
    let (refused, retries) = provider.thousand_calls(53);
    assert!(refused > 480 && retries < 40, "{refused} refused, {retries} retries");
    // And back again.
    let (refused, _) = provider.thousand_calls(20);
    assert!(refused <= 15, "{refused} refused");
}

#[test]
fn open_again_after_an_outage() {
    // C117: 1000 successes refill what failures have drained, first tries included.
    let ttl = 10 * SECOND;
    for budget in
        [Budget::usual(), Budget::aws(), Budget::grpc(10.0, 0.1).unwrap(), Budget::finagle(ttl, 0, 0.2).unwrap()]
    {
        for _ in 0..2000 {
            budget.first_try(false);
            if let Some(retry) = budget.retry() {
                retry.failed();
            }
        }
        assert!(!budget.is_open(), "{budget:?}");
        for _ in 0..1000 {
            budget.first_try(true);
        }
        budget.first_try(false);
        assert!(budget.retry().is_some(), "{budget:?}");
    }
}

#[test]
fn a_low_rate_client_is_not_starved() {
    // One call in ten seconds for a day, every fifth attempt fails: no clock takes anything from it.
    let mut provider = Provider { state: 0, budget: Budget::usual() };
    let refused: usize = (0..9).map(|_| provider.thousand_calls(20).0).sum();
    assert!(refused < 30, "{refused} of 9000 calls had no retry");
}

// ---- charges

#[test]
fn a_charge_that_is_not_sent_goes_back() {
    let budget = five();
    let charge = budget.charge(Load::Retry).unwrap();
    assert_eq!(budget.level(), 4.0);
    drop(charge);
    assert_eq!(budget.level(), 5.0);
    drop(budget.charge(Load::Retry).unwrap().sent());
    assert_eq!(budget.level(), 4.0, "cancelled after it was sent");
}

#[test]
fn each_retry_gives_back_what_it_cost_itself() {
    let budget = Budget::aws();
    let throttled = budget.charge(Load::Throttled).unwrap().sent();
    let retry = budget.charge(Load::Retry).unwrap().sent();
    assert_eq!(budget.level(), 481.0);
    throttled.succeeded();
    assert_eq!(budget.level(), 486.0);
    retry.succeeded();
    assert_eq!(budget.level(), 500.0);
}

#[test]
fn five_hundred_tokens_at_five_are_a_hundred_retries() {
    // C118
    let budget = bucket(BudgetSetting::bucket(500.0).cost(5.0));
    budget.first_try(false);
    assert_eq!(budget.drain(), 100);
    assert_eq!(budget.level(), 0.0);
}

#[test]
fn clones_share_one_level() {
    // C120: attempts belong to the call, the budget to all calls.
    let budget = five();
    let other = budget.clone();
    budget.first_try(false);
    budget.retry().unwrap().failed();
    budget.retry().unwrap().failed();
    other.first_try(false);
    assert_eq!(other.level(), 3.0);
    other.retry().unwrap().succeeded();
    assert_eq!(budget.level(), 3.0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failures_at_once_get_their_share() {
    // C121: every decision falls before any retry is sent.
    let budget = Budget::finagle(10 * SECOND, 0, 0.2).unwrap();
    let charges: Vec<_> = (0..1000)
        .map(|_| {
            budget.first_try(false);
            budget.charge(Load::Retry)
        })
        .collect();
    assert_eq!(charges.iter().flatten().count(), 200);
    drop(charges);
    assert_eq!(budget.level(), 200.0);

    let budget = bucket(BudgetSetting::bucket(1000.0).initial(0.0).per_first_try(0.2));
    let charges: Vec<_> = (0..1000)
        .map(|_| {
            budget.first_try(false);
            budget.charge(Load::Retry)
        })
        .collect();
    assert_eq!(charges.iter().flatten().count(), 200);
}

#[test]
fn two_hundred_throttled_calls_spend_the_budget_before_their_attempts() {
    // C122 (a)
    let budget = Budget::aws();
    let mut stopped = 0;
    for _ in 0..200 {
        budget.first_try(false);
    }
    for _attempt in 2..=20 {
        stopped = (0..200).filter(|_| budget.charge(Load::Throttled).map(Charge::sent).is_none()).count();
    }
    assert_eq!(stopped, 200);
    assert_eq!(budget.level(), 0.0);
}

// ---- fractions

#[test]
fn fractions_are_not_rounded_up() {
    for (ratio, expected) in [(0.6, 6), (0.999, 9), (0.1, 1), (0.05, 0)] {
        let budget = bucket(BudgetSetting::bucket(100.0).initial(0.0).per_first_try(ratio));
        (0..10).for_each(|_| budget.first_try(false));
        assert_eq!(budget.drain(), expected, "bucket {ratio}");
        let budget = Budget::finagle(60 * SECOND, 0, ratio).unwrap();
        (0..10).for_each(|_| budget.first_try(false));
        assert_eq!(budget.drain(), expected, "window {ratio}");
    }
}

#[test]
fn a_thousand_thousandths_are_one() {
    let budget = bucket(BudgetSetting::bucket(2.0).initial(0.0).per_first_success(0.001));
    (0..999).for_each(|_| budget.first_try(true));
    assert_eq!(budget.level(), 0.999);
    assert!(!budget.is_open());
    budget.first_try(true);
    assert_eq!(budget.drain(), 1);
    assert_eq!(budget.level(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_reserve_is_added_to_the_share_and_not_instead_of_it() {
    let budget = Budget::finagle(10 * SECOND, 0, 0.1).unwrap();
    (0..20).for_each(|_| budget.first_try(false));
    assert_eq!(budget.drain(), 2, "no reserve unless asked for");
    let budget = Budget::finagle(10 * SECOND, 1, 0.1).unwrap();
    (0..20).for_each(|_| budget.first_try(false));
    assert_eq!(budget.drain(), 12, "1/s for 10 s, and a tenth of 20");
    // The reserve is for the whole window: it is not there again before the retries are forgotten.
    advance(8 * SECOND).await;
    assert_eq!(budget.drain(), 0);
    advance(3 * SECOND).await;
    assert_eq!(budget.drain(), 10);
}

// ---- time

#[tokio::test(start_paused = true)]
async fn refill_carries_fractions() {
    // C116
    let budget = bucket(BudgetSetting::bucket(10.0).initial(0.0).refill_per_second(2.5));
    assert!(!budget.is_open());
    advance(SECOND).await;
    assert_eq!(budget.level().floor(), 2.0);
    advance(SECOND).await;
    assert_eq!(budget.level(), 5.0);
    let granted = tokio::task::JoinSet::from_iter((0..100).map(|_| {
        let budget = budget.clone();
        async move { budget.retry().is_some() }
    }));
    assert_eq!(granted.join_all().await.into_iter().filter(|granted| *granted).count(), 5);
    advance(399 * SECOND / 1000).await;
    assert!(!budget.is_open());
    advance(SECOND / 1000).await;
    assert!(budget.is_open());
    advance(100 * SECOND).await;
    assert_eq!(budget.level(), 10.0);
}

#[test]
fn threads_that_withdraw_at_once_get_what_is_there() {
    let now = Instant::now();
    let setting = BudgetSetting::bucket(10.0).initial(0.0).refill_per_second(2.5);
    for _ in 0..20 {
        let budget = Budget::custom_at(setting, now).unwrap();
        let then = now + 2 * SECOND;
        let granted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..25).filter(|_| budget.charge_at(Load::Retry, then).map(Charge::sent).is_some()).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(granted, 5);
    }
}

#[test]
fn an_older_clock_reading_gives_nothing_twice() {
    let now = Instant::now();
    let budget =
        Budget::custom_at(BudgetSetting::bucket(10.0).initial(0.0).refill_per_second(1.0).per_first_success(0.2), now)
            .unwrap();
    let (t9, t10) = (now + 9 * SECOND, now + 10 * SECOND);
    for _ in 0..10 {
        drop(budget.charge_at(Load::Retry, t10).unwrap().sent());
    }
    assert_eq!(budget.level_at(t9), 0.0);
    assert!(budget.charge_at(Load::Retry, t9).is_none());
    budget.first_try_at(true, t9);
    assert_eq!(budget.level_at(t9), 0.0);
    assert_eq!(budget.level_at(t10), 0.2);
    let t11 = now + 11 * SECOND;
    budget.charge_at(Load::Retry, t11).unwrap().refund_at(t9);
    assert_eq!(budget.level_at(t11), 1.2);
    // A clock before the start is the start.
    assert_eq!(budget.level_at(now - SECOND), 0.0);
}

#[test]
fn an_idle_week_costs_nothing() {
    let start = Instant::now();
    let week = start + 7 * 24 * 3600 * SECOND;
    for setting in [
        BudgetSetting::usual(),
        BudgetSetting::usual().refill_per_second(1000.0),
        BudgetSetting::finagle(SECOND, 10, 0.2),
    ] {
        let budget = Budget::custom_at(setting, start).unwrap();
        budget.first_try_at(true, start);
        let before = std::time::Instant::now();
        budget.first_try_at(true, week);
        let charge = budget.charge_at(Load::Retry, week);
        // Generous for a busy machine; stalls reported elsewhere are milliseconds.
        assert!(before.elapsed() < Duration::from_millis(1), "{setting:?}");
        assert!(charge.is_some());
    }
}

#[test]
fn a_refill_of_many_years_stays_within_the_bucket() {
    let start = Instant::now();
    let budget = Budget::custom_at(BudgetSetting::bucket(5.0).initial(0.0).refill_per_second(1000.0), start).unwrap();
    for year in 1..=30 {
        let now = start + year * 365 * 24 * 3600 * SECOND;
        assert_eq!(budget.level_at(now), 5.0, "year {year}");
        budget.first_try_at(true, now);
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_forgets_first_tries_and_retries() {
    let budget = Budget::finagle(10 * SECOND, 0, 0.5).unwrap();
    (0..10).for_each(|_| budget.first_try(true));
    assert_eq!(budget.level(), 5.0);
    advance(5 * SECOND).await;
    assert!(budget.retry().is_some());
    assert_eq!(budget.level(), 4.0);
    advance(5 * SECOND).await;
    // The first tries are forgotten, the retry is not: two new ones must make up for it.
    assert_eq!(budget.level(), 0.0);
    (0..2).for_each(|_| budget.first_try(true));
    assert!(!budget.is_open());
    (0..2).for_each(|_| budget.first_try(true));
    assert_eq!(budget.drain(), 1);
    advance(60 * SECOND).await;
    assert_eq!(budget.level(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_refund_in_a_window_is_forgotten_with_its_retry() {
    let budget = Budget::finagle(10 * SECOND, 1, 0.0).unwrap();
    let charges: Vec<_> = std::iter::from_fn(|| budget.charge(Load::Retry)).collect();
    assert_eq!(charges.len(), 10);
    advance(9 * SECOND).await;
    drop(charges);
    assert_eq!(budget.level(), 10.0);
    advance(SECOND).await;
    // A refund in the slice of today would now allow 20.
    assert_eq!(budget.drain(), 10);
    let late: Vec<_> = std::iter::from_fn(|| budget.charge(Load::Retry)).collect();
    assert!(late.is_empty());
}

// ---- bounds

#[test]
fn levels_saturate() {
    let most = f64::from(u32::MAX);
    let budget =
        bucket(BudgetSetting::bucket(most).per_first_success(most).per_first_try(most).per_failure(most).cost(most));
    budget.first_try(true);
    budget.first_try(true);
    assert_eq!(budget.level(), most);
    budget.retry().unwrap().failed();
    budget.first_try(false);
    assert_eq!(budget.level(), 0.0);
    budget.first_try(true);
    assert_eq!(budget.level(), most);
    let budget = bucket(BudgetSetting::bucket(most).refill_per_second(1000.0));
    assert_eq!(budget.level(), most);
    budget.retry().unwrap().failed();
    assert!(budget.level() < most);
    assert_eq!(Budget::aws_with_capacity(u32::MAX).level(), most);

    let budget = Budget::finagle(60 * SECOND, u32::MAX, 1000.0).unwrap();
    budget.first_try(false);
    assert_eq!(budget.level(), most * 60.0 + 1000.0);
    assert!(budget.retry().is_some());
}

#[test]
fn a_window_far_in_the_future_stands_still() {
    let start = Instant::now();
    let budget = Budget::custom_at(BudgetSetting::finagle(SECOND, 0, 1.0), start).unwrap();
    let late = start + Duration::from_secs(20 * 365 * 24 * 3600);
    budget.first_try_at(true, late);
    assert!(budget.charge_at(Load::Retry, late + SECOND).map(Charge::sent).is_some());
    assert!(budget.charge_at(Load::Retry, late + SECOND).is_none());
}

#[test]
fn nothing_is_ever_retried_with_an_empty_bucket() {
    let budget = Budget::aws_with_capacity(0);
    budget.first_try(true);
    assert!(budget.charge(Load::Throttled).is_none());
    assert_eq!(Budget::finagle(SECOND, 0, 0.0).unwrap().drain(), 0);
}

#[test]
fn unlimited_keeps_its_reason() {
    let budget = Budget::unlimited("a batch of ten calls, run by hand");
    (0..10_000).for_each(|_| budget.first_try(false));
    assert!(budget.retry().is_some());
    assert_eq!(budget.reason(), Some("a batch of ten calls, run by hand"));
    assert!(budget.is_open() && budget.level().is_infinite());
    assert!(format!("{budget:?}").contains("by hand"));
    assert_eq!(Budget::usual().reason(), None);
}

#[test]
fn debug_shows_setting_and_level() {
    let budget = five();
    let _retry = budget.retry();
    let text = format!("{budget:?}");
    for part in ["capacity: 5.0", "per_first_success: 0.2", "level: 4.0", "open: true"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn only_budgets_that_time_changes_read_a_clock() {
    let no_clock = || -> Instant { panic!("read a clock") };
    for setting in [BudgetSetting::usual(), BudgetSetting::aws(500), BudgetSetting::grpc(10.0, 0.1)] {
        let budget = Budget::build(setting, no_clock);
        budget.first_try_by(true, no_clock);
        budget.first_try_by(false, no_clock);
        assert!(budget.is_open_by(no_clock) && budget.level_by(no_clock) > 0.0);
        assert!(budget.charge_by(Load::Retry, no_clock).is_some());
        budget.refund(Receipt::Tokens(1), no_clock);
        budget.retried(true, Receipt::Tokens(1), no_clock);
    }
}

// ---- bad settings

#[test]
fn every_broken_value_is_named() {
    let usual = BudgetSetting::bucket(5.0).per_first_success(0.2);
    let window = BudgetSetting::finagle(SECOND, 1, 0.1);
    let nan = f64::NAN;
    let mut cases: Vec<(&str, BudgetSetting)> = vec![
        ("`initial` is 6, above `capacity` 5", usual.initial(6.0)),
        ("`cost` is 0, which bounds nothing", usual.cost(0.0)),
        ("`throttled_cost` is 0, which bounds nothing", usual.throttled_cost(0.0)),
        ("`per_first_success` is 0.0004: tokens are counted in thousandths", usual.per_first_success(0.0004)),
        ("`refill_per_second` is 1001", usual.refill_per_second(1001.0)),
        ("`reserve_per_second` is 1, which only a window has", usual.reserve_per_second(1.0)),
        ("`open_above` is 1", usual.open_above(1.0)),
        ("`open_above` is NaN", usual.open_above(nan)),
        ("`window` (Finagle's `ttl`) is 0ns", BudgetSetting::window(Duration::ZERO, 0.1)),
        ("`window` (Finagle's `ttl`) is 61s", BudgetSetting::window(61 * SECOND, 0.1)),
        ("`per_first_try` (Finagle's `percent`) is 1001", BudgetSetting::window(SECOND, 1001.0)),
        ("`per_first_try` (Finagle's `percent`) is NaN", BudgetSetting::window(SECOND, nan)),
        ("`per_first_try` is 0.0000000001", BudgetSetting::window(SECOND, 1e-10)),
        ("`reserve_per_second` is -1", window.reserve_per_second(-1.0)),
        ("`capacity` says nothing in a window", window.capacity(5.0)),
        ("`cost` says nothing in a window", window.cost(2.0)),
    ];
    type Setter = fn(BudgetSetting, f64) -> BudgetSetting;
    let setters: [(&str, Setter); 8] = [
        ("`capacity`", BudgetSetting::capacity),
        ("`initial`", BudgetSetting::initial),
        ("`cost`", BudgetSetting::cost),
        ("`throttled_cost`", BudgetSetting::throttled_cost),
        ("`per_first_try`", BudgetSetting::per_first_try),
        ("`per_first_success`", BudgetSetting::per_first_success),
        ("`per_failure`", BudgetSetting::per_failure),
        ("`refill_per_second`", BudgetSetting::refill_per_second),
    ];
    for (name, set) in setters {
        for value in [nan, f64::INFINITY, f64::NEG_INFINITY, -1.0, 4_294_967_296.0] {
            cases.push((name, set(usual, value)));
        }
    }
    for (text, setting) in cases {
        let error = Budget::custom(setting).expect_err(text);
        assert_eq!(error.problems().count(), 1, "{error}");
        assert!(error.to_string().contains(text), "{text} is not in: {error}");
    }
    let error = Budget::custom(usual.capacity(nan).cost(-1.0).open_above(2.0)).unwrap_err();
    assert_eq!(error.problems().count(), 3, "{error}");
}

#[test]
fn the_named_settings_can_be_built() {
    for setting in
        [BudgetSetting::usual(), BudgetSetting::aws(500), BudgetSetting::aws(0), BudgetSetting::aws(u32::MAX)]
    {
        assert!(Budget::custom(setting).is_ok());
    }
    assert_eq!(BudgetSetting::default(), BudgetSetting::usual());
}

#[test]
fn grpc_numbers() {
    for (max, ratio) in [
        (0.0, 0.1),
        (1000.1, 0.1),
        (f64::NAN, 0.1),
        (-1.0, 0.1),
        (10.0, 0.0),
        (10.0, 0.0009),
        (10.0, f64::NAN),
        (f64::INFINITY, 0.1),
    ] {
        assert!(Budget::grpc(max, ratio).is_err(), "{max} {ratio}");
    }
    // Digits after the third are ignored.
    let budget = Budget::grpc(10.0, 0.5466).unwrap();
    budget.first_try(false);
    budget.first_try(true);
    assert_eq!(budget.level(), 9.546);
    // A retry costs nothing; its failure does.
    let retry = budget.retry().unwrap();
    assert_eq!(budget.level(), 9.546);
    retry.failed();
    assert_eq!(budget.level(), 8.546);
    budget.retry().unwrap().succeeded();
    assert_eq!(budget.level(), 9.092);
    (0..20).for_each(|_| budget.first_try(false));
    assert_eq!(budget.level(), 0.0);
    assert!(!budget.is_open());
}
