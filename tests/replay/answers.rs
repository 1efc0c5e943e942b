//! The bodies of answers: the caller's, once their head was handed on.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use redial::BoxError;
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::{
    common::raw_h1::{self, Act},
    support::{
        WIRES, Wire, attempts, bodies, client, put,
        site::{Site, answer_with},
        soon, stop,
    },
};

fn head(status: u16, length: usize) -> Act {
    raw_h1::send(&format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n"))
}

/// The head was handed on, so the call is over: what comes later is for whoever reads the body.
#[tokio::test]
async fn c092_a_body_that_breaks_is_not_retried() {
    let body = Act::Send(vec![b'x'; 300_000]);
    let server = raw_h1::start(vec![vec![Act::Request, head(200, 1_000_000), body, Act::Reset]]).await;
    let call = client(Wire::Http1).oneshot(put(&server.url("http"), Empty::<Bytes>::new()));
    let response = soon(call).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 1));
    assert!(soon(response.into_body().collect()).await.is_err());
    assert_eq!(server.seen().requests, 1);
}

#[tokio::test]
async fn c092_a_stream_that_is_reset_after_its_head_neither() {
    // A reset overtakes a head that is still to be written: it waits until the client has that.
    let headed = Arc::new(Notify::new());
    let gate = Arc::clone(&headed);
    let site = Site::start(Wire::Http2, move |number, request, log| {
        let gate = Arc::clone(&gate);
        async move {
            log.read(number, request).await;
            let broken = futures_util::stream::once(async move {
                gate.notified().await;
                Err(BoxError::from("broken"))
            });
            let frames = futures_util::stream::iter([bodies::data("some")]).chain(broken);
            Ok(answer_with(200, BodyExt::boxed(StreamBody::new(frames))))
        }
    })
    .await;
    let response = soon(client(Wire::Http2).oneshot(put(&site.url(), Full::new(Bytes::from("x"))))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 1));
    headed.notify_one();
    assert!(soon(response.into_body().collect()).await.is_err());
    assert_eq!(site.seen().started, 1);
}

/// All that was announced has come: what happens to the connection then is nobody's failure.
#[tokio::test]
async fn c098_a_reset_after_the_whole_body_is_a_success() {
    // The client says that it has read the body, so that the reset cannot overtake it.
    let gate = Arc::new(Notify::new());
    let body = Act::Send(vec![b'x'; 4000]);
    let script = vec![Act::Request, head(200, 4000), body, Act::Wait(gate.clone()), Act::Reset];
    let server = raw_h1::start(vec![script]).await;
    let call = client(Wire::Http1).oneshot(put(&server.url("http"), Empty::<Bytes>::new()));
    let response = soon(call).await.unwrap();
    assert_eq!(attempts(&response), 1);
    assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes().len(), 4000);
    gate.notify_one();
    server.until(|seen| seen.ended == 1).await;
    assert_eq!(server.seen().requests, 1);
}

#[tokio::test]
async fn c101_the_last_answer_is_returned_and_readable() {
    for wire in WIRES {
        let site = Site::answering(wire, [503]).await;
        let response = soon(client(wire).oneshot(put(&site.url(), Full::new(Bytes::from("x"))))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (503, 3), "{wire:?}");
        assert_eq!(stop(&response), Some(redial::StopReason::Attempts));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "e3");
    }
}

#[tokio::test]
async fn c088_trailers_of_requests_and_of_the_last_answer() {
    for wire in WIRES {
        let site = Site::start(wire, |number, request, log| async move {
            log.read(number, request).await;
            let frames = futures_util::stream::iter([bodies::data("12345"), bodies::trailers("x-sum", "1")]);
            let mut response = answer_with(if number < 3 { 503 } else { 200 }, BodyExt::boxed(StreamBody::new(frames)));
            response.headers_mut().insert("trailer", "x-sum".parse().unwrap());
            Ok(response)
        })
        .await;
        let body = bodies::streaming([bodies::data("12345"), bodies::trailers("x-sum", "1")]);
        let mut request = put(&site.url(), body);
        request.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        // A server sends HTTP/1.1 trailers only to those who ask for them.
        if wire == Wire::Http1 {
            request.headers_mut().insert("te", "trailers".parse().unwrap());
        }
        let response = soon(client(wire).oneshot(request)).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3), "{wire:?}");
        let answer = response.into_body().collect().await.unwrap();
        assert_eq!(answer.trailers().expect("trailers")["x-sum"], "1", "{wire:?}");
        assert_eq!(answer.to_bytes(), "12345");
        let arrivals = site.seen().arrivals;
        assert!(arrivals.len() == 3 && arrivals.iter().all(|arrival| arrival.trailers.is_some()), "{wire:?}");
    }
}
