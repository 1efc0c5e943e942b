//! redial, with all that is on by default.

use std::time::Duration;

use redial::{Backoff, Budget, RetryLayer, StandardPolicy, Timeouts, Transient, policy::budget::BudgetSetting};

use super::{ATTEMPT, Case, TOTAL, WAIT};

/// The layer under measurement.
pub fn layer(case: Case) -> RetryLayer<StandardPolicy> {
    // The usual budget would refuse to repeat for a service whose first tries all fail, and the refusals would be what is
    // measured. This one keeps the same accounts, and each first try pays for its own two repeats.
    let budget = match case.fails {
        0 => Budget::usual(),
        _ => {
            let setting = BudgetSetting::bucket(1_000_000.0).initial(5.0).per_first_try(2.0).refund_on_success(true);
            Budget::custom(setting).expect("a budget")
        }
    };
    let policy = StandardPolicy::builder("things", Timeouts { attempt: ATTEMPT, total: TOTAL }, Transient::usual())
        .backoff(Backoff::exponential(WAIT).max(WAIT * 2).floor(Duration::from_millis(1)))
        .budget(budget)
        .idempotent("a repeat writes the same again")
        .build()
        .expect("a policy");
    RetryLayer::new(policy)
}
