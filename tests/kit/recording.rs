//! What is recorded is what was sent.

use http::{HeaderMap, HeaderValue, Method, Version};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

type Frames = Vec<Result<Frame<Bytes>, BoxError>>;

/// Headers of several lines and raw bytes, a body in two frames, and trailers.
fn request(url: &str) -> Request<BoxedBody> {
    let mut trailers = HeaderMap::new();
    trailers.append("x-sum", HeaderValue::from_static("7"));
    trailers.append("x-sum", HeaderValue::from_bytes(b"\xff").unwrap());
    let frames: Frames =
        vec![Ok(Frame::data("two ".into())), Ok(Frame::data("frames".into())), Ok(Frame::trailers(trailers))];
    Request::put(url)
        .header("x-many", "one")
        .header("x-raw", HeaderValue::from_bytes(b"caf\xe9 \xff\x80").unwrap())
        .header("x-many", "two")
        .header("trailer", "x-sum")
        .body(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync())
        .unwrap()
}

type BoxedBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

fn check(seen: &testing::Seen, version: Version) {
    let request = &seen.sent(1).requests[0];
    assert_eq!((&request.method, request.version), (&Method::PUT, version));
    assert_eq!(request.path, "/orders/7?q=a%20b&q=");
    assert_eq!(values(&request.headers, "x-many"), [b"one", b"two"]);
    assert_eq!(values(&request.headers, "x-raw"), [b"caf\xe9 \xff\x80"]);
    assert!(request.body.complete && request.body.is("two frames") && !request.body.is("two  rames"));
    assert_eq!((request.body.length, &*request.body.start), (10, &b"two frames"[..]));
    assert_eq!(values(request.trailers.as_ref().unwrap(), "x-sum"), [&b"7"[..], b"\xff"]);
}

#[tokio::test]
async fn a_request_over_a_socket() {
    for (http2, version) in [(false, Version::HTTP_11), (true, Version::HTTP_2)] {
        let server = play(http2, Reply::ok("done"));
        let answer = soon(client(http2).request(request(&server.url("/orders/7?q=a%20b&q=")))).await;
        assert_eq!(outcome(answer).await, OK);
        let seen = server.seen();
        check(&seen, version);
        assert_eq!((seen.requests[0].connection, seen.requests[0].attempt), (1, None));
    }
}

#[tokio::test]
async fn a_request_to_a_service() {
    let service = testing::service(Reply::ok("done"));
    assert_eq!(outcome(service.clone().oneshot(request("/orders/7?q=a%20b&q=")).await).await, OK);
    check(&service.seen(), Version::HTTP_11);
}

/// An answer with lines of one name, raw bytes and trailers.
#[tokio::test]
async fn an_answer_as_it_was_written() {
    let reply = Reply::status(418)
        .header("x-many", "one")
        .header("x-raw", b"caf\xe9 \xff\x80")
        .header("x-many", "two")
        .body("two ")
        .body("parts")
        .trailer("x-sum", b"\xff")
        .trailer("x-sum", "7");
    for wire in [Some(false), Some(true), None] {
        let (status, headers, body) = match wire {
            Some(http2) => {
                let server = play(http2, reply.clone());
                parts(soon(client(http2).request(post(&server.url("/")))).await.unwrap()).await
            }
            None => parts(testing::service(reply.clone()).oneshot(post("/")).await.unwrap()).await,
        };
        assert_eq!(status, 418);
        assert_eq!(values(&headers, "x-many"), [b"one", b"two"]);
        assert_eq!(values(&headers, "x-raw"), [b"caf\xe9 \xff\x80"]);
        assert_eq!(values(body.trailers().unwrap(), "x-sum"), [&b"\xff"[..], b"7"]);
        assert_eq!(body.to_bytes(), "two parts");
    }
}

async fn parts<B>(response: Response<B>) -> (u16, HeaderMap, http_body_util::Collected<Bytes>)
where
    B: Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let (head, body) = response.into_parts();
    (head.status.as_u16(), head.headers, body.collect().await.unwrap())
}

/// A large body, both ways: past every window of flow control, and past what is kept.
#[tokio::test]
async fn large_bodies() {
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    for http2 in [false, true] {
        let server = play(http2, Reply::ok(large.clone()));
        let request = Request::put(server.url("/")).body(Full::<Bytes>::from(large.clone())).unwrap();
        let response = soon(client(http2).request(request)).await.unwrap();
        assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), large);
        let body = &server.seen().requests[0].body;
        assert!(body.is(&large));
        assert_eq!(body.start, large[..64 * 1024]);
    }
}

/// A request is there as soon as its head is, its body as far as it has come, and complete when it is.
#[tokio::test]
async fn a_request_is_seen_while_it_comes() {
    for http2 in [false, true] {
        let server = play(http2, Reply::ok("done"));
        let (feed, frames) = unbounded_channel::<Result<Frame<Bytes>, BoxError>>();
        let next = |mut frames: UnboundedReceiver<_>| async move { Some((frames.recv().await?, frames)) };
        let body = StreamBody::new(Box::pin(futures_util::stream::unfold(frames, next)));
        let answer = tokio::spawn(client(http2).request(Request::put(server.url("/")).body(body).unwrap()));

        let seen = server.until(|seen| seen.requests.len() == 1).await;
        assert_eq!((seen.complete(), seen.requests[0].body.length, seen.in_flight()), (0, 0, 1));
        feed.send(Ok(Frame::data("half".into()))).unwrap();
        let seen = server.until(|seen| seen.body_bytes() == 4).await;
        assert_eq!((seen.complete(), seen.requests[0].body.sha256), (0, None));
        drop(feed);
        let seen = server.until(|seen| seen.complete() == 1).await;
        assert!(seen.requests[0].body.is("half"));
        assert_eq!(soon(answer).await.unwrap().unwrap().status(), 200);
        server.until(|seen| seen.in_flight() == 0).await;
    }
}

/// A body that its client breaks off is known to come no further.
#[tokio::test]
async fn a_body_that_breaks_off() {
    for http2 in [false, true] {
        for reply in [Reply::ok("never"), Reply::ok("at once").early()] {
            let server = play(http2, reply);
            let (feed, frames) = unbounded_channel::<Result<Frame<Bytes>, BoxError>>();
            let next = |mut frames: UnboundedReceiver<_>| async move { Some((frames.recv().await?, frames)) };
            let body = StreamBody::new(Box::pin(futures_util::stream::unfold(frames, next)));
            let answer = tokio::spawn(client(http2).request(Request::put(server.url("/")).body(body).unwrap()));
            feed.send(Ok(Frame::data("half".into()))).unwrap();
            let seen = server.until(|seen| seen.body_bytes() == 4).await;
            assert_eq!((seen.complete(), seen.broken()), (0, 0));
            feed.send(Err("broken".into())).unwrap();
            let seen = server.until(|seen| seen.broken() == 1).await;
            assert_eq!((seen.sent(1).complete(), seen.in_flight()), (0, 0));
            drop(answer);
        }
    }
}

/// Connections are numbered as they come; a kept one keeps its number.
#[tokio::test]
async fn connections_are_numbered() {
    for http2 in [false, true] {
        let server = play(http2, [Reply::ok("1"), Reply::ok("2"), Reply::close(), Reply::ok("4")]);
        let client = client(http2);
        for _ in 0..4 {
            soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await;
        }
        let seen = server.until(|seen| seen.ended == 1).await;
        let connections: Vec<_> = seen.sent(4).requests.iter().map(|request| request.connection).collect();
        assert_eq!((connections, seen.connections), (vec![1, 1, 1, 2], 2));
    }
}

/// An early answer does not wait for the body.
#[tokio::test]
async fn an_early_answer() {
    for http2 in [false, true] {
        let server = play(http2, Reply::status(413).early());
        let endless = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let request = Request::put(server.url("/")).body(endless).unwrap();
        assert_eq!(soon(client(http2).request(request)).await.unwrap().status(), 413);
        assert_eq!(server.seen().complete(), 0);
    }
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    for http2 in [false, true] {
        let server = play(http2, [Reply::ok("not sent"), Reply::ok("sent")]);
        let client = client(http2);
        for (method, length) in [(Method::HEAD, 0), (Method::GET, 4)] {
            let request = Request::builder().method(method).uri(server.url("/")).body(Full::<Bytes>::default());
            let response = soon(client.request(request.unwrap())).await.unwrap();
            assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes().len(), length);
        }
        assert_eq!(server.seen().connections, 1);
    }
}
