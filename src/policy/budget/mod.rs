//! How many retries a provider is worth, over all calls: a retry never makes an outage worse.
//!
//! Attempts bound one call; a [`Budget`] bounds all of them. It is a bucket of tokens that clones share: one for each
//! provider, or for each group of calls that should not starve another. What a retry costs is taken when it is
//! **decided**, not when it is sent, and what a failure costs when it is heard: a thousand calls that fail at once cannot
//! all be waiting for the same last token. A charge that is not sent (a deadline, a cancelled call) goes back.
//!
//! The first repeat of a request that provably was never processed is not charged. But it is load, and where nothing can
//! be reached all are such: it is not made while the budget is closed or spent, and how it ends is heard as of any other.
//!
//! | setting | earned | a retry costs | no retry while |
//! | --- | --- | --- | --- |
//! | [`usual`](Budget::usual) | 0.6 for a first try that succeeds, 1.1 for a retry that does, up to 12.5 | each failure costs 1 | 5 tokens are gone |
//! | [`aws`](Budget::aws) | 1 for each first try that succeeds, up to 500 | 14 (throttled: 5), back if it succeeds | |
//! | [`grpc`](Budget::grpc) | `token_ratio` for each success, up to `max_tokens` | each failure costs 1 | half the tokens are gone |
//! | [`finagle`](Budget::finagle) | `percent` for each first try, for `ttl` | 1 | |
//!
//! All are values of [`BudgetSetting`], and of two forms of one budget: a bucket, and Finagle's window, which forgets.
//! Amounts are exact to a thousandth (integers throughout: a share of 0.6 is never rounded up to "all"), nothing
//! blocks, nothing allocates per call, and no operation takes longer after an idle week.
//!
//! # Why the usual setting is as it is
//!
//! A retry helps where failures are chance, and does harm where the provider is short of capacity. A client sees
//! neither, but it sees how many of its attempts fail: by chance perhaps one in five, in a brown-out to half more than
//! one in two. So every failure counts, a first try's and a retry's. That retries help is the best sign of chance,
//! hence the 1.1. While retries are made, the level falls where more than 44 % of the attempts fail; while none are, it
//! rises where fewer than 37 % of the first tries do.
//!
//! Five failures in a row are no chance, and nothing is repeated any more: an outage costs a process four retries at
//! most. After it, thirteen successes open the budget again. No clock is involved: a client with one call in ten seconds
//! is treated as one with a thousand a second. A new process begins with all tokens, so that its first failure is
//! repeated.
//!
//! A thousand clients with ten calls a second each, and 20 s of trouble: half of the capacity is left, or a fifth of
//! the requests fails by chance (calls that succeed), or nothing is served (requests for each call). `cargo bench
//! --bench storm` says what is what:
//!
//! | budget | half is left | a fifth fails | nothing is served |
//! | --- | ---: | ---: | ---: |
//! | no retry | 47.6 % | 80.0 % | 1.000 |
//! | 3 attempts, no budget | 2.5 % | 99.2 % | 2.995 |
//! | tower's and reqwest's default, their own code | 3.7 % | 99.2 % | 2.554 |
//! | AWS | 40.3 % | 99.2 % | 1.175 |
//! | gRPC, 10 and 0.1 | 46.8 % | 82.8 % | 1.020 |
//! | usual | 46.7 % | 99.1 % | 1.020 |
//!
//! What it costs in a brown-out, it costs in the first second, until five failures are heard. A lighter shortage, in
//! which fewer than four in ten fail, it takes for chance: with a provider where that is the common case, gRPC's
//! setting is the safer one.

mod bucket;
mod check;
mod settings;
mod sync;
mod ticket;
mod window;

#[cfg(redial_loom)]
#[doc(hidden)] // for the crate in `models/` alone
pub mod loom_models;
#[cfg(all(test, not(redial_loom)))]
mod properties;
#[cfg(all(test, not(redial_loom)))]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use self::{bucket::Bucket, ticket::Receipt, window::Window};
pub use self::{
    check::BudgetError,
    settings::BudgetSetting,
    ticket::{Charge, Load, Sent},
};

/// A shared allowance of retries. Clones share it; `Default` is [`usual`](Self::usual).
///
/// ```
/// use redial::policy::budget::Budget;
///
/// let budget = Budget::usual();
/// let same = budget.clone();
/// assert_eq!(same.level(), 12.5);
/// assert!(same.is_open());
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    form: Form,
    /// For `Debug`; `None` for an unlimited budget.
    setting: Option<BudgetSetting>,
}

enum Form {
    Bucket(Bucket),
    Window(Window),
    Unlimited { reason: String },
}

impl Default for Budget {
    fn default() -> Self {
        Self::usual()
    }
}

impl Budget {
    /// The setting to start with: of 12.5 tokens each failed attempt takes one, a first try that succeeds brings 0.6 back
    /// and a retry that succeeds 1.1; retries are made until five are gone. The [module](self) says why, with figures.
    pub fn usual() -> Self {
        Self::build(BudgetSetting::usual(), Instant::now)
    }

    /// A budget by any setting.
    ///
    /// # Errors
    ///
    /// When a value is `NaN`, infinite, negative, too fine or out of its range, or contradicts another; the error names
    /// each of them.
    pub fn custom(setting: BudgetSetting) -> Result<Self, BudgetError> {
        check::check(&setting)?;
        Ok(Self::build(setting, Instant::now))
    }

    /// The AWS SDKs' standard retry mode, version 2.1: 500 tokens, 14 for a retry, 5 for one after throttling, 1 earned
    /// by a first try that succeeds, and a retry's own cost back when it succeeds.
    ///
    /// Source: the retry behavior page of the AWS SDKs and Tools Reference Guide, and the SDKs' own tests for 2.1.
    pub fn aws() -> Self {
        Self::aws_with_capacity(500)
    }

    /// [`aws`](Self::aws) with another number of tokens; with fewer than 5, nothing is ever retried.
    pub fn aws_with_capacity(capacity: u32) -> Self {
        Self::build(BudgetSetting::aws(capacity), Instant::now)
    }

    /// gRPC's retry throttling: each failure takes a token, each success brings `token_ratio`, and retries are made
    /// while more than half of `max_tokens` is there. A retry itself costs nothing.
    ///
    /// `max_tokens` is above 0 and at most 1000, `token_ratio` is above 0; digits after the third decimal are ignored.
    ///
    /// Source: gRPC proposal A6 (client retries), "Throttling Retry Attempts and Hedged RPCs".
    ///
    /// # Errors
    ///
    /// When a number is out of its range.
    pub fn grpc(max_tokens: f64, token_ratio: f64) -> Result<Self, BudgetError> {
        check::check_grpc(max_tokens, token_ratio)?;
        Self::custom(BudgetSetting::grpc(max_tokens, token_ratio))
    }

    /// Finagle's `RetryBudget`: `percent` retries for each first try (0.2 is one in five, at most 1000) and
    /// `min_per_second` beside them, over the last `ttl` (1 to 60 s). Its own default is 10 s, 10 per second, 0.2.
    ///
    /// `min_per_second` is per client, and whatever the share says: ten a second from each of a thousand clients are
    /// ten thousand. For low-rate clients it is the whole rule.
    ///
    /// Source: `com.twitter.finagle.service.RetryBudget`.
    ///
    /// # Errors
    ///
    /// When `ttl` or `percent` is out of its range.
    pub fn finagle(ttl: Duration, min_per_second: u32, percent: f64) -> Result<Self, BudgetError> {
        Self::custom(BudgetSetting::finagle(ttl, min_per_second, percent))
    }

    /// No budget at all, for the written reason: every retry that the policy allows is made, in an outage too.
    pub fn unlimited(reason: impl Into<String>) -> Self {
        Self(Arc::new(Inner { form: Form::Unlimited { reason: reason.into() }, setting: None }))
    }

    /// The tokens that are there now, never below zero; infinite if unlimited.
    pub fn level(&self) -> f64 {
        self.level_by(Instant::now)
    }

    /// Whether a retry would be granted now.
    pub fn is_open(&self) -> bool {
        self.is_open_by(Instant::now)
    }

    /// The reason written for an unlimited budget.
    pub fn reason(&self) -> Option<&str> {
        match &self.0.form {
            Form::Unlimited { reason } => Some(reason),
            Form::Bucket(_) | Form::Window(_) => None,
        }
    }

    /// What this budget was built from; `None` if unlimited.
    pub fn setting(&self) -> Option<&BudgetSetting> {
        self.0.setting.as_ref()
    }

    fn build(setting: BudgetSetting, now: impl FnOnce() -> Instant) -> Self {
        let form = match setting.window {
            Some(ttl) => Form::Window(Window::new(&setting, ttl, now())),
            None => Form::Bucket(Bucket::new(&setting, now)),
        };
        Self(Arc::new(Inner { form, setting: Some(setting) }))
    }
}

/// The engine's side. Each operation has a form `_at`, for a clock that is not tokio's; `now` is called only by a budget
/// that time changes (a refill, a window).
#[doc(hidden)]
impl Budget {
    /// [`custom`](Self::custom), started at `now`.
    pub fn custom_at(setting: BudgetSetting, now: Instant) -> Result<Self, BudgetError> {
        check::check(&setting)?;
        Ok(Self::build(setting, || now))
    }

    /// Records a first try: `true` where the provider did its work (a business answer too), `false` for a failure that
    /// is transient. Others say nothing about the provider and are not recorded.
    #[inline]
    pub fn first_try(&self, succeeded: bool) {
        self.first_try_by(succeeded, Instant::now);
    }

    /// [`first_try`](Self::first_try), as of `now`.
    pub fn first_try_at(&self, succeeded: bool, now: Instant) {
        self.first_try_by(succeeded, || now);
    }

    /// Takes what a retry costs. `None`: spent, or closed.
    pub fn charge(&self, load: Load) -> Option<Charge> {
        self.charge_by(load, Instant::now)
    }

    /// [`charge`](Self::charge), as of `now`.
    pub fn charge_at(&self, load: Load, now: Instant) -> Option<Charge> {
        self.charge_by(load, || now)
    }

    /// For a retry that is not charged, as of `now`: how it ends is heard all the same. `None`: spent, or closed.
    pub fn uncharged_at(&self, now: Instant) -> Option<Charge> {
        let receipt = match &self.0.form {
            Form::Bucket(_) => Receipt::Tokens(0),
            Form::Window(_) | Form::Unlimited { .. } => Receipt::Nothing,
        };
        self.is_open_at(now).then(|| Charge::new(self.clone(), receipt))
    }

    /// [`level`](Self::level), as of `now`.
    pub fn level_at(&self, now: Instant) -> f64 {
        self.level_by(|| now)
    }

    /// [`is_open`](Self::is_open), as of `now`.
    pub fn is_open_at(&self, now: Instant) -> bool {
        self.is_open_by(|| now)
    }

    #[inline]
    fn first_try_by(&self, succeeded: bool, now: impl FnOnce() -> Instant) {
        match &self.0.form {
            Form::Bucket(bucket) => bucket.first_try(succeeded, bucket.brought(now)),
            Form::Window(window) => window.first_try(window.slice(now())),
            Form::Unlimited { .. } => {}
        }
    }

    fn charge_by(&self, load: Load, now: impl FnOnce() -> Instant) -> Option<Charge> {
        let receipt = match &self.0.form {
            Form::Bucket(bucket) => Receipt::Tokens(bucket.charge(load, bucket.brought(now))?),
            Form::Window(window) => Receipt::Slice(window.charge(window.slice(now()))?),
            Form::Unlimited { .. } => Receipt::Nothing,
        };
        Some(Charge::new(self.clone(), receipt))
    }

    fn refund(&self, receipt: Receipt, now: impl FnOnce() -> Instant) {
        match (&self.0.form, receipt) {
            (Form::Bucket(bucket), Receipt::Tokens(cost)) => bucket.refund(cost, bucket.brought(now)),
            (Form::Window(window), Receipt::Slice(slice)) => window.refund(slice),
            _ => {}
        }
    }

    fn retried(&self, succeeded: bool, receipt: Receipt, now: impl FnOnce() -> Instant) {
        if let (Form::Bucket(bucket), Receipt::Tokens(cost)) = (&self.0.form, receipt) {
            bucket.retried(succeeded, cost, bucket.brought(now));
        }
    }

    fn level_by(&self, now: impl FnOnce() -> Instant) -> f64 {
        match &self.0.form {
            Form::Bucket(bucket) => bucket.level(bucket.brought(now)) as f64 / 1000.0,
            Form::Window(window) => window.level(window.slice(now())),
            Form::Unlimited { .. } => f64::INFINITY,
        }
    }

    fn is_open_by(&self, now: impl FnOnce() -> Instant) -> bool {
        match &self.0.form {
            Form::Bucket(bucket) => bucket.is_open(bucket.brought(now)),
            Form::Window(window) => window.is_open(window.slice(now())),
            Form::Unlimited { .. } => true,
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Budget");
        match (&self.0.setting, self.reason()) {
            (Some(setting), _) => out.field("setting", setting),
            (None, reason) => out.field("unlimited", &reason.unwrap_or_default()),
        };
        out.field("level", &self.level()).field("open", &self.is_open()).finish()
    }
}
