//! Hostile users of the clients: what breaks, and what holds.

mod grpc;
mod middleware;
mod others;
mod redirects;
mod reqwest;

#[path = "../grpc/support.rs"]
#[allow(dead_code)]
mod support;

use std::time::Duration;

use redial::{Backoff, Budget, CallReport, StandardPolicy, Timeouts, Transient, policy::StandardPolicyBuilder};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn policy() -> StandardPolicyBuilder {
    with(Transient::usual())
}

fn with(transient: Transient) -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(10), total: Duration::from_secs(30) };
    StandardPolicy::builder("orders", timeouts, transient)
        .backoff(Backoff::exponential(ms(10)).max(ms(20)).floor(ms(5)))
        .budget(Budget::unlimited("the servers of these tests are our own"))
}

fn inner() -> ::reqwest::ClientBuilder {
    ::reqwest::Client::builder().no_proxy().retry(::reqwest::retry::never())
}

fn client(policy: StandardPolicyBuilder) -> redial::reqwest::Client {
    redial::reqwest::client(inner().build().unwrap(), policy.build().unwrap())
}

fn attempts(response: &::reqwest::Response) -> usize {
    response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len())
}
