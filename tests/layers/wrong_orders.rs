//! What the pages of the layers say of the wrong order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redial::{
    BufferResponseLayer, RecoverLayer, RetryLayer, TimeoutLayer,
    layers::Failure,
    testing::{Reply, ReplyBody, service},
};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::decompression::DecompressionLayer;

use crate::{
    get, paused, read,
    resuming::{ETAG, FILE, broken, given_up, layer, rest},
};

#[tokio::test(start_paused = true)]
async fn buffering_above_the_retry_layer_repeats_nothing() {
    let half = Reply::ok("01234").header("content-length", "10").close_within();
    let server = service([half, Reply::ok("0123456789")]);
    let stack = ServiceBuilder::new()
        .layer(BufferResponseLayer::new(1000))
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    let error = stack.oneshot(get("/")).await.unwrap_err();
    assert!(error.is_body() && error.stop().is_none(), "{error}");
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn resuming_below_the_retry_layer_is_past_its_policy() {
    let server = service([broken(3), Reply::status(503), rest(3)]);
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(paused().build().unwrap())).layer(layer()).service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (1, "given up after 1 resume: an answer of 503 holds nothing of it".to_owned()));
    server.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn resuming_within_the_time_for_a_head_ends_with_it() {
    let late = Reply::ok(&FILE[..3]).header("content-length", "10").header("etag", ETAG);
    let server = service([late.pause(Duration::from_secs(5)).close_within(), rest(3)]);
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().head(Duration::from_secs(2)))
        .layer(layer())
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: no time left".to_owned()));
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn resuming_what_is_decompressed_below_is_not_done() {
    let server = service([broken(3).header("content-encoding", "gzip"), rest(3)]);
    let stack = ServiceBuilder::new()
        .layer(layer())
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(DecompressionLayer::new())
        .service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: its length is not known".to_owned()));
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn recovering_below_the_retry_layer_hides_failures_from_it() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = service([Reply::reset(), Reply::ok("done")]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(RecoverLayer::new(move |_: Failure<ReplyBody>| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, redial::Error>(http::Response::new("instead".into()))
        }))
        .service(server.clone());
    assert_eq!(read(stack.oneshot(get("/")).await.unwrap().into_body()).await.unwrap(), "instead");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    server.seen().sent(1);
}
