//! A policy within tower's own retry layer, for those who must keep it; `redial::tower` says what is lost. Needs nothing
//! but the features: `cargo run --features tower-retry,testing --example tower_retry`.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    CallReport, StandardPolicy, TimeoutLayer, Timeouts, Transient,
    testing::{Reply, Server},
    tower::RetryPolicy,
};
use tower::{ServiceBuilder, ServiceExt, retry::RetryLayer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http1([Reply::status(503), Reply::ok("an order")]);

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::new(policy)))
        .layer(TimeoutLayer::new().head(timeouts.attempt))
        .service(Client::builder(TokioExecutor::new()).build_http());

    let request = Request::put(server.url("/orders/7")).body(Full::<Bytes>::from("one more"))?;
    let response = client.oneshot(request).await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("{} after {attempts} attempts", response.status());
    let seen = server.until(|seen| seen.complete() == 2).await;
    println!("each with the whole body: {}", seen.sent(2).requests.iter().all(|request| request.body.is("one more")));
    Ok(())
}
