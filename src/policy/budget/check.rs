//! Which settings are refused, and the words for it.

use std::{error::Error, fmt, time::Duration};

use super::settings::BudgetSetting;

/// Highest amount of tokens, as documented on the fields.
const MOST: f64 = u32::MAX as f64;
/// Highest refill. It also bounds how fast the bucket's clock part wraps, see `bucket.rs`.
const MOST_REFILL: f64 = 1000.0;
/// Highest share of a window, Finagle's own limit.
const MOST_PER_TRY: f64 = 1000.0;
/// Highest `maxTokens` of gRPC's A6.
const MOST_GRPC: f64 = 1000.0;

/// A setting that makes no budget. It names every broken value and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetError {
    problems: Vec<String>,
}

impl BudgetError {
    /// Each broken value, one sentence each, in the order of the fields.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this budget cannot be built: {}", self.problems.join("; "))
    }
}

impl Error for BudgetError {}

/// Nothing, or every reason why this setting is refused.
pub(super) fn check(setting: &BudgetSetting) -> Result<(), BudgetError> {
    let mut check = Check::default();
    match setting.window {
        Some(ttl) => check.window(setting, ttl),
        None => check.bucket(setting),
    }
    check.end()
}

/// What gRPC's A6 asks of its two numbers, before they are cut to three decimals.
pub(super) fn check_grpc(max_tokens: f64, token_ratio: f64) -> Result<(), BudgetError> {
    let mut check = Check::default();
    let mut above_zero = |label, value: f64, most| {
        if check.in_range(label, value, 0.0, most) && down_to_thousandth(value) == 0.0 {
            check.add(format!("{label} is {value}, which three decimals make 0: write at least 0.001"));
        }
    };
    above_zero("`max_tokens`", max_tokens, MOST_GRPC);
    above_zero("`token_ratio`", token_ratio, MOST);
    check.end()
}

/// Three decimals of a number, the rest cut off; `NaN` and infinities stay what they are.
pub(super) fn down_to_thousandth(value: f64) -> f64 {
    let scaled = value * 1000.0;
    // 0.546 * 1000 may be a hair below 546.
    let whole = if is_whole(scaled) { scaled.round() } else { scaled.floor() };
    whole / 1000.0
}

/// Whole, but for what binary fractions lose.
fn is_whole(scaled: f64) -> bool {
    (scaled - scaled.round()).abs() <= 1e-9 * scaled.abs().max(1.0)
}

#[derive(Default)]
struct Check {
    problems: Vec<String>,
}

impl Check {
    fn add(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn end(self) -> Result<(), BudgetError> {
        if self.problems.is_empty() { Ok(()) } else { Err(BudgetError { problems: self.problems }) }
    }

    fn in_range(&mut self, label: &str, value: f64, least: f64, most: f64) -> bool {
        // Written so that NaN fails too.
        let ok = value >= least && value <= most;
        if !ok {
            self.add(format!("{label} is {value}: write a number from {least} to {most}"));
        }
        ok
    }

    fn amount(&mut self, name: &str, value: f64, most: f64) -> bool {
        let in_range = self.in_range(&format!("`{name}`"), value, 0.0, most);
        let whole = is_whole(value * 1000.0);
        if in_range && !whole {
            self.add(format!("`{name}` is {value}: tokens are counted in thousandths, write at most three decimals"));
        }
        in_range && whole
    }

    fn bucket(&mut self, s: &BudgetSetting) {
        let capacity = self.amount("capacity", s.capacity, MOST);
        let initial = self.amount("initial", s.initial, MOST);
        if capacity && initial && s.initial > s.capacity {
            self.add(format!("`initial` is {}, above `capacity` {}: lower it, or raise that", s.initial, s.capacity));
        }
        let failures_close = s.per_failure > 0.0 && s.open_above.is_some();
        for (name, cost) in [("cost", s.cost), ("throttled_cost", s.throttled_cost)] {
            if self.amount(name, cost, MOST) && cost == 0.0 && !failures_close {
                self.add(format!(
                    "`{name}` is 0, which bounds nothing: write a cost, or `per_failure` with `open_above`, or say \
                     `Budget::unlimited` with its reason"
                ));
            }
        }
        self.amount("per_first_try", s.per_first_try, MOST);
        self.amount("per_first_success", s.per_first_success, MOST);
        self.amount("per_retry_success", s.per_retry_success, MOST);
        self.amount("per_failure", s.per_failure, MOST);
        self.amount("refill_per_second", s.refill_per_second, MOST_REFILL);
        if let Some(share) = s.open_above {
            if !(0.0..1.0).contains(&share) {
                self.add(format!("`open_above` is {share}: write a share of the capacity, from 0 to below 1"));
            }
        }
        if s.reserve_per_second != 0.0 {
            self.add(format!(
                "`reserve_per_second` is {}, which only a window has: write `refill_per_second`",
                s.reserve_per_second
            ));
        }
    }

    fn window(&mut self, s: &BudgetSetting, ttl: Duration) {
        if ttl < Duration::from_secs(1) || ttl > Duration::from_secs(60) {
            self.add(format!("`window` (Finagle's `ttl`) is {ttl:?}: write 1 s to 60 s"));
        }
        if self.in_range("`per_first_try` (Finagle's `percent`)", s.per_first_try, 0.0, MOST_PER_TRY)
            && s.per_first_try > 0.0
            && s.per_first_try < 1e-9
        {
            self.add(format!("`per_first_try` is {}: write 0, or at least a billionth", s.per_first_try));
        }
        self.amount("reserve_per_second", s.reserve_per_second, MOST);
        let plain = BudgetSetting::window(ttl, 0.0);
        for (name, same) in [
            ("capacity", s.capacity == plain.capacity),
            ("initial", s.initial == plain.initial),
            ("cost", s.cost == plain.cost),
            ("throttled_cost", s.throttled_cost == plain.throttled_cost),
            ("per_first_success", s.per_first_success == plain.per_first_success),
            ("per_retry_success", s.per_retry_success == plain.per_retry_success),
            ("per_failure", s.per_failure == plain.per_failure),
            ("refund_on_success", s.refund_on_success == plain.refund_on_success),
            ("refill_per_second", s.refill_per_second == plain.refill_per_second),
            ("open_above", s.open_above == plain.open_above),
        ] {
            if !same {
                self.add(format!("`{name}` says nothing in a window: leave it out, or leave out `window`"));
            }
        }
    }
}
