//! An answer that arrives while the body is still on its way.

use std::time::Duration;

use http::Method;
use http_body_util::{BodyExt, Full};
use redial::{
    Timeouts,
    testing::{Reply, Server},
};
use tower::ServiceExt;

use crate::{
    play,
    support::{WIRES, Wire, attempts, bodies, client, client_with, noise, policy_within, put, request, soon},
};

/// Answers the first request at its head, and goes on reading it; the others are read first.
fn hasty(wire: Wire) -> Server {
    play(wire, [Reply::status(503).body("too early").early(), Reply::ok("")])
}

/// hyper goes on polling an upload long after its answer. The stale one is cut off, so that it takes nothing from the
/// next, and the server sees it break.
#[tokio::test]
async fn c086_the_second_attempt_arrives_whole_and_the_stale_upload_stops() {
    for wire in WIRES {
        let server = hasty(wire);
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("0 ")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&server.url("/x"), body)));
        server.until(|seen| seen.requests.len() == 2).await;
        for frame in 1..=10 {
            feed.send(bodies::data(format!("{frame} "))).unwrap();
        }
        drop(feed);
        let response = soon(call).await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
        let seen = server.until(|seen| seen.broken() == 1).await;
        assert!(seen.sent(2).requests[0].body.broken, "{wire:?}: {seen}");
        assert!(seen.requests[1].body.is("0 1 2 3 4 5 6 7 8 9 10 "), "{wire:?}: {seen}");
    }
}

/// The same while nobody feeds the body at all: the stale upload, which waits for the next frame, is woken to stop.
#[tokio::test]
async fn a_stale_upload_stops_although_its_body_is_silent() {
    for wire in WIRES {
        let server = hasty(wire);
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("0 ")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&server.url("/x"), body)));
        let seen = server.until(|seen| seen.broken() == 1).await;
        assert!(seen.requests[0].body.broken, "{wire:?}: {seen}");
        drop(feed);
        let response = soon(call).await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
    }
}

/// Each attempt has its own copy: nothing is cut off, and nothing is lost.
#[tokio::test]
async fn a_large_upload_from_memory_is_repeated_whole() {
    for wire in WIRES {
        let server = hasty(wire);
        let bytes = noise(1 << 20);
        let response = soon(client(wire).oneshot(put(&server.url("/x"), Full::new(bytes.clone())))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
        assert!(server.seen().sent(2).requests[1].body.is(&bytes), "{wire:?}");
    }
}

/// A call that is over uploads nothing more: whether it timed out, or was dropped.
#[tokio::test]
async fn the_upload_of_a_call_that_is_over_stops() {
    for wire in WIRES {
        for dropped in [false, true] {
            let server = play(wire, Reply::stall());
            let attempt = if dropped { Duration::from_secs(10) } else { Duration::from_millis(300) };
            let policy = policy_within(Timeouts { attempt, total: Duration::from_secs(15) });
            let (feed, body) = bodies::fed();
            feed.send(bodies::data("0 ")).unwrap();
            let request = request(Method::POST, &server.url("/x"), body);
            let call = tokio::spawn(client_with(wire, policy).oneshot(request));
            server.until(|seen| seen.requests.len() == 1).await;
            if dropped {
                call.abort();
            } else {
                assert!(soon(call).await.unwrap().unwrap_err().is_timeout(), "{wire:?}");
            }
            server.until(|seen| seen.broken() == 1).await;
            drop(feed);
        }
    }
}

/// The last answer is the caller's, and so is the upload beneath it: a stream in both directions goes on.
#[tokio::test]
async fn an_upload_goes_on_under_an_answer_that_is_returned() {
    for status in [200, 404] {
        let server = play(Wire::Http2, Reply::status(status).body("go on").early());
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("one ")).unwrap();
        let response = soon(client(Wire::Http2).oneshot(put(&server.url("/x"), body))).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        feed.send(bodies::data("two")).unwrap();
        drop(feed);
        let seen = server.until(|seen| seen.complete() == 1).await;
        assert!(seen.sent(1).requests[0].body.is("one two"));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "go on");
    }
}
