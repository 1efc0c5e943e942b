//! Policies for tests: exact waits, no budget, so that what happens when is known to the millisecond.
#![allow(dead_code)] // each test file uses its part

use std::time::Duration;

use redial::{Backoff, Budget, StandardPolicy, Timeouts, Transient, policy::StandardPolicyBuilder};

pub const WAIT: Duration = Duration::from_millis(100);

pub fn timeouts(attempt: u64, total: u64) -> Timeouts {
    Timeouts { attempt: Duration::from_millis(attempt), total: Duration::from_millis(total) }
}

/// An attempt may take 1 s, the call 60 s; 3 attempts, 100 ms apart.
pub fn builder() -> StandardPolicyBuilder {
    builder_within(timeouts(1_000, 60_000))
}

pub fn builder_within(timeouts: Timeouts) -> StandardPolicyBuilder {
    StandardPolicy::builder("shop", timeouts, Transient::usual())
        .backoff(Backoff::fixed(WAIT, "tests are exact"))
        .budget(Budget::unlimited("tests bound themselves"))
}

pub fn policy() -> StandardPolicy {
    builder().build().unwrap()
}
