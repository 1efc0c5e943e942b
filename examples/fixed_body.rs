//! A client that takes one body type only, such as an erased transport, tonic's `Channel` or kube's client.
//!
//! A retry layer hands its own body type down. tower-http's `MapRequestBodyLayer` turns it into the client's.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, Error},
    rt::TokioExecutor,
};
use redial::{BoxError, CallReport, RetryLayer, StandardPolicy, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;

#[path = "support/flaky.rs"]
mod flaky;

/// The one body type of the client.
type Body = BoxBody<Bytes, BoxError>;

/// The client: whatever it is, its type does not say.
type Transport = BoxCloneSyncService<Request<Body>, Response<Incoming>, Error>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = flaky::server([503, 200]).await?;
    let transport = Transport::new(Client::builder(TokioExecutor::new()).build_http());

    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?))
        // Under the retry layer: from its body to the client's. Above it, it would hide the caller's body, which then
        // could not be cloned, only taped.
        .layer(MapRequestBodyLayer::new(Body::new))
        .map_request(|request: Request<Body>| {
            let attempt = redial::attempt_number(request.extensions()).unwrap_or_default();
            println!("attempt {attempt}: {} bytes", request.body().size_hint().exact().unwrap_or_default());
            request
        })
        .service(transport);

    let request = Request::put(url).body(Full::new(Bytes::from_static(b"one order")))?;
    let response = client.oneshot(request).await?;

    let attempts = response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len());
    println!("{} after {attempts} attempts", response.status());
    println!("{:?}", response.into_body().collect().await?.to_bytes());
    Ok(())
}
