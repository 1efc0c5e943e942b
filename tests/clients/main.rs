//! The clients that people have, over sockets.
//!
//! `cargo test --all-features --test clients -- --nocapture table` prints what two retries on one path come to, as the
//! server counts it.

mod axum;
mod hyper;
mod middleware;
mod redirects;
mod reqwest;
mod stacks;
mod tower;
mod traits;

use std::time::Duration;

use redial::{
    Backoff, Budget, CallReport, Error, Reach, StandardPolicy, StopReason, Timeouts, Transient,
    policy::StandardPolicyBuilder,
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Three attempts with short waits. Unlimited retries: what a budget refuses is not what these tests are about.
fn policy() -> StandardPolicyBuilder {
    within(Timeouts { attempt: Duration::from_secs(10), total: Duration::from_secs(30) })
}

fn within(timeouts: Timeouts) -> StandardPolicyBuilder {
    StandardPolicy::builder("orders", timeouts, Transient::usual())
        .backoff(Backoff::exponential(ms(10)).max(ms(20)).floor(ms(5)))
        .budget(Budget::unlimited("the servers of these tests are our own"))
}

/// As the docs have it built.
fn inner() -> ::reqwest::ClientBuilder {
    ::reqwest::Client::builder().no_proxy().retry(::reqwest::retry::never())
}

fn client(policy: StandardPolicyBuilder) -> redial::reqwest::Client {
    redial::reqwest::client(inner().build().unwrap(), policy.build().unwrap())
}

/// How a call that failed without an answer ended: attempts, why no more, and how far each got.
fn ended(error: &Error) -> (usize, Option<StopReason>, Vec<Reach>) {
    let report = error.report().expect("a call has a report");
    (report.attempts().len(), report.stop(), report.attempts().iter().map(|attempt| attempt.reach).collect())
}

fn report(response: &::reqwest::Response) -> &CallReport {
    response.extensions().get().expect("a call that was repeated, or refused to be, has a report")
}
