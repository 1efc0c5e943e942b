//! A reqwest client with a policy: reqwest's requests and responses, with repeats. Needs nothing but the features:
//! `cargo run --features reqwest,testing --example reqwest_client`.

use std::{error::Error, time::Duration};

use redial::{
    CallReport, StandardPolicy, Timeouts, Transient,
    testing::{Reply, Server},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("an order")]);

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
    let inner = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;

    let client = redial::reqwest::client(inner, policy);
    let response = client.put(server.url("/orders/7")).json(&["one more"]).send().await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("{} after {attempts} attempts: {}", response.status(), response.text().await?);
    let seen = server.until(|seen| seen.complete() == 3).await;
    for request in &seen.sent(3).requests {
        println!("  {} {}, the whole body: {}", request.method, request.path, request.body.is(r#"["one more"]"#));
    }
    Ok(())
}
