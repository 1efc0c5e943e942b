//! A request for another protocol on its connection.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use redial::{Failure, StopReason, TimeoutLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::{ServiceBuilder, ServiceExt};

use super::{
    End, call,
    common::raw_h1::{self, Act},
};
use crate::support::{Wire, client, policy, request, soon};

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

/// Longer than any timeout here.
const LATER: Duration = Duration::from_secs(3600);

fn socket(url: &str) -> Request<Full<bytes::Bytes>> {
    let mut request = request(Method::GET, url, Full::default());
    request.headers_mut().insert("connection", "Upgrade".parse().unwrap());
    request.headers_mut().insert("upgrade", "websocket".parse().unwrap());
    request
}

/// Speaks over the connection that was switched, once every timer that may still be armed has had its time.
async fn speaks<B>(answer: http::Response<B>) {
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    tokio::time::pause();
    tokio::time::advance(LATER).await;
    tokio::time::resume();
    let mut channel = TokioIo::new(soon(hyper::upgrade::on(answer)).await.unwrap());
    channel.write_all(b"ping").await.unwrap();
    let mut pong = [0; 4];
    soon(channel.read_exact(&mut pong)).await.unwrap();
    assert_eq!(&pong, b"pong");
}

fn switches() -> Vec<Act> {
    vec![Act::Head, raw_h1::send(SWITCH), Act::Read(4), raw_h1::send("pong")]
}

/// The channel is the caller's, with the client's own means to get at it, for as long as it lasts.
#[tokio::test]
async fn c054_a_101_is_handed_on_and_no_timer_outlives_it() {
    let server = raw_h1::start(vec![switches()]).await;
    let answer = soon(client(Wire::Http1).oneshot(socket(&server.url("http")))).await.unwrap();
    speaks(answer).await;
    assert_eq!(server.seen().requests, 1);

    let server = raw_h1::start(vec![switches()]).await;
    let whole = TimeoutLayer::new().head(Duration::from_secs(5)).total(Duration::from_secs(10));
    let stack = ServiceBuilder::new().layer(whole.body_idle(Duration::from_secs(1))).service(client(Wire::Http1));
    let answer = soon(stack.oneshot(socket(&server.url("http")))).await.unwrap();
    speaks(answer).await;
}

/// A layer never repeats an upgrade by itself: one rule for a refusal, a lost answer and a channel that broke, which says
/// so in its report. The report's 503 tells that there was no channel: whoever wants that repeated says so with a block.
#[tokio::test]
async fn c054_a_503_before_a_channel_is_repeated_by_a_block() {
    let refusing = vec![Act::Head, raw_h1::answer(503, "")];
    let server = raw_h1::start(vec![refusing.clone()]).await;
    let end = call(&client(Wire::Http1), socket(&server.url("http"))).await;
    assert_eq!(end, End::answered(503, 1, StopReason::Upgrade));
    assert_eq!(server.seen().requests, 1);

    let script = [refusing, switches()].concat();
    let server = raw_h1::start(vec![script]).await;
    let (client, policy) = (client(Wire::Http1), policy().build().unwrap());
    let answer = redial::retry(&policy, |_| {
        let call = client.clone().oneshot(socket(&server.url("http")));
        async { Failure::check(call.await?) }
    });
    let answer = soon(answer.idempotent("a 503 is no channel").into_future()).await.unwrap();
    speaks(answer).await;
    assert_eq!(server.seen().requests, 2);
}
