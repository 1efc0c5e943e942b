//! Bodies of requests and of answers.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use redial::{AttemptBody, CallReport, RetryLayer, StopReason};
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    call,
    common::raw_h1::{self, Act},
    policies::policy,
    script::{Script, ScriptBody, request, status, text},
    stop,
};

#[tokio::test(start_paused = true)]
async fn c084_a_stream_is_sent_once_and_no_error_because_of_a_retry_layer() {
    // Longer than the tape: it can be sent, and cannot be sent again.
    let stream = || {
        let chunk = Bytes::from(vec![7; 16 * 1024]);
        let frames = (0..8).map(move |_| Ok::<_, BoxError>(Frame::data(chunk.clone())));
        Request::post("http://api.example/upload").body(StreamBody::new(futures_util::stream::iter(frames))).unwrap()
    };
    for code in [200, 503] {
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sizes);
        let server = service_fn(move |request: Request<AttemptBody<_>>| {
            let seen = Arc::clone(&seen);
            async move {
                let body = request.into_body().collect().await?;
                seen.lock().unwrap().push(body.to_bytes().len());
                Ok::<_, BoxError>(Response::builder().status(code).body(Full::<Bytes>::default()).unwrap())
            }
        });
        let mut keyed = stream();
        keyed.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
        let client = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(server);
        let answer = client.oneshot(keyed).await.unwrap();
        assert_eq!((answer.status().as_u16(), &**sizes.lock().unwrap()), (code, &[8 * 16 * 1024][..]));
        assert_eq!(stop(&answer), (code == 503).then_some(StopReason::BodyTooLarge));
    }
}

#[tokio::test(start_paused = true)]
async fn c089_an_answer_that_comes_in_pieces_is_handed_on_whole() {
    let pieces = StreamBody::new(futures_util::stream::unfold(0, |piece| async move {
        let text = ["hello ", "world"].get(piece)?;
        if piece == 1 {
            tokio::task::yield_now().await;
        }
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(text.as_bytes()))), piece + 1))
    }));
    let pieces = Arc::new(Mutex::new(Some(BodyExt::boxed_unsync(pieces))));
    let server = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
        let body = pieces.lock().unwrap().take().expect("one request");
        async move { Ok::<_, BoxError>(Response::new(body)) }
    });
    let answer = RetryLayer::new(policy()).layer(server).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello world");
}

#[tokio::test(start_paused = true)]
async fn c093_a_form_in_parts_is_the_same_on_both_attempts() {
    let form = "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\none\r\n--b\r\n\
                content-disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n\0\x01two\r\n--b--\r\n";
    let request = Request::post("http://api.example/form")
        .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
        .header("idempotency-key", "k1")
        .body(Full::new(Bytes::from_static(form.as_bytes())))
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::<(HeaderMap, Bytes)>::new()));
    let server = {
        let seen = Arc::clone(&seen);
        service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
            let seen = Arc::clone(&seen);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let mut seen = seen.lock().unwrap();
                seen.push((parts.headers, body));
                let code = if seen.len() == 1 { 503 } else { 200 };
                Ok::<_, BoxError>(Response::builder().status(code).body(Full::<Bytes>::default()).unwrap())
            }
        })
    };
    RetryLayer::new(policy()).layer(server).oneshot(request).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(
        (&seen[0].0[CONTENT_TYPE], &seen[0].1),
        (&seen[1].0[CONTENT_TYPE], &Bytes::from_static(form.as_bytes()))
    );
    assert_eq!(seen[0].1, seen[1].1);
}

#[tokio::test(start_paused = true)]
async fn c096_an_answer_that_has_no_body_is_whole() {
    for (method, code) in [(Method::HEAD, 200), (Method::GET, 304), (Method::GET, 204)] {
        let script = Script::new([status(code).header("content-length", "1234")]);
        let answer = call(&policy(), &script, request(method)).await.unwrap();
        assert_eq!((answer.status().as_u16(), script.count()), (code, 1));
        assert!(answer.extensions().get::<CallReport>().is_none());
        assert_eq!(text(answer).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn c090_an_answer_that_stalls_is_cut_off_and_not_asked_for_again() {
    let script = Script::new([status(200).body(ScriptBody::text("h").stalling())]);
    let client = ServiceBuilder::new()
        .layer(redial::TimeoutLayer::new().body_idle(std::time::Duration::from_secs(1)))
        .layer(RetryLayer::new(policy()))
        .service(script.clone());
    let mut body = client.oneshot(request(Method::GET)).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "h");
    assert!(body.frame().await.unwrap().unwrap_err().is_timeout());
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn c141_an_answer_whose_body_breaks_was_handed_on() {
    // D22: the caller holds the head; a layer that reads the body as part of the attempt is another layer's task.
    let script = Script::new([status(200).body(ScriptBody::text("h").failing())]);
    let answer = call(&policy(), &script, request(Method::GET)).await.unwrap();
    assert_eq!((answer.status(), script.count()), (StatusCode::OK, 1));
    assert!(answer.into_body().collect().await.is_err());
    assert_eq!(script.count(), 1);
}

/// D22: the head was handed on, so that none of these is repeated; the caller meets the broken end, where one can be
/// told from a whole one.
#[tokio::test]
async fn c097_an_answer_cut_short_is_no_whole_one() {
    let cases = [
        ("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nhello", false),
        ("HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", false),
        ("HTTP/1.0 200 X\r\n\r\nhello", true),
    ];
    for (answer, whole) in cases {
        let server = raw_h1::start(vec![vec![Act::Request, raw_h1::send(answer), Act::Close]]).await;
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
        let request = Request::get(server.url("http")).body(Full::<Bytes>::default()).unwrap();
        let answer = RetryLayer::new(policy()).layer(client).oneshot(request).await.unwrap();
        assert_eq!(answer.into_body().collect().await.is_ok(), whole);
        assert_eq!(server.seen().requests, 1);
    }
}
