//! A policy per host, method and path: reads are repeated, an order is repeated with its key, all else is sent once.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    Backoff, Budget, CallReport, RetryLayer, Routes, StandardPolicy, Timeouts, Transient, policy::StandardPolicyBuilder,
};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // One budget for the provider: a retry of an order and one of a read cost it the same.
    let budget = Budget::usual();
    let shop = |operation: &str| -> StandardPolicyBuilder {
        let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
        let backoff = Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1));
        StandardPolicy::builder("shop", timeouts, Transient::usual())
            .operation(operation)
            .backoff(backoff)
            .budget(budget.clone())
    };
    let routes = Routes::builder(StandardPolicy::unretried("unrouted", Duration::from_secs(30))?)
        .route("127.0.0.1 GET /{*any}", shop("read").build()?)
        .route("127.0.0.1 POST /orders", shop("order").attempts(2).build()?)
        .build()?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(routes.clone()))
        .service(Client::builder(TokioExecutor::new()).build_http());

    for (method, path, key) in [
        (Method::GET, "orders/42", None),
        (Method::POST, "orders", Some("8e03978e-40d5-43e8-bc93-6894a57f9324")),
        (Method::POST, "orders", None),
        (Method::POST, "refunds", None),
    ] {
        // Each call meets a server of its own that fails once.
        let url = flaky::server([503, 200]).await?;
        let mut request = Request::builder().method(&method).uri(format!("{url}{path}"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = client.clone().oneshot(request.body(Full::<Bytes>::default())?).await?;
        let report = response.extensions().get::<CallReport>();
        let attempts = report.map_or(1, |report| report.attempts().len());
        let stop = report.and_then(CallReport::stop).map(|stop| format!(", stopped: {stop}")).unwrap_or_default();
        let keyed = if key.is_some() { " with a key" } else { "" };
        println!("{method} /{path}{keyed}: {} after {attempts} attempts{stop}", response.status().as_u16());
    }
    println!("unmatched: {}", routes.unmatched());
    Ok(())
}
