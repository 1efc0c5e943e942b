//! Crates that retry by themselves, and where that is written.
//!
//! Left out: what repeats only a request that provably never left (hyper-util's pool, on a connection that had been closed),
//! what is no more than a policy for somebody's own loop (tower), and what has no retries (tonic, hyper, reqwest-middleware).
//! A crate that is not here may retry all the same: this is a list of what was read, not of all there is.

use crate::policy::Place;

/// A crate that retries.
pub(super) struct Known {
    /// Its name in `Cargo.lock`.
    pub(super) name: &'static str,
    /// From this version on: major, minor, patch.
    pub(super) since: (u64, u64, u64),
    /// Other names by which a contract may call it.
    pub(super) also: &'static [&'static str],
    /// Where it stands on the path.
    pub(super) place: Place,
    /// How many attempts it makes by default. `None`: as many as the program says.
    pub(super) attempts: Option<u32>,
    /// What it does.
    pub(super) what: &'static str,
    /// How to switch it off.
    pub(super) off: &'static str,
    /// Where that is documented.
    pub(super) source: &'static str,
}

const fn known(name: &'static str, place: Place, attempts: Option<u32>, what: &'static str) -> Known {
    Known { name, since: (0, 0, 0), also: &[], place, attempts, what, off: "", source: "" }
}

impl Known {
    const fn since(mut self, major: u64, minor: u64, patch: u64) -> Self {
        self.since = (major, minor, patch);
        self
    }

    const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }

    const fn off(mut self, off: &'static str) -> Self {
        self.off = off;
        self
    }

    const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }
}

const LOOP: &str = "a loop around whatever it is given";
const LEAVE_OUT: &str = "leave it out around calls that go through a retry layer, or use redial::retry";

/// By name.
pub(super) const KNOWN: &[Known] = &[
    known("again", Place::Application, None, LOOP).off(LEAVE_OUT).source("https://docs.rs/again"),
    known("async-openai", Place::Sdk, Some(4), "three retries of any method after 429 and 5xx, by its own executor")
        .off("replace its executor: with_http_service")
        .source("https://docs.rs/async-openai/latest/async_openai/struct.Client.html"),
    known("aws-smithy-runtime", Place::Sdk, Some(3), "three attempts of every operation of every AWS SDK")
        .also(&["aws", "aws-config", "aws-sdk"])
        .off("retry_config(RetryConfig::disabled())")
        .source("https://docs.rs/aws-smithy-types/latest/aws_smithy_types/retry/struct.RetryConfig.html"),
    known("azure_core", Place::Sdk, Some(9), "eight retries with exponential backoff in the clients of Azure")
        .also(&["azure"])
        .off("ClientOptions with a retry policy that makes none")
        .source("https://docs.rs/azure_core/0.20.0/azure_core/struct.ExponentialRetryOptions.html"),
    known(
        "backoff",
        Place::Application,
        None,
        "a loop around whatever it is given, for a quarter of an hour by default",
    )
    .off(LEAVE_OUT)
    .source("https://docs.rs/backoff/latest/backoff/default/index.html"),
    known("backon", Place::Application, Some(4), "a loop around whatever it is given, with three retries by default")
        .off(LEAVE_OUT)
        .source("https://docs.rs/backon/latest/backon/struct.ExponentialBuilder.html"),
    known(
        "google-cloud-gax",
        Place::Sdk,
        Some(10),
        "up to ten attempts of what is idempotent, in the Google Cloud SDKs",
    )
    .since(1, 0, 0)
    .also(&["google-cloud", "google"])
    .off("with_retry_policy(NeverRetry) at the client's builder")
    .source("https://docs.cloud.google.com/rust/configure-retry-policies"),
    known(
        "kube-client",
        Place::Sdk,
        Some(16),
        "fifteen retries of any method after 429, 503 and 504, from version 5 on",
    )
    .since(3, 1, 0)
    .also(&["kube"])
    .off("Config::default_retry = false")
    .source("https://docs.rs/kube-client/latest/kube_client/client/retry/struct.RetryPolicy.html"),
    known("object_store", Place::Sdk, Some(11), "ten retries within three minutes, after 5xx and lost connections")
        .off("with_retry(RetryConfig { max_retries: 0, .. })")
        .source("https://docs.rs/object_store/latest/object_store/struct.RetryConfig.html"),
    known("octocrab", Place::Sdk, Some(4), "three retries of any method without a wait")
        .off("add_retry_config(RetryConfig::None)")
        .source("https://docs.rs/octocrab/latest/octocrab/service/middleware/retry/enum.RetryConfig.html"),
    known("opendal-layer-retry", Place::Sdk, None, "a layer over an operator, as it is set")
        .also(&["opendal"])
        .off("leave RetryLayer out")
        .source("https://docs.rs/opendal/latest/opendal/layers/struct.RetryLayer.html"),
    known("reqwest", Place::Sdk, Some(3), "two retries of what HTTP/2 says was not processed")
        .since(0, 12, 23)
        .off("ClientBuilder::retry(reqwest::retry::never())")
        .source("https://docs.rs/reqwest/latest/reqwest/retry/index.html"),
    known("reqwest-retry", Place::Sdk, None, "a middleware that repeats any method, as its policy says")
        .off("leave RetryTransientMiddleware out")
        .source("https://docs.rs/reqwest-retry"),
    known("tokio-retry", Place::Application, None, LOOP).off(LEAVE_OUT).source("https://docs.rs/tokio-retry"),
    known("tokio-retry2", Place::Application, None, LOOP).off(LEAVE_OUT).source("https://docs.rs/tokio-retry2"),
    known("tryhard", Place::Application, None, LOOP).off(LEAVE_OUT).source("https://docs.rs/tryhard"),
];

#[cfg(test)]
mod tests {
    use super::KNOWN;

    #[test]
    fn each_is_whole() {
        assert!(KNOWN.is_sorted_by(|one, next| one.name < next.name));
        for known in KNOWN {
            assert!(known.source.starts_with("https://") && !known.off.is_empty(), "{}", known.name);
            assert!(known.attempts.is_none_or(|attempts| attempts > 1), "{}", known.name);
        }
    }
}
