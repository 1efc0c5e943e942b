//! The kit for tests: a scripted server and a scripted service, and what they then know. Needs nothing but the
//! feature: `cargo run --features testing --example testing_kit`.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    CallReport, RetryLayer, StandardPolicy, Timeouts, Transient,
    testing::{self, Events, Reply, Script, Server},
};
use tower::{Layer, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    over_sockets().await?;
    without_sockets().await
}

/// A whole client, against a server on loopback.
async fn over_sockets() -> Result<(), Box<dyn Error>> {
    let script = Script::new([Reply::status(404)])
        .route("PUT /orders/{id}", [Reply::status(503), Reply::close(), Reply::ok("half an order").reset_within()]);
    let server = Server::http1(script);
    let client = RetryLayer::new(policy()?).layer(Client::builder(TokioExecutor::new()).build_http());

    let order = Request::put(server.url("/orders/7?draft=1")).body(Full::<Bytes>::from("one more"))?;
    let response = client.oneshot(order).await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("over sockets: {} after {attempts} attempts", response.status());
    let seen = server.until(|seen| seen.complete() == 3).await;
    for (number, request) in (1..).zip(&seen.sent(3).requests) {
        println!("  {number}. {} {}, the whole body: {}", request.method, request.path, request.body.is("one more"));
    }
    Ok(())
}

/// A layer, against a service on a paused clock: the waits are exact, and take no time.
async fn without_sockets() -> Result<(), Box<dyn Error>> {
    tokio::time::pause();
    let service = testing::service([Reply::status(429).header("retry-after", "7"), Reply::refused_stream()]);
    let client = RetryLayer::new(policy()?).layer(service.clone());
    let events = Events::capture();

    let order = Request::post("/orders").body(Full::<Bytes>::from("one more"))?;
    let answer = client.oneshot(order).await?;

    println!("without sockets: {} after {} request", answer.status(), service.seen().requests.len());
    println!("  {}: {}", events.one_error().message, events.one_error().get("stop"));
    Ok(())
}

fn policy() -> Result<StandardPolicy, Box<dyn Error>> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    Ok(StandardPolicy::new("orders", timeouts, Transient::usual())?)
}
