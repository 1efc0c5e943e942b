//! An answer that arrives while the body is still on its way.

use std::time::Duration;

use http::{Method, Response};
use http_body_util::{BodyExt, Full};
use redial::Timeouts;
use tower::ServiceExt;

use crate::support::{
    WIRES, Wire, attempts, bodies, client, client_with, noise, policy_within, put, request,
    site::{AnswerBody, Site, answer, whole},
    soon,
};

/// Answers the first request at its head, and goes on reading it; the others are read first.
async fn hasty(wire: Wire) -> Site {
    Site::start(wire, |number, request, log| async move {
        if number == 1 {
            tokio::spawn(async move { log.read(number, request).await });
            return Ok(answer(503, "too early"));
        }
        log.read(number, request).await;
        Ok(answer(200, ""))
    })
    .await
}

/// hyper goes on polling an upload long after its answer. The stale one is cut off, so that it takes nothing from the
/// next, and the server sees it break.
#[tokio::test]
async fn c086_the_second_attempt_arrives_whole_and_the_stale_upload_stops() {
    for wire in WIRES {
        let site = hasty(wire).await;
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("0 ")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&site.url(), body)));
        site.until(|seen| seen.started == 2).await;
        for frame in 1..=10 {
            feed.send(bodies::data(format!("{frame} "))).unwrap();
        }
        drop(feed);
        let response = soon(call).await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
        site.until(|seen| seen.arrivals.len() == 2).await;
        for arrival in site.seen().arrivals {
            let expected = if arrival.number == 1 { None } else { whole(b"0 1 2 3 4 5 6 7 8 9 10 ") };
            assert!(arrival.body == expected, "{wire:?}: {arrival:?}");
        }
    }
}

/// The same while nobody feeds the body at all: the stale upload, which waits for the next frame, is woken to stop.
#[tokio::test]
async fn a_stale_upload_stops_although_its_body_is_silent() {
    for wire in WIRES {
        let site = hasty(wire).await;
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("0 ")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&site.url(), body)));
        site.until(|seen| seen.arrivals.len() == 1).await;
        let stale = &site.seen().arrivals[0];
        assert!(stale.number == 1 && stale.body.is_none(), "{wire:?}: {stale:?}");
        drop(feed);
        let response = soon(call).await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
    }
}

/// Each attempt has its own copy: nothing is cut off, and nothing is lost.
#[tokio::test]
async fn a_large_upload_from_memory_is_repeated_whole() {
    for wire in WIRES {
        let site = hasty(wire).await;
        let bytes = noise(1 << 20);
        let response = soon(client(wire).oneshot(put(&site.url(), Full::new(bytes.clone())))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{wire:?}");
        let arrivals = site.seen().arrivals;
        let second = arrivals.iter().find(|arrival| arrival.number == 2).unwrap();
        assert!(second.body == whole(&bytes), "{wire:?}");
    }
}

/// A call that is over uploads nothing more: whether it timed out, or was dropped.
#[tokio::test]
async fn the_upload_of_a_call_that_is_over_stops() {
    for wire in WIRES {
        for dropped in [false, true] {
            let site = Site::start(wire, |number, request, log| async move {
                log.read(number, request).await;
                std::future::pending::<Result<Response<AnswerBody>, _>>().await
            })
            .await;
            let attempt = if dropped { Duration::from_secs(10) } else { Duration::from_millis(300) };
            let policy = policy_within(Timeouts { attempt, total: Duration::from_secs(15) });
            let (feed, body) = bodies::fed();
            feed.send(bodies::data("0 ")).unwrap();
            let request = request(Method::POST, &site.url(), body);
            let call = tokio::spawn(client_with(wire, policy).oneshot(request));
            site.until(|seen| seen.started == 1).await;
            if dropped {
                call.abort();
            } else {
                assert!(soon(call).await.unwrap().unwrap_err().is_timeout(), "{wire:?}");
            }
            site.until(|seen| seen.arrivals.len() == 1).await;
            assert!(site.seen().arrivals[0].body.is_none(), "{wire:?}");
            drop(feed);
        }
    }
}

/// The last answer is the caller's, and so is the upload beneath it: a stream in both directions goes on.
#[tokio::test]
async fn an_upload_goes_on_under_an_answer_that_is_returned() {
    for status in [200, 404] {
        let site = Site::start(Wire::Http2, move |_, request, log| async move {
            tokio::spawn(async move { log.read(1, request).await });
            Ok(answer(status, "go on"))
        })
        .await;
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("one ")).unwrap();
        let response = soon(client(Wire::Http2).oneshot(put(&site.url(), body))).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        feed.send(bodies::data("two")).unwrap();
        drop(feed);
        site.until(|seen| seen.arrivals.len() == 1).await;
        assert!(site.seen().arrivals[0].body == whole(b"one two"));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "go on");
    }
}
