//! The bodies of answers: the caller's, once their head was handed on.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use redial::testing::{Reason, Reply};
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::{
    common::raw_h1::{self, Act, send},
    play,
    support::{WIRES, Wire, attempts, bodies, client, put, soon, stop},
};

/// The head was handed on, so the call is over: what comes later is for whoever reads the body.
#[tokio::test]
async fn c092_a_body_that_breaks_is_not_retried() {
    let some = || Reply::ok(vec![b'x'; 300_000]);
    for (wire, reply) in [
        (Wire::Http1, some().close_within()),
        (Wire::Http2, some().close_within()),
        (Wire::Http2, Reply::ok("some").reset_stream_within(Reason::InternalError)),
    ] {
        let server = play(wire, reply);
        let call = client(wire).oneshot(put(&server.url("/x"), Empty::<Bytes>::new()));
        let response = soon(call).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 1));
        assert!(soon(response.into_body().collect()).await.is_err());
        server.seen().sent(1);
    }
}

/// All that was announced has come: what happens to the connection then is nobody's failure.
#[tokio::test]
async fn c098_a_reset_after_the_whole_body_is_a_success() {
    // The client says that it has read the body, so that the reset cannot overtake it.
    let gate = Arc::new(Notify::new());
    let head = send("HTTP/1.1 200 X\r\ncontent-length: 4000\r\n\r\n");
    let body = Act::Send(vec![b'x'; 4000]);
    let script = vec![Act::Request, head, body, Act::Wait(gate.clone()), Act::Reset];
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
        let replies = ["e1", "e2", "e3"].map(|text| Reply::status(503).body(text));
        let server = play(wire, replies);
        let response = soon(client(wire).oneshot(put(&server.url("/x"), Full::new(Bytes::from("x"))))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (503, 3), "{wire:?}");
        assert_eq!(stop(&response), Some(redial::StopReason::Attempts));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "e3");
    }
}

#[tokio::test]
async fn c088_trailers_of_requests_and_of_the_last_answer() {
    for wire in WIRES {
        let replies = [503, 503, 200].map(|status| Reply::status(status).body("12345").trailer("x-sum", "1"));
        let server = play(wire, replies);
        let body = bodies::streaming([bodies::data("12345"), bodies::trailers("x-sum", "1")]);
        let mut request = put(&server.url("/x"), body);
        request.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        let response = soon(client(wire).oneshot(request)).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3), "{wire:?}");
        let answer = response.into_body().collect().await.unwrap();
        assert_eq!(answer.trailers().expect("trailers")["x-sum"], "1", "{wire:?}");
        assert_eq!(answer.to_bytes(), "12345");
        let seen = server.seen();
        assert!(seen.sent(3).requests.iter().all(|request| request.trailers.is_some()), "{wire:?}");
    }
}
