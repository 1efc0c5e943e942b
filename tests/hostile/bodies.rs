//! Response bodies that are read as part of the attempt.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use redial::{
    AttemptBody, BoxError, BufferResponseLayer, RetryLayer,
    testing::{Reason, Reply, service},
};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::{
    policies::policy,
    script::{Script, ScriptBody, ms, request, status},
};

/// An endless answer ("a body may be endless"): events that come now and then, never as many as the limit. The caller gets
/// it, as it does without the layer; it is not repeated, and not cut off.
#[tokio::test(start_paused = true)]
async fn a_stream_of_events_is_handed_on() {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(0));
    let count = asked.clone();
    let client = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
        *count.lock().unwrap() += 1;
        let events = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(ms(100)).await;
            Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"data: x\n\n"))), ()))
        });
        let body = BodyExt::boxed_unsync(StreamBody::new(events.boxed()));
        async { Ok::<_, BoxError>(Response::builder().header("content-type", "text/event-stream").body(body).unwrap()) }
    });
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(256 * 1024));
    let result = stack.service(client).oneshot(request(Method::GET)).await;
    assert_eq!(*asked.lock().unwrap(), 1, "asked again and again for what never ends");
    assert!(result.is_ok());
}

/// A refused stream proves nothing once the head has come: a POST is not repeated.
#[tokio::test]
async fn a_body_that_is_refused_is_no_proof() {
    let server = service([Reply::ok("half").reset_stream_within(Reason::RefusedStream), Reply::ok("twice")]);
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(1 << 20));
    let error = stack.service(server.clone()).oneshot(request(Method::POST)).await.map(drop).unwrap_err();
    server.seen().sent(1);
    assert!(!error.fault().unwrap().is_unsent());
}

/// The limit is a limit: a byte more streams. (A frame counts as 64 bytes at least.)
#[tokio::test(start_paused = true)]
async fn at_the_limit_and_a_byte_over() {
    const TEXT: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";
    for (limit, whole) in [(70, true), (69, false), (0, false)] {
        let script = Script::new([status(200).body(ScriptBody::text(TEXT))]);
        let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(limit));
        let response = stack.service(script).oneshot(request(Method::GET)).await.unwrap();
        assert_eq!(response.body().size_hint().exact(), Some(70));
        assert_eq!(whole, !format!("{:?}", response.body()).contains("whole: false"), "{:?}", response.body());
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), TEXT);
    }
}

/// Endless empty frames end.
#[tokio::test(start_paused = true)]
async fn endless_nothing_is_bounded() {
    let client = service_fn(|_: Request<AttemptBody<Full<Bytes>>>| {
        let nothing = futures_util::stream::repeat_with(|| Ok::<_, BoxError>(Frame::data(Bytes::new())));
        async { Ok::<_, BoxError>(Response::new(StreamBody::new(nothing))) }
    });
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(4_096));
    stack.service(client).oneshot(request(Method::GET)).await.unwrap();
}

/// HEAD, 204 and 304 have none, and are not waited for; a stalled one of a failure is not read.
#[tokio::test(start_paused = true)]
async fn without_a_body() {
    let start = Instant::now();
    for (method, code) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304), (Method::GET, 404)] {
        let silent = code == 404 || code == 304;
        let body = if silent { ScriptBody::silent() } else { ScriptBody::text("") };
        let script = Script::new([status(code).body(body)]);
        let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(4_096));
        stack.service(script).oneshot(request(method)).await.unwrap();
    }
    assert!(start.elapsed() < Duration::from_millis(1), "{:?}", start.elapsed());
}

/// Trailers, size and end are those of the response.
#[tokio::test(start_paused = true)]
async fn trailers_are_kept() {
    let server = service([Reply::ok("abc").trailer("x-sum", "1")]);
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(BufferResponseLayer::new(4_096));
    let all = stack.service(server).oneshot(request(Method::GET)).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(all.trailers().unwrap()["x-sum"], "1");
}
