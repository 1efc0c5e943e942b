//! The SDKs of Google Cloud: their own retries, bounded or switched off.

use std::time::Duration;

use google_cloud_gax::{
    client_builder::ClientBuilder,
    retry_policy::{Aip194Strict, NeverRetry, RetryPolicyExt},
};

/// Where something else on the path retries.
pub fn unretried<F, C>(builder: ClientBuilder<F, C>) -> ClientBuilder<F, C> {
    builder.with_retry_policy(NeverRetry)
}

/// Where nothing else does: three attempts in all, for what is idempotent or was never sent.
pub fn bounded<F, C>(builder: ClientBuilder<F, C>) -> ClientBuilder<F, C> {
    builder.with_retry_policy(Aip194Strict.with_attempt_limit(3).with_time_limit(Duration::from_secs(10)))
}
