//! What stands where around a `RetryLayer`, and what each place counts.
//!
//! Above it: what happens once a call. Below it: what happens once an attempt.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{AttemptBody, BoxError, CallReport, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::{decompression::DecompressionLayer, follow_redirect::FollowRedirectLayer, trace::TraceLayer};
use tracing::Span;

#[path = "support/flaky.rs"]
mod flaky;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    println!("The right order: signed and traced once an attempt");
    let url = flaky::server([503, 503, 200]).await?;
    let client = ServiceBuilder::new()
        // Bounds the whole call, waits included, and the body that the retry layer hands on.
        .layer(TimeoutLayer::new().total(Duration::from_secs(60)).body_idle(Duration::from_secs(10)))
        // Unpacks the one answer that is kept. Below, it would unpack failed answers, only for them to be let go.
        .layer(DecompressionLayer::new())
        .layer(RetryLayer::new(policy()?))
        // A signature holds its time: one that waited through a backoff may be refused as too old.
        .map_request(sign)
        // Sees every attempt, signed; a second trace above the retry layer would see the call.
        .layer(TraceLayer::new_for_http().on_request(print))
        .service(client());
    let response = client.oneshot(get(&url)?).await?;
    println!("  {} after {} attempts\n", response.status(), attempts(&response));

    println!("The signer above: every attempt has the first one's signature");
    let url = flaky::server([503, 503, 200]).await?;
    let client = ServiceBuilder::new()
        .map_request(sign) // wrong
        .layer(RetryLayer::new(policy()?))
        .layer(TraceLayer::new_for_http().on_request(print))
        .service(self::client());
    client.oneshot(get(&url)?).await?;

    println!("\nRedirects above: each hop is a call of its own, with its own attempts");
    let url = flaky::server([503, 307, 503, 200]).await?;
    let client = ServiceBuilder::new()
        .layer(FollowRedirectLayer::new())
        .layer(RetryLayer::new(policy()?))
        .layer(TraceLayer::new_for_http().on_request(print))
        .service(self::client());
    let response = client.oneshot(get(&url)?).await?;
    println!("  {} after {} attempts of the last hop", response.status(), attempts(&response));

    println!("\nRedirects below: an attempt is the whole chain, and starts it anew");
    let url = flaky::server([307, 503, 307, 200]).await?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()?))
        .layer(FollowRedirectLayer::new())
        .layer(TraceLayer::new_for_http().on_request(print))
        .service(self::client());
    let response = client.oneshot(get(&url)?).await?;
    println!("  {} after {} attempts of the chain", response.status(), attempts(&response));

    println!("\nA timeout above: known to the retry layer, which does not begin a wait that would cross it");
    let url = flaky::server([503]).await?;
    let client = ServiceBuilder::new()
        .layer(TimeoutLayer::new().head(Duration::from_millis(500)))
        .layer(RetryLayer::new(slow_policy()?))
        .layer(TraceLayer::new_for_http().on_request(print))
        .service(self::client());
    let response = client.oneshot(get(&url)?).await?;
    let stop = response.extensions().get().and_then(CallReport::stop).map_or("none", |stop| stop.as_str());
    println!("  {}, and no second attempt: {stop}", response.status());
    Ok(())
}

fn policy() -> Result<StandardPolicy, redial::PolicyError> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    StandardPolicy::new("orders", timeouts, Transient::usual())
}

/// Waits at least a second before it repeats.
fn slow_policy() -> Result<StandardPolicy, redial::PolicyError> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let backoff = redial::Backoff::exponential(Duration::from_secs(2)).max(Duration::from_secs(4));
    let backoff = backoff.floor(Duration::from_secs(1));
    StandardPolicy::builder("orders", timeouts, Transient::usual()).backoff(backoff).build()
}

fn client<B: http_body::Body<Data: Send> + Send>() -> Client<HttpConnector, B> {
    Client::builder(TokioExecutor::new()).build_http()
}

fn get(url: &str) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::get(url).body(Full::default())
}

/// Stands for a real signature, which would cover the time and the request.
fn sign<B>(mut request: Request<B>) -> Request<B> {
    static SIGNATURES: AtomicU32 = AtomicU32::new(1);
    let signature = HeaderValue::from(SIGNATURES.fetch_add(1, Ordering::Relaxed));
    request.headers_mut().insert("x-signature", signature);
    request
}

/// What a trace below the retry layer sees of each request.
fn print(request: &Request<AttemptBody<Full<Bytes>>>, _: &Span) {
    let attempt = redial::attempt_number(request.extensions()).unwrap_or_default();
    print!("  attempt {attempt}: {}", request.uri().path());
    match request.headers().get("x-signature").and_then(|signature| signature.to_str().ok()) {
        Some(signature) => println!(", signature {signature}"),
        None => println!(),
    }
}

fn attempts<B>(response: &http::Response<B>) -> usize {
    response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len())
}
