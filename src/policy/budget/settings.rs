//! What a budget allows, as plain data.

use std::time::Duration;

use super::check::down_to_thousandth;

/// The rule of a [`Budget`](super::Budget): plain numbers, of which the named settings are values.
///
/// Every amount is in **retries** (a `cost` of 1 makes a token one retry) and is counted in thousandths; a number finer
/// than that is refused, not rounded. A setting is checked as a whole by [`Budget::custom`](super::Budget::custom).
///
/// ```
/// use redial::policy::budget::{Budget, BudgetSetting};
///
/// // Ten retries at once, and one for each ten first tries that succeed.
/// let budget = Budget::custom(BudgetSetting::bucket(10.0).per_first_success(0.1))?;
/// assert_eq!(budget.level(), 10.0);
/// # Ok::<(), redial::policy::budget::BudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BudgetSetting {
    /// The most tokens the bucket holds. 0 to 4 294 967 295; usually 12.5.
    pub capacity: f64,
    /// The tokens it starts with, at most `capacity`. Above zero, or the first failure of a new process is final.
    pub initial: f64,
    /// Tokens that a retry costs.
    pub cost: f64,
    /// Tokens that a retry costs after an answer that says "too many requests".
    pub throttled_cost: f64,
    /// Tokens that each first try brings, however it ends. In a window (`window`): retries per first try, to a
    /// billionth, at most 1000.
    pub per_first_try: f64,
    /// Tokens that each first try brings when it succeeds.
    pub per_first_success: f64,
    /// Tokens that each retry brings when it succeeds, beside `refund_on_success`.
    pub per_retry_success: f64,
    /// Tokens that each failed attempt takes, first tries and retries alike; the level stops at zero.
    pub per_failure: f64,
    /// Whether a retry that succeeds gives its own cost back.
    pub refund_on_success: bool,
    /// Tokens that time brings, per second, whatever happens. At most 1000. Each client of an ailing server sends this
    /// many retries per second, so it is 0 unless asked for.
    pub refill_per_second: f64,
    /// Retries only while the level is above this share of `capacity` (0 up to, not including, 1).
    pub open_above: Option<f64>,
    /// Forget what is older than this (1 to 60 s): a sliding window of first tries and retries instead of a bucket. It
    /// uses `per_first_try` and `reserve_per_second` only.
    pub window: Option<Duration>,
    /// In a window: retries per second that are allowed beside the share. Low-rate clients live on it, and it undoes
    /// the share for them; usually 0. A bucket has `refill_per_second` instead.
    pub reserve_per_second: f64,
}

impl Default for BudgetSetting {
    fn default() -> Self {
        Self::usual()
    }
}

impl BudgetSetting {
    /// The setting of [`Budget::usual`](super::Budget::usual).
    pub fn usual() -> Self {
        Self::bucket(12.5)
            .cost(0.0)
            .throttled_cost(0.0)
            .per_failure(1.0)
            .per_first_success(0.6)
            .per_retry_success(1.1)
            .open_above(0.6)
    }

    /// A full bucket of this many retries that nothing refills.
    pub fn bucket(capacity: f64) -> Self {
        Self {
            capacity,
            initial: capacity,
            cost: 1.0,
            throttled_cost: 1.0,
            per_first_try: 0.0,
            per_first_success: 0.0,
            per_retry_success: 0.0,
            per_failure: 0.0,
            refund_on_success: false,
            refill_per_second: 0.0,
            open_above: None,
            window: None,
            reserve_per_second: 0.0,
        }
    }

    /// A sliding window of `ttl` (1 to 60 s) with this many retries for each first try in it.
    pub fn window(ttl: Duration, per_first_try: f64) -> Self {
        Self { window: Some(ttl), per_first_try, ..Self::bucket(0.0) }
    }

    /// The setting of [`Budget::aws`](super::Budget::aws), with a capacity of its own (AWS: 500).
    pub fn aws(capacity: u32) -> Self {
        Self::bucket(f64::from(capacity)).cost(14.0).throttled_cost(5.0).per_first_success(1.0).refund_on_success(true)
    }

    /// The setting of [`Budget::grpc`](super::Budget::grpc). Both numbers are cut to three decimals, as A6 says.
    pub fn grpc(max_tokens: f64, token_ratio: f64) -> Self {
        let ratio = down_to_thousandth(token_ratio);
        Self::bucket(down_to_thousandth(max_tokens))
            .cost(0.0)
            .throttled_cost(0.0)
            .per_first_success(ratio)
            .per_retry_success(ratio)
            .per_failure(1.0)
            .open_above(0.5)
    }

    /// The setting of [`Budget::finagle`](super::Budget::finagle).
    pub fn finagle(ttl: Duration, min_per_second: u32, percent: f64) -> Self {
        Self::window(ttl, percent).reserve_per_second(f64::from(min_per_second))
    }
}

/// One setter a field, so that a setting reads as a sentence.
macro_rules! setters {
    ($($field:ident: $type:ty),* $(,)?) => {
        impl BudgetSetting {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), "), see the field.")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*

            /// Sets [`open_above`](Self::open_above), see the field.
            #[must_use]
            pub fn open_above(mut self, share: f64) -> Self {
                self.open_above = Some(share);
                self
            }
        }
    };
}

setters! {
    capacity: f64,
    initial: f64,
    cost: f64,
    throttled_cost: f64,
    per_first_try: f64,
    per_first_success: f64,
    per_retry_success: f64,
    per_failure: f64,
    refund_on_success: bool,
    refill_per_second: f64,
    reserve_per_second: f64,
}
