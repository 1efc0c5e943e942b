//! Answers that end soon: one connection for all attempts.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use redial::Verdict;

use super::{PATIENCE, call, pause, shortest};
use crate::{
    common::raw_h1::{self, Act, answer as raw_answer, send},
    support::{
        Wire, attempts, client, client_with, noise, policy,
        site::{Site, answer},
    },
};

/// Lets the tasks of a client finish what they have at hand, so that its connection is back in the pool. All of them
/// run on this thread.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn five_calls_with_large_failures_need_one_connection() {
    let body = noise(64 * 1024);
    let site = Site::start(Wire::Http1, move |number, request, log| {
        let body = body.clone();
        async move {
            log.read(number, request).await;
            Ok(answer(503, body))
        }
    })
    .await;
    let client = client(Wire::Http1);
    for _ in 1..=5 {
        let response = call(&client, Method::GET, &site.url()).await;
        assert_eq!((response.status().as_u16(), attempts(&response)), (503, 3));
        // The last answer is the caller's to read.
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 64 * 1024);
        settle().await;
    }
    let seen = site.seen();
    assert_eq!((seen.started, seen.connections), (15, 1));
}

#[tokio::test]
async fn c100_two_kilobytes() {
    let site = Site::start(Wire::Http1, |number, request, log| async move {
        log.read(number, request).await;
        Ok(if number == 1 { answer(503, vec![b'x'; 2048]) } else { answer(200, Bytes::new()) })
    })
    .await;
    let response = call(&client(Wire::Http1), Method::GET, &site.url()).await;
    assert_eq!((response.status().as_u16(), site.seen().connections), (200, 1));
}

/// The answer to a `HEAD` announces a body that never comes.
#[tokio::test]
async fn the_answer_to_a_head_is_not_waited_for() {
    let pause = shortest(|| async {
        let head = send("HTTP/1.1 503 X\r\ncontent-length: 1000\r\n\r\n");
        let script = vec![Act::Request, head, Act::Request, raw_answer(200, "")];
        let server = raw_h1::start(vec![script]).await;
        let response = call(&client(Wire::Http1), Method::HEAD, &server.url("http")).await;
        assert_eq!((response.status().as_u16(), server.seen().connections), (200, 1));
        pause(&response)
    });
    assert!(pause.await < PATIENCE);
}

/// These have no body, whatever they announce.
#[tokio::test]
async fn answers_without_a_body_are_not_waited_for() {
    for status in [204, 304] {
        for announced in ["", "content-length: 1000\r\n"] {
            // RFC 9110, 8.6: a 204 announces no length; one that does is read no further all the same.
            let pause = shortest(|| async {
                let head = send(&format!("HTTP/1.1 {status} X\r\n{announced}\r\n"));
                let script = vec![Act::Request, head, Act::Request, raw_answer(200, "")];
                let server = raw_h1::start(vec![script]).await;
                let passing = policy().judge_with(move |_, outcome, verdict| match outcome.status() {
                    Some(answered) if answered == status => Verdict::transient(),
                    _ => verdict,
                });
                let response = call(&client_with(Wire::Http1, passing), Method::GET, &server.url("http")).await;
                assert_eq!((response.status().as_u16(), server.seen().connections), (200, 1), "{status} {announced}");
                pause(&response)
            });
            assert!(pause.await < PATIENCE, "{status} {announced}");
        }
    }
}
