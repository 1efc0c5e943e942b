//! A buffer between two retry layers.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{RetryLayer, StandardPolicy};
use tower::{Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

fn policy() -> StandardPolicy {
    unimplemented!()
}

async fn oneshot(request: Request<Full<Bytes>>) {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .buffer(8)
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = client.oneshot(request).await;
}

async fn ready_call(request: Request<Full<Bytes>>) {
    let mut client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .buffer(8)
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = client.ready().await.unwrap().call(request).await;
}

fn returned() -> impl Service<Request<Full<Bytes>>> {
    ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .buffer(8)
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http())
}

fn boxed() {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .buffer(8)
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = BoxCloneSyncService::<Request<Full<Bytes>>, _, _>::new(client);
}

fn main() {}
