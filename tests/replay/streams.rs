//! What is taped as it streams.

use std::{
    collections::HashSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request};
use http_body_util::{BodyExt, StreamBody};
use redial::{
    RetryLayer, StopReason,
    testing::{self, Readiness, Reply, Script},
};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    answering,
    memory::framing,
    play,
    support::{
        WIRES, Wire, attempts, bodies, client, noise, policy, put, request,
        site::{Site, answer},
        soon, stop,
    },
};

/// The tape's cap.
const CAP: usize = 64 * 1024;

#[tokio::test]
async fn under_the_cap_it_arrives_whole_each_time_with_its_trailers() {
    for wire in WIRES {
        let server = answering(wire, [503, 503, 200]);
        let bytes = noise(CAP);
        let mut frames = bodies::chunked(&bytes, 10_000);
        frames.push(bodies::trailers("x-sum", "1"));
        let mut request = put(&server.url("/x"), bodies::streaming(frames));
        // Without this announcement HTTP/1.1 has no trailers.
        request.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        let response = soon(client(wire).oneshot(request)).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3), "{wire:?}");
        let seen = server.seen();
        let framings: HashSet<_> = seen.sent(3).requests.iter().map(framing).collect();
        assert_eq!(framings.len(), 1, "{wire:?}: {framings:?}");
        for request in &seen.requests {
            assert!(request.body.is(&bytes), "{wire:?}");
            assert_eq!(request.trailers.as_ref().expect("trailers")["x-sum"], "1", "{wire:?}");
        }
    }
}

/// One byte past the cap, and far past it.
#[tokio::test]
async fn past_the_cap_it_is_sent_once_and_streams_fully() {
    for wire in WIRES {
        for length in [CAP + 1, 1 << 20] {
            let server = play(wire, [Reply::status(503).body("e1"), Reply::ok("")]);
            let bytes = noise(length);
            let body = bodies::streaming(bodies::chunked(&bytes, 10_000));
            let response = soon(client(wire).oneshot(put(&server.url("/x"), body))).await.unwrap();
            assert_eq!((response.status().as_u16(), attempts(&response)), (503, 1), "{wire:?}");
            assert_eq!(stop(&response), Some(StopReason::BodyTooLarge));
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "e1");
            assert!(server.seen().sent(1).requests[0].body.is(&bytes), "{wire:?}");
        }
    }
}

/// An upload without end is answered while it goes on; the answer is the caller's.
#[tokio::test]
async fn an_infinite_body_with_an_early_answer_ends() {
    for wire in WIRES {
        let site = Site::start(wire, |_, request: Request<_>| async move {
            let mut body: hyper::body::Incoming = request.into_body();
            let mut read = 0;
            // So much has left the tape that it is past its cap.
            while read <= 2 * CAP {
                read += body.frame().await.unwrap()?.data_ref().map_or(0, Bytes::len);
            }
            Ok(answer(503, "enough"))
        })
        .await;
        let polled = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polled);
        let frames = std::iter::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            bodies::data(vec![7; 16 * 1024])
        });
        let body = bodies::streaming(frames);
        let response = soon(client(wire).oneshot(put(&site.url(), body))).await.unwrap();
        assert_eq!((response.status().as_u16(), stop(&response)), (503, Some(StopReason::BodyTooLarge)), "{wire:?}");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "enough");
        assert_eq!(site.seen().started, 1);
        // Backpressure, not the body's length, decides how much was taken from it.
        assert!(polled.load(Ordering::Relaxed) < 4096);
    }
}

/// An endless body below the cap is repeated like any other: what is taped first, then what goes on.
#[tokio::test]
async fn an_infinite_body_that_begins_slowly_goes_on_in_the_second_attempt() {
    for wire in WIRES {
        let site = Site::start(wire, |number, request: Request<_>| async move {
            let mut body: hyper::body::Incoming = request.into_body();
            let mut read = Vec::new();
            let enough = if number == 1 { 3 } else { 6 };
            while read.len() < enough {
                read.extend_from_slice(&body.frame().await.unwrap()?.into_data().unwrap_or_default());
            }
            Ok(if number == 1 { answer(503, "") } else { answer(200, read) })
        })
        .await;
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("one")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&site.url(), body)));
        site.until(|seen| seen.started == 2).await;
        feed.send(bodies::data("two")).unwrap();
        let response = soon(call).await.unwrap().unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "onetwo", "{wire:?}");
    }
}

/// The stream is refused before the body has anything to send: a tape that had counted a frame as sent, or sent one
/// twice, would show.
#[tokio::test]
async fn c085_first_chunk_once() {
    let server = play(Wire::Http2, [Reply::refused_stream().early(), Reply::ok("")]);
    let (feed, body) = bodies::fed();
    let request = request(Method::POST, &server.url("/x"), body);
    let call = tokio::spawn(client(Wire::Http2).oneshot(request));
    server.until(|seen| seen.requests.len() == 2).await;
    for frame in ["one ", "two ", "three"] {
        feed.send(bodies::data(frame)).unwrap();
    }
    drop(feed);
    let response = soon(call).await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    assert!(server.seen().sent(2).requests[1].body.is("one two three"));
}

/// A body whose first frame comes half a second after it is first asked for; and when it was.
fn slow() -> (Arc<OnceLock<Instant>>, bodies::Streaming) {
    let asked = Arc::new(OnceLock::new());
    let first = Arc::clone(&asked);
    let frames = futures_util::stream::once(async move {
        first.set(Instant::now()).expect("asked for the first frame once");
        tokio::time::sleep(Duration::from_millis(500)).await;
        bodies::data("one ")
    });
    let rest = futures_util::stream::iter([bodies::data("two "), bodies::data("three")]);
    (asked, StreamBody::new(frames.chain(rest).boxed()))
}

/// The first attempt fails at once, and nobody has looked at the body: the second one reads it, from its first frame.
#[tokio::test(start_paused = true)]
async fn c085_first_chunk_once_where_the_first_attempt_polled_nothing() {
    let service = testing::service([Reply::refused_stream().early(), Reply::ok("")]);
    let retry = RetryLayer::new(policy().build().unwrap()).layer(service.clone());
    let (asked, body) = slow();
    let response = retry.oneshot(request(Method::POST, "/x", body)).await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    let seen = service.seen();
    let [refused, second] = &seen.sent(2).requests[..] else { panic!("{seen}") };
    assert_eq!((refused.body.length, refused.body.complete), (0, false));
    assert!(*asked.get().unwrap() >= second.at && second.body.is("one two three"), "{seen}");
}

/// Readiness that fails before the first attempt leaves the body with the caller; between two it ends the call, and
/// nothing was sent of it.
#[tokio::test(start_paused = true)]
async fn c085_first_chunk_once_where_readiness_fails() {
    let script = |readiness| Script::new([Reply::ok("")]).readiness(readiness);
    let service = testing::service(script([Readiness::Fails, Readiness::Now]));
    let mut retry = RetryLayer::new(policy().build().unwrap()).layer(service.clone());
    let (asked, body) = slow();
    assert!(ServiceExt::<Request<bodies::Streaming>>::ready(&mut retry).await.unwrap_err().is_not_ready());
    assert!(asked.get().is_none());
    retry.oneshot(request(Method::POST, "/x", body)).await.unwrap();
    assert!(service.seen().sent(1).requests[0].body.is("one two three"));

    let refused = Script::new([Reply::refused_stream().early(), Reply::ok("")]);
    let service = testing::service(refused.readiness([Readiness::Now, Readiness::Fails]));
    let retry = RetryLayer::new(policy().build().unwrap()).layer(service.clone());
    let (asked, body) = slow();
    let error = retry.oneshot(request(Method::POST, "/x", body)).await.unwrap_err();
    assert!(error.is_not_ready() && asked.get().is_none(), "{error}");
    service.seen().sent(1);
}
