//! What a request says, again.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use redial::{GrpcCode, StopReason, testing::Reply};
use tonic::{Code, Request, Status};

use super::support::*;

/// A message is in memory whatever its size: it is not taped.
#[tokio::test(start_paused = true)]
async fn a_large_message_is_repeated_whole() {
    let large = Bytes::from(vec![b'x'; 3 * 1024 * 1024]);
    let (mut client, service) = scripted([unavailable(), Reply::reset(), done()], idempotent());
    client.place(Request::new(large.clone())).await.unwrap();
    let seen = service.seen();
    assert!(seen.sent(3).requests.iter().all(|request| request.body.is(framed(&large))), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_message_is_a_message() {
    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    client.place(Request::new(Bytes::new())).await.unwrap();
    let seen = service.seen();
    assert!(seen.sent(2).requests.iter().all(|request| request.body.is(framed(""))), "{seen}");
}

/// These messages, each after a pause.
fn slowly(messages: Vec<Bytes>) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
    Box::pin(stream::iter(messages).then(|message| async {
        tokio::time::sleep(WAIT / 10).await;
        message
    }))
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_taped_and_repeated() {
    let messages = vec![Bytes::from("one"), Bytes::from("two"), Bytes::from("three")];
    let whole: Vec<u8> = messages.iter().flat_map(framed).collect();
    for messages in [slowly(messages.clone()), Box::pin(stream::iter(messages.clone()))] {
        let (mut client, service) = scripted([unavailable(), Reply::reset(), done()], idempotent());
        assert_eq!(client.collect(messages).await.unwrap().get_ref(), "done");
        let seen = service.seen();
        assert!(seen.sent(3).requests.iter().all(|request| request.body.is(&whole)), "{seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_too_large_for_the_tape_is_sent_once() {
    let messages = vec![Bytes::from(vec![b'x'; 50_000]); 3];
    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    let status = client.collect(slowly(messages.clone())).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(report(&status).stop(), Some(StopReason::BodyTooLarge));
    let whole: Vec<u8> = messages.iter().flat_map(framed).collect();
    let seen = service.seen();
    assert!(seen.sent(1).requests[0].body.is(&whole), "{seen}");
}

/// A message that cannot be encoded fails as it does without us: with its own code, and once.
#[tokio::test]
async fn a_message_that_cannot_be_encoded_is_the_callers_fault() {
    use tonic::client::Grpc;
    let server = redial::testing::Server::http2([done()]);
    let channel = redial::grpc::channel(channel(server.addr()), idempotent());
    let mut client = Grpc::new(channel).max_encoding_message_size(10);
    let place = http::uri::PathAndQuery::from_static("/shop.Orders/Place");
    client.ready().await.unwrap();
    let sent = client.unary(Request::new(Bytes::from(vec![0; 100])), place, Raw);
    let status: Status = soon(sent).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert_eq!(report(&status).stop(), Some(StopReason::Permanent));
    assert!(server.seen().complete() == 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_to_say_is_said_again() {
    let (mut client, service) = scripted([fails(GrpcCode::Unavailable), done()], idempotent());
    client.collect(stream::empty()).await.unwrap();
    let seen = service.seen();
    assert!(seen.sent(2).requests.iter().all(|request| request.body.complete && request.body.length == 0), "{seen}");
}

/// A body of a known length is framed as it is without us.
#[tokio::test]
async fn a_known_length_is_said() {
    use tower::ServiceExt;
    let server = redial::testing::Server::http2([unavailable(), done()]);
    let body = tonic::body::Body::new(http_body_util::Full::new(framed("an order")));
    let request = http::Request::post("/shop.Orders/Place").body(body).unwrap();
    let client = redial::grpc::channel(channel(server.addr()), idempotent());
    soon(client.oneshot(request)).await.unwrap();
    let seen = soon(server.until(|seen| seen.complete() == 2)).await;
    assert!(seen.requests.iter().all(|request| request.headers["content-length"] == "13"), "{seen}");
}
