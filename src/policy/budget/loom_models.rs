//! Every interleaving of a few steps, run by the crate in `models/`: a crate of its own, since loom wants a build of all
//! that it touches, and the tests' dependencies are not among it.

use std::time::Duration;

use loom::thread;
use tokio::time::Instant;

use super::*;

/// The models, by name.
pub const ALL: &[(&str, fn())] = &[
    ("one_token_is_one_retry", one_token_is_one_retry),
    ("a_refund_is_neither_lost_nor_doubled", a_refund_is_neither_lost_nor_doubled),
    ("first_tries_and_retries_add_up", first_tries_and_retries_add_up),
    ("time_brings_its_tokens_once", time_brings_its_tokens_once),
    ("a_window_is_spent_once_while_it_turns", a_window_is_spent_once_while_it_turns),
    ("a_window_counts_first_tries_of_two_threads", a_window_counts_first_tries_of_two_threads),
    ("a_refund_in_a_window_meets_its_turn", a_refund_in_a_window_meets_its_turn),
];

const TTL: Duration = Duration::from_secs(10);

/// Runs a closure in two threads at once and waits for both.
fn both<T: 'static>(
    budget: &Budget,
    first: impl FnOnce(&Budget) -> T + 'static,
    second: impl FnOnce(&Budget) -> T + 'static,
) -> (T, T) {
    let shared = budget.clone();
    let other = thread::spawn(move || first(&shared));
    let here = second(budget);
    (other.join().unwrap(), here)
}

fn retry_at(budget: &Budget, now: Instant) -> usize {
    usize::from(budget.charge_at(Load::Retry, now).map(Charge::sent).is_some())
}

fn retry(budget: &Budget) -> usize {
    usize::from(budget.charge(Load::Retry).map(Charge::sent).is_some())
}

fn bucket(capacity: f64) -> BudgetSetting {
    BudgetSetting::bucket(capacity)
}

fn one_token_is_one_retry() {
    loom::model(|| {
        let budget = Budget::custom(bucket(1.0)).unwrap();
        let (there, here) = both(&budget, retry, retry);
        assert_eq!(there + here, 1);
        assert_eq!(budget.level(), 0.0);
    });
}

fn a_refund_is_neither_lost_nor_doubled() {
    loom::model(|| {
        let budget = Budget::custom(bucket(1.0)).unwrap();
        let (there, here) = both(
            &budget,
            |budget| drop(budget.charge(Load::Retry)),
            |budget| {
                drop(budget.charge(Load::Retry));
            },
        );
        let ((), ()) = (there, here);
        assert_eq!(budget.level(), 1.0);
    });
}

fn first_tries_and_retries_add_up() {
    loom::model(|| {
        let setting = bucket(5.0).initial(1.0).per_first_success(0.2).refund_on_success(true);
        let budget = Budget::custom(setting).unwrap();
        both(
            &budget,
            |budget| {
                budget.first_try(true);
                budget.first_try(false);
            },
            |budget| {
                if let Some(charge) = budget.charge(Load::Retry) {
                    charge.sent().succeeded();
                }
            },
        );
        assert_eq!(budget.level(), 1.2);
    });
}

fn time_brings_its_tokens_once() {
    loom::model(|| {
        let start = Instant::now();
        let setting = bucket(10.0).initial(0.0).refill_per_second(1.0);
        let budget = Budget::custom_at(setting, start).unwrap();
        let (one, two) = (start + Duration::from_secs(1), start + Duration::from_secs(2));
        // One thread's clock reading is a second older than the other's.
        let (there, here) = both(
            &budget,
            move |budget| retry_at(budget, one) + retry_at(budget, one),
            move |budget| retry_at(budget, two) + retry_at(budget, two),
        );
        let left = retry_at(&budget, two) + retry_at(&budget, two);
        assert_eq!(there + here + left, 2);
    });
}

fn a_window_is_spent_once_while_it_turns() {
    loom::model(|| {
        let start = Instant::now();
        let budget = Budget::custom_at(BudgetSetting::window(TTL, 1.0), start).unwrap();
        budget.first_try_at(true, start);
        budget.first_try_at(true, start);
        budget.first_try_at(true, start);
        assert_eq!(retry_at(&budget, start), 1);
        // The gate moves to a new slice in one thread, while the other still spends in the old one.
        let later = start + Duration::from_secs(1);
        let (there, here) = both(
            &budget,
            move |budget| retry_at(budget, later),
            move |budget| retry_at(budget, start) + retry_at(budget, start),
        );
        assert_eq!(there + here, 2);
        assert_eq!(retry_at(&budget, later), 0);
    });
}

fn a_window_counts_first_tries_of_two_threads() {
    loom::model(|| {
        let start = Instant::now();
        let budget = Budget::custom_at(BudgetSetting::window(TTL, 0.5), start).unwrap();
        let attempt = move |budget: &Budget| {
            budget.first_try_at(false, start);
            retry_at(budget, start)
        };
        let (there, here) = both(&budget, attempt, attempt);
        assert!(there + here <= 1);
        assert_eq!(there + here + retry_at(&budget, start), 1);
    });
}

fn a_refund_in_a_window_meets_its_turn() {
    loom::model(|| {
        let start = Instant::now();
        let budget = Budget::custom_at(BudgetSetting::window(TTL, 1.0), start).unwrap();
        budget.first_try_at(true, start);
        let charge = budget.charge_at(Load::Retry, start);
        assert!(charge.is_some());
        let later = start + Duration::from_secs(1);
        let ((), granted) = {
            let shared = budget.clone();
            let other = thread::spawn(move || drop(charge));
            let granted = retry_at(&shared, later);
            (other.join().unwrap(), granted)
        };
        assert_eq!(granted + retry_at(&budget, later), 1);
    });
}
