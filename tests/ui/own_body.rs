//! A body of the user's own, which does not say how it is sent again.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{RetryLayer, StandardPolicy};
use tower::{Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

struct MyBody;

impl Body for MyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }
}

fn policy() -> StandardPolicy {
    unimplemented!()
}

async fn oneshot(request: Request<MyBody>) {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = client.oneshot(request).await;
}

async fn ready_call(request: Request<MyBody>) {
    let mut client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = client.ready().await.unwrap().call(request).await;
}

fn returned() -> impl Service<Request<MyBody>> {
    ServiceBuilder::new().layer(RetryLayer::new(policy())).service(Client::builder(TokioExecutor::new()).build_http())
}

fn boxed() {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let _ = BoxCloneSyncService::<Request<MyBody>, _, _>::new(client);
}

fn main() {}
