//! The retry layer as a middleware of reqwest-middleware, and how its errors are asked. Needs nothing but the features:
//! `cargo run --features reqwest-middleware,testing --example reqwest_middleware`.

use std::{error::Error, time::Duration};

use redial::{
    CallReport, StandardPolicy, Timeouts, Transient,
    reqwest_middleware::{RetryMiddleware, as_redial},
    testing::{Reply, Server},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http1([Reply::status(503), Reply::ok("an order")]);

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
    let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;

    let client = reqwest_middleware::ClientBuilder::new(inner).with(RetryMiddleware::new(policy)).build();
    let response = client.get(server.url("/orders/7")).send().await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("{} after {attempts} attempts: {}", response.status(), response.text().await?);
    assert_eq!(server.seen().requests.len(), 2);

    // Nobody listens here, so that the order was surely not placed: also a POST is repeated.
    let gone = Server::refusing();
    let Err(error) = client.post(gone.url("/orders")).body("one more").send().await else { return Err("none".into()) };
    let ours = as_redial(&error).ok_or("an error of a call is ours")?;
    let attempts = ours.report().map_or(0, |report| report.attempts().len());
    println!("after {attempts} attempts: connect {}, timeout {}", ours.is_connect(), ours.is_timeout());
    Ok(())
}
