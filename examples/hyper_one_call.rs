//! A client in one call: hyper-util with rustls, timeouts and repeats. Needs nothing but the features:
//! `cargo run --features hyper-rustls,testing --example hyper_one_call`.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use redial::{
    CallReport, StandardPolicy, Timeouts, Transient,
    testing::{Reply, Server},
};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http1([Reply::status(503), Reply::close(), Reply::ok("an order")]);

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let client = redial::hyper::client(StandardPolicy::new("orders", timeouts, Transient::usual())?);

    let request = Request::get(server.url("/orders/7")).body(Full::<Bytes>::default())?;
    let response = client.oneshot(request).await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    let status = response.status();
    println!("{status} after {attempts} attempts: {:?}", response.into_body().collect().await?.to_bytes());
    assert_eq!(server.seen().requests.len(), 3);
    Ok(())
}
