//! A hyper-util client that retries. Needs nothing: it starts a flaky server of its own.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{CallReport, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = flaky::server([503, 503, 200]).await?;

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let client = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(Duration::from_secs(60)).body_idle(Duration::from_secs(10)))
        .layer(RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?))
        .service(Client::builder(TokioExecutor::new()).build_http());

    let response = client.oneshot(Request::get(url).body(Full::<Bytes>::default())?).await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("{} after {attempts} attempts", response.status());
    println!("{:?}", response.into_body().collect().await?.to_bytes());
    Ok(())
}
