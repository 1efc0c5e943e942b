//! What is in memory already.

use std::collections::HashSet;

use bytes::Bytes;
use http::{Method, header};
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use redial::{AttemptBody, Replay, testing::SeenRequest};
use tower::ServiceExt;

use crate::{
    answering,
    support::{WIRES, Wire, attempts, bodies, client, noise, put, raw, request, soon, stop},
};

/// What says where a body ends.
pub fn framing(request: &SeenRequest) -> [Option<&str>; 2] {
    [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].map(|name| request.headers.get(name)?.to_str().ok())
}

/// Sends a body through two failures, and compares what arrived each time.
async fn arrives_three_times<B>(body: impl Fn() -> B, bytes: &[u8])
where
    B: Replay<Data: Send> + Send + 'static,
    AttemptBody<B>: Unpin,
{
    for wire in WIRES {
        let server = answering(wire, [503, 503, 200]);
        let response = soon(client(wire).oneshot(put(&server.url("/x"), body()))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response), stop(&response)), (200, 3, None), "{wire:?}");
        let length = bytes.len().to_string();
        for request in &server.seen().sent(3).requests {
            assert!(request.body.is(bytes), "{wire:?}, attempt at {:?}", request.at);
            assert_eq!(framing(request), [Some(&*length), None], "{wire:?}, attempt at {:?}", request.at);
        }
    }
}

#[tokio::test]
async fn a_small_body() {
    arrives_three_times(|| Full::new(noise(25)), &noise(25)).await;
}

#[tokio::test]
async fn a_large_body() {
    let bytes = noise(1 << 20);
    arrives_three_times(|| Full::new(bytes.clone()), &bytes).await;
}

#[tokio::test]
async fn a_text() {
    arrives_three_times(|| String::from("twenty-five bytes of text"), b"twenty-five bytes of text").await;
}

/// Past the tape's cap, but its first frame is the whole of it.
#[tokio::test]
async fn a_large_body_behind_a_box() {
    let bytes = noise(1 << 20);
    let boxed = || BoxBody::new(Full::new(bytes.clone()).map_err(|never| match never {}));
    arrives_three_times::<BoxBody<Bytes, std::io::Error>>(boxed, &bytes).await;
}

#[tokio::test]
async fn an_empty_body() {
    for wire in WIRES {
        for method in [Method::PUT, Method::GET] {
            let server = answering(wire, [503, 200]);
            let request = request(method.clone(), &server.url("/x"), Empty::<Bytes>::new());
            let response = soon(client(wire).oneshot(request)).await.unwrap();
            assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
            let seen = server.seen();
            let framings: HashSet<_> = seen.sent(2).requests.iter().map(framing).collect();
            assert_eq!(framings.len(), 1, "{wire:?} {method}: {framings:?}");
            assert!(seen.requests.iter().all(|request| request.body.is("")));
        }
    }
}

#[tokio::test]
async fn c081_both_requests_are_the_same_bytes() {
    let json = r#"{"foo":"bar","baz":"bat"}"#;
    let (server, requests) = raw::keeping([500, 200]).await;
    let body = Full::new(Bytes::from(json));
    let response = soon(client(Wire::Http1).oneshot(put(&server.url("http"), body))).await.unwrap();
    assert_eq!(response.status(), 200);
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    let text = String::from_utf8(requests[0].clone()).unwrap();
    assert!(text.contains("content-length: 25\r\n") && !text.contains("transfer-encoding"), "{text}");
    assert!(text.ends_with(&format!("\r\n\r\n{json}")), "{text}");
}

/// A body of unknown size is framed in chunks, on every attempt, and cut at the same places.
#[tokio::test]
async fn c081_a_chunked_one_too() {
    let (server, requests) = raw::keeping([500, 500, 200]).await;
    let body = bodies::streaming([bodies::data(r#"{"foo":"bar","#), bodies::data(r#""baz":"bat"}"#)]);
    let response = soon(client(Wire::Http1).oneshot(put(&server.url("http"), body))).await.unwrap();
    assert_eq!(response.status(), 200);
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    let texts = requests.iter().map(|request| String::from_utf8_lossy(request)).collect::<HashSet<_>>();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let text = String::from_utf8(requests[0].clone()).unwrap();
    assert!(text.contains("transfer-encoding: chunked\r\n") && !text.contains("content-length"), "{text}");
    assert!(text.ends_with("D\r\n{\"foo\":\"bar\",\r\nC\r\n\"baz\":\"bat\"}\r\n0\r\n\r\n"), "{text}");
}

#[tokio::test]
async fn c082_three_identical_requests_and_then_the_answer() {
    let (server, requests) = raw::keeping([500]).await;
    let body = Full::new(Bytes::from(r#"{"foo":"bar","baz":"bat"}"#));
    let response = soon(client(Wire::Http1).oneshot(put(&server.url("http"), body))).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (500, 3));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "e3");
    let requests = requests.lock().unwrap();
    assert!(requests.len() == 3 && requests.iter().all(|request| *request == requests[0]));
}
