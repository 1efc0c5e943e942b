//! Overrides for a single request, in its extensions: they tighten the policy, and can add evidence.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{Backoff, Budget, CallReport, Deadline, RequestOptions, RetryLayer, StandardPolicy, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("shop", timeouts, Transient::usual())
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .budget(Budget::unlimited("these calls all fail, and each is to show its own options"))
        .build()?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());

    for (what, method, options) in [
        ("as the policy says", "GET", RequestOptions::new()),
        ("never retried", "GET", RequestOptions::new().never_retry()),
        ("at most two attempts", "GET", RequestOptions::new().attempts(2)),
        ("a POST without evidence", "POST", RequestOptions::new()),
        ("a POST with a statement", "POST", RequestOptions::new().idempotent("order numbers are unique")),
    ] {
        let url = flaky::server([503]).await?;
        let mut request = Request::builder().method(method).uri(url).body(Full::<Bytes>::default())?;
        request.extensions_mut().insert(options);
        // What is left of our own caller's time goes along as well.
        request.extensions_mut().insert(Deadline::after(Duration::from_secs(5)));
        let response = client.clone().oneshot(request).await?;
        let report = response.extensions().get::<CallReport>().ok_or("a call that failed has a report")?;
        let stop = report.stop().map(|stop| stop.to_string()).unwrap_or_default();
        println!("{what}: {} attempts, stopped: {stop}", report.attempts().len());
    }
    Ok(())
}
