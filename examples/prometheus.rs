//! What redial counts, as Prometheus reads it: a recorder, and a page served by whatever serves pages already.
//! `cargo run --features metrics --example prometheus`.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{Backoff, RetryLayer, StandardPolicy, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;
#[path = "support/page.rs"]
mod page;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let metrics = page::serve(page::install()?).await?;

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("shop", timeouts, Transient::usual())
        .operation("orders")
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http::<redial::AttemptBody<Full<Bytes>>>();
    let client = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(client);

    // What a day holds: one call at the first try, one at the third, one refused, one that nobody listed.
    for (method, statuses) in [("GET", [200; 3]), ("GET", [503, 502, 200]), ("POST", [503; 3]), ("GET", [418; 3])] {
        let url = flaky::server(statuses).await?;
        let request = Request::builder().method(method).uri(url).body(Full::default())?;
        client.clone().oneshot(request).await?;
    }

    let plain = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let answer = plain.get(metrics.parse()?).await?;
    print!("{}", String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()));
    Ok(())
}
