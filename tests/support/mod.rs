//! A hyper-util client under a retry layer, and servers on loopback that record what arrived.
#![allow(dead_code, reason = "each test target uses its part")]

pub mod bodies;
pub mod raw;
pub mod site;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{
    AttemptBody, Backoff, Budget, CallReport, Replay, RetryLayer, StandardPolicy, StopReason, Timeouts, Transient,
    policy::StandardPolicyBuilder, retry::Retry,
};
use tower::Layer;

/// Both versions, where a test holds for each.
pub const WIRES: [Wire; 2] = [Wire::Http1, Wire::Http2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Http1,
    Http2,
}

/// Nothing here takes this long, unless it hangs.
pub const TOO_LONG: Duration = Duration::from_secs(20);

pub type HyperClient<B> = Client<HttpConnector, AttemptBody<B>>;
pub type RetryClient<B> = Retry<HyperClient<B>, StandardPolicy>;

/// Three attempts with short waits. Unlimited retries: what a budget refuses is not what these tests are about.
pub fn policy() -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(10), total: Duration::from_secs(30) };
    policy_within(timeouts)
}

pub fn policy_within(timeouts: Timeouts) -> StandardPolicyBuilder {
    let backoff =
        Backoff::exponential(Duration::from_millis(10)).max(Duration::from_millis(20)).floor(Duration::from_millis(5));
    StandardPolicy::builder("orders", timeouts, Transient::usual())
        .operation("create")
        .backoff(backoff)
        .budget(Budget::unlimited("the servers of these tests are our own"))
}

pub fn hyper_client<B>(wire: Wire) -> HyperClient<B>
where
    B: Replay<Data: Send> + Send + 'static,
    AttemptBody<B>: Unpin,
{
    Client::builder(TokioExecutor::new()).http2_only(wire == Wire::Http2).build_http()
}

pub fn client<B>(wire: Wire) -> RetryClient<B>
where
    B: Replay<Data: Send> + Send + 'static,
    AttemptBody<B>: Unpin,
{
    client_with(wire, policy())
}

pub fn client_with<B>(wire: Wire, policy: StandardPolicyBuilder) -> RetryClient<B>
where
    B: Replay<Data: Send> + Send + 'static,
    AttemptBody<B>: Unpin,
{
    RetryLayer::new(policy.build().unwrap()).layer(hyper_client(wire))
}

pub fn request<B>(method: Method, url: &str, body: B) -> Request<B> {
    Request::builder().method(method).uri(url).body(body).unwrap()
}

pub fn put<B>(url: &str, body: B) -> Request<B> {
    request(Method::PUT, url, body)
}

/// How many attempts a response took.
pub fn attempts<RB>(response: &Response<RB>) -> usize {
    response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len())
}

/// Why the last attempt of a response was not repeated.
pub fn stop<RB>(response: &Response<RB>) -> Option<StopReason> {
    response.extensions().get::<CallReport>()?.stop()
}

/// Fails instead of hanging.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TOO_LONG, future).await.expect("it hangs")
}

/// Bytes of which no part looks like another.
pub fn noise(length: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}
