//! Answers that do not end soon: their connection is given up.

use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use redial::{
    CallReport,
    testing::{self, Reply},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::{PATIENCE, call, pause, shortest};
use crate::{
    common::Server,
    support::{Wire, attempts, client, noise, put, soon},
};

/// The beginning of an answer that says it is longer, and does not end.
fn begun(length: &str) -> Reply {
    Reply::status(503).header("content-length", length).body("the beginning").stall_within()
}

/// Every connection but the second is answered by a body without end.
async fn endless() -> Server {
    Server::start(|mut stream, number, tally| async move {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        if number > 0 {
            let _ = stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n").await;
            let _ = stream.read(&mut head).await;
            return;
        }
        let mut chunk = b"HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        while stream.write_all(&chunk).await.is_ok() {
            tally.add(|seen| seen.body_bytes += chunk.len());
            chunk = [&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat();
        }
    })
    .await
}

/// What arrives is thrown away as it comes, and not for long: the server could not write more than was read and what
/// the sockets hold.
#[tokio::test]
async fn c100_an_endless_answer() {
    let pause = shortest(|| async {
        let server = endless().await;
        let response = call(&client(Wire::Http1), Method::GET, &server.url("http")).await;
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
        // Its writing has failed.
        server.until(|seen| seen.ended >= 1).await;
        assert_eq!(server.seen().connections, 2);
        assert!(server.seen().body_bytes < 32 * 1024 * 1024, "{:?}", server.seen());
        pause(&response)
    });
    assert!(pause.await < 2 * PATIENCE);
}

/// Bounded by time: the next attempt is sent, and the connection is gone.
#[tokio::test]
async fn an_answer_that_stalls() {
    let server = testing::Server::http1([begun("1000"), Reply::ok("")]);
    let response = call(&client(Wire::Http1), Method::GET, &server.url("/x")).await;
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    // Given a chance to end: a connection costs more than this wait.
    assert!(pause(&response) >= PATIENCE - std::time::Duration::from_millis(5), "{:?}", pause(&response));
    server.until(|seen| seen.ended >= 1).await;
    assert_eq!(server.seen().connections, 2);
}

/// The call's deadline is never spent on reading what nobody wants.
#[tokio::test]
async fn an_answer_that_stalls_at_the_deadline() {
    let server = testing::Server::http1(begun("1000"));
    let client = client(Wire::Http1);
    let mut request = put(&server.url("/x"), http_body_util::Empty::<Bytes>::new());
    request.extensions_mut().insert(redial::RequestOptions::new().total(std::time::Duration::from_millis(700)));
    let ended = match soon(client.oneshot(request)).await {
        Ok(response) => response.extensions().get::<CallReport>().cloned(),
        Err(error) => error.report().cloned(),
    };
    // Three attempts and two waits for an end fit; a fourth would not.
    let report = ended.expect("a report");
    assert!(report.attempts().len() <= 3 && report.stop().is_some(), "{report:?}");
}

/// It says itself that it is too large to be worth reading.
#[tokio::test]
async fn a_large_answer_is_dropped_at_once() {
    let pause = shortest(|| async {
        let server = testing::Server::http1([begun("1048577"), Reply::ok("")]);
        let response = call(&client(Wire::Http1), Method::GET, &server.url("/x")).await;
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
        server.until(|seen| seen.ended >= 1).await;
        assert_eq!(server.seen().connections, 2);
        pause(&response)
    });
    assert!(pause.await < PATIENCE);
}

/// The server answers and reads no further. Its connection would not be free again however long the answer is read.
#[tokio::test]
async fn the_early_answer_to_a_large_upload() {
    let pause = shortest(|| async {
        let server = testing::Server::http1([begun("1000").early(), Reply::ok("")]);
        let body = Full::new(noise(4 * 1024 * 1024));
        let response = soon(client(Wire::Http1).oneshot(put(&server.url("/x"), body))).await.unwrap();
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
        assert_eq!((server.seen().connections, server.seen().body_bytes()), (2, 4 * 1024 * 1024));
        pause(&response)
    });
    assert!(pause.await < PATIENCE);
}
