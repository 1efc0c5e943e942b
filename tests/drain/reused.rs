//! Answers that end soon: one connection for all attempts.

use http::Method;
use http_body_util::BodyExt;
use redial::{
    Verdict,
    testing::{Reply, Server},
};

use super::{PATIENCE, call, pause, shortest};
use crate::support::{Wire, attempts, client, client_with, noise, policy};

/// Lets the tasks of a client finish what they have at hand, so that its connection is back in the pool. All of them
/// run on this thread.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn five_calls_with_large_failures_need_one_connection() {
    let server = Server::http1(Reply::status(503).body(noise(64 * 1024)));
    let client = client(Wire::Http1);
    for _ in 1..=5 {
        let response = call(&client, Method::GET, &server.url("/x")).await;
        assert_eq!((response.status().as_u16(), attempts(&response)), (503, 3));
        // The last answer is the caller's to read.
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 64 * 1024);
        settle().await;
    }
    assert_eq!(server.seen().sent(15).connections, 1);
}

#[tokio::test]
async fn c100_two_kilobytes() {
    let server = Server::http1([Reply::status(503).body(noise(2048)), Reply::ok("")]);
    let response = call(&client(Wire::Http1), Method::GET, &server.url("/x")).await;
    assert_eq!((response.status().as_u16(), server.seen().connections), (200, 1));
}

/// The answer to a `HEAD` announces a body that never comes.
#[tokio::test]
async fn the_answer_to_a_head_is_not_waited_for() {
    let pause = shortest(|| async {
        let server = Server::http1([Reply::status(503).header("content-length", "1000"), Reply::ok("")]);
        let response = call(&client(Wire::Http1), Method::HEAD, &server.url("/x")).await;
        assert_eq!((response.status().as_u16(), server.seen().connections), (200, 1));
        pause(&response)
    });
    assert!(pause.await < PATIENCE);
}

/// These have no body, whatever they announce.
#[tokio::test]
async fn answers_without_a_body_are_not_waited_for() {
    for status in [204, 304] {
        for announced in [false, true] {
            // RFC 9110, 8.6: a 204 announces no length; one that does is read no further all the same.
            let pause = shortest(|| async {
                let empty = Reply::status(status);
                let empty = if announced { empty.header("content-length", "1000") } else { empty };
                let server = Server::http1([empty, Reply::ok("")]);
                let passing = policy().judge_with(move |_, outcome, verdict| match outcome.status() {
                    Some(answered) if answered == status => Verdict::transient(),
                    _ => verdict,
                });
                let response = call(&client_with(Wire::Http1, passing), Method::GET, &server.url("/x")).await;
                assert_eq!((response.status().as_u16(), server.seen().connections), (200, 1), "{status} {announced}");
                pause(&response)
            });
            assert!(pause.await < PATIENCE, "{status} {announced}");
        }
    }
}
