//! What a budget costs: one operation, by as many threads at once, and the first one after a long time of nothing.

use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use redial::policy::budget::{Budget, BudgetSetting, Load};
use tokio::runtime::Builder;
use tower::retry::budget::{Budget as _, TpsBudget};
use tower_resilience_retry::{RetryBudget, RetryBudgetBuilder};

use crate::rounds::median;

/// How often each thread repeats its operation.
const TIMES: usize = 200_000;

/// What is done to a budget, and how many operations on it that is.
#[derive(Clone, Copy)]
pub enum Operation {
    /// A first try is counted. One in three fails: a full budget of ours would have nothing to write for a success.
    FirstTry,
    /// A retry is granted, and its outcome is counted. One in two fails, for the same reason.
    Retry,
}

/// The budgets under comparison.
#[derive(Clone, Copy)]
pub enum Keeper {
    /// [`Budget::usual`].
    Redial,
    /// tower's `TpsBudget`, with a retry for each first try, so that it never runs out.
    Tower,
    /// tower-resilience's bucket, as its builder makes it.
    Resilience,
    /// The loop around the operation, and no operation.
    Nothing,
}

impl Keeper {
    /// All of them, the loop last.
    pub const ALL: [Keeper; 4] = [Keeper::Redial, Keeper::Tower, Keeper::Resilience, Keeper::Nothing];

    /// Nanoseconds of an operation as each of these threads sees it, while the others do the same to the same budget.
    pub fn time(self, operation: Operation, threads: usize) -> f64 {
        let (succeeds, repeat_succeeds) =
            (|turn: usize| !turn.is_multiple_of(3), |turn: usize| !turn.is_multiple_of(2));
        match self {
            Keeper::Nothing => match operation {
                Operation::FirstTry => time(threads, 1, |turn| {
                    black_box(succeeds(turn));
                }),
                Operation::Retry => time(threads, 2, |turn| {
                    black_box(repeat_succeeds(turn));
                }),
            },
            Keeper::Redial => {
                let budget = Budget::usual();
                match operation {
                    Operation::FirstTry => time(threads, 1, |turn| budget.first_try(succeeds(turn))),
                    Operation::Retry => time(threads, 2, |turn| {
                        let sent = budget.charge(Load::Retry).expect("a token for each thread").sent();
                        if repeat_succeeds(turn) { sent.succeeded() } else { sent.failed() }
                    }),
                }
            }
            Keeper::Tower => {
                let budget = TpsBudget::new(Duration::from_secs(10), 10, 1.0);
                match operation {
                    Operation::FirstTry => time(threads, 1, |_| budget.deposit()),
                    Operation::Retry => time(threads, 2, |_| {
                        assert!(black_box(budget.withdraw()), "it has a reserve");
                        budget.deposit();
                    }),
                }
            }
            Keeper::Resilience => {
                let budget: Arc<dyn RetryBudget> = RetryBudgetBuilder::new().token_bucket().build().expect("a budget");
                match operation {
                    Operation::FirstTry => time(threads, 1, |_| budget.deposit()),
                    Operation::Retry => time(threads, 2, |_| {
                        assert!(black_box(budget.try_withdraw()), "it has a reserve");
                        budget.deposit();
                    }),
                }
            }
        }
    }
}

fn time(threads: usize, operations: usize, work: impl Fn(usize) + Sync) -> f64 {
    let together = Barrier::new(threads);
    let one = || {
        together.wait();
        let start = Instant::now();
        for turn in 0..TIMES {
            work(black_box(turn));
        }
        start.elapsed()
    };
    let spent: Duration = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    spent.as_nanos() as f64 / (threads * TIMES * operations) as f64
}

/// A week in which no call was made.
const IDLE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What each budget's first operation after an idle week takes, in nanoseconds: of ours, the slowest form; of tower's. The
/// clock is tokio's, paused and moved on. tower-resilience reads the system's, which cannot be moved.
pub fn after_a_week(rounds: usize) -> [f64; 2] {
    let second = Duration::from_secs(1);
    let custom = |setting| Budget::custom(setting).expect("a budget");
    let forms: [&dyn Fn() -> Budget; 3] =
        [&Budget::usual, &|| Budget::finagle(10 * second, 10, 0.2).expect("Finagle's own setting"), &|| {
            custom(BudgetSetting::bucket(100.0).per_first_success(0.1).refill_per_second(1.0))
        }];
    let first = |make: &dyn Fn() -> Budget| {
        once_idle(rounds, || {
            let budget = make();
            move || budget.first_try(true)
        })
    };
    let ours = forms.into_iter().map(first).fold(0.0, f64::max);
    let towers = once_idle(rounds, || {
        let budget = TpsBudget::default();
        move || budget.deposit()
    });
    [ours, towers]
}

fn once_idle<O: FnMut()>(rounds: usize, make: impl Fn() -> O) -> f64 {
    let one = |_| {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let mut operation = make();
            operation();
            tokio::time::advance(IDLE).await;
            let start = Instant::now();
            operation();
            start.elapsed().as_nanos() as f64
        })
    };
    median((0..rounds).map(one).collect())
}
