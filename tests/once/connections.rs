//! Connections that were never made, that were reused, and streams that were refused.

use std::{
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Uri};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{
    AttemptBody, BoxError, RetryLayer, StopReason,
    testing::{self, Reply},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::{Layer, Service, service_fn};

use super::{End, call, order, post};
use crate::{
    common::Server,
    support::{Wire, bodies, client, noise, policy, request},
};

/// The first connection is not made, the next one is: refused, or not made in time.
#[tokio::test]
async fn c044_what_failed_to_connect_is_sent_again() {
    for refused in [true, false] {
        let (server, nobody) = (testing::Server::http1(Reply::ok("")), testing::Server::refusing());
        let closed: Uri = nobody.url("/").parse().unwrap();
        let connects = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connects);
        let connector = service_fn(move |uri: Uri| {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            let uri = if first && refused { closed.clone() } else { uri };
            Box::pin(async move {
                if first && !refused {
                    tokio::time::timeout(Duration::from_millis(50), pending::<()>()).await?;
                }
                HttpConnector::new().call(uri).await.map_err(BoxError::from)
            })
        });
        let inner: Client<_, AttemptBody<Full<Bytes>>> = Client::builder(TokioExecutor::new()).build(connector);
        let client = RetryLayer::new(policy().build().unwrap()).layer(inner);
        assert_eq!(call(&client, post(&server.url("/x"))).await, End::ok(2), "refused: {refused}");
        server.seen().sent(1);
        assert_eq!(connects.load(Ordering::Relaxed), 2, "refused: {refused}");
    }
}

/// Closes connections that were idle for so long.
const IDLE: Duration = Duration::from_millis(20);

/// The client asks when the server is about to close. What it loses in that race it may repeat, being safe.
#[tokio::test]
async fn c104_requests_that_race_the_servers_keep_alive() {
    let server = Server::start(|mut stream, _, tally| async move {
        let mut request = [0; 4096];
        while let Ok(Ok(1..)) = tokio::time::timeout(IDLE, stream.read(&mut request)).await {
            tally.add(|seen| seen.requests += 1);
            if request.starts_with(b"POST") {
                return;
            }
            if stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                return;
            }
        }
    })
    .await;
    let client = client(Wire::Http1);
    for _ in 0..50 {
        assert_eq!(call(&client, order(Method::GET, &server.url("http"))).await.status, Some(200));
        tokio::time::sleep(IDLE).await;
    }
    let before = server.seen().requests;
    let end = call(&client, post(&server.url("http"))).await;
    // None, where it was written to a connection that was closing.
    assert!(server.seen().requests - before <= 1);
    assert_eq!((end.status, end.stop), (None, Some(StopReason::NoEvidence)));
}

#[tokio::test]
async fn c106_a_fresh_connection_that_closes_proves_nothing() {
    let server = testing::Server::http1(Reply::close());
    let end = call(&client(Wire::Http1), post(&server.url("/x"))).await;
    server.seen().sent(1);
    assert_eq!(end, End::failed(1, StopReason::NoEvidence));
}

/// A server outside this runtime: its first connection closes while the client's tasks stand still.
struct ClosingServer {
    url: String,
    close: mpsc::Sender<()>,
    closed: mpsc::Receiver<()>,
    requests: Arc<AtomicUsize>,
}

fn closing_server() -> io::Result<ClosingServer> {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/x", listener.local_addr()?);
    let (close, closing) = mpsc::channel();
    let (closed, is_closed) = mpsc::channel();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || -> io::Result<()> {
        for number in 0..2 {
            let (mut stream, _) = listener.accept()?;
            if stream.read(&mut [0; 4096])? > 0 {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n")?;
            if number == 0 {
                // Nobody waits any more once the test has failed.
                let _ = closing.recv();
                stream.shutdown(std::net::Shutdown::Write)?;
                let _ = closed.send(());
                if stream.read(&mut [0; 4096])? > 0 {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        Ok(())
    });
    Ok(ClosingServer { url, close, closed: is_closed, requests })
}

/// hyper hands the request back unwritten, and by itself sends it again; switched off, that is left to this layer.
#[tokio::test]
async fn c106_a_reused_connection_that_was_never_written_to() {
    let ClosingServer { url, close, closed, requests } = closing_server().unwrap();
    let inner: Client<_, AttemptBody<Full<Bytes>>> =
        Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
    let client = RetryLayer::new(policy().build().unwrap()).layer(inner);
    assert_eq!(call(&client, order(Method::GET, &url)).await, End::ok(1));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The runtime stands still meanwhile. It then learns that the connection has closed, but turns to this future
    // before it turns to the connection's task, which finds the request and the end together.
    close.send(()).unwrap();
    closed.recv().unwrap();
    tokio::task::yield_now().await;
    assert_eq!(call(&client, post(&url)).await, End::ok(2));
    assert_eq!(requests.load(Ordering::SeqCst), 2, "each arrived once");
}

#[tokio::test]
async fn c110_a_refused_stream_is_sent_again() {
    let refused = || Reply::refused_stream().early();
    let server = testing::Server::http2([refused(), Reply::ok("")]);
    assert_eq!(call(&client(Wire::Http2), post(&server.url("/x"))).await, End::ok(2));
    server.seen().sent(2);

    // Always: the attempts bound it.
    let server = testing::Server::http2(refused());
    let end = call(&client(Wire::Http2), post(&server.url("/x"))).await;
    server.seen().sent(3);
    assert_eq!(end, End::failed(3, StopReason::Attempts));
}

/// A stream is repeated from its tape; one that has outgrown it is not, though nothing was done.
#[tokio::test]
async fn c110_a_refused_upload_that_streams() {
    for (length, expected) in [(10_000, End::ok(2)), (100_000, End::failed(1, StopReason::BodyTooLarge))] {
        let server = testing::Server::http2([Reply::refused_stream(), Reply::ok("")]);
        let bytes = noise(length);
        let request = request(Method::POST, &server.url("/x"), bodies::streaming(bodies::chunked(&bytes, 1000)));
        assert_eq!(call(&client(Wire::Http2), request).await, expected, "{length}");
        let seen = server.seen();
        assert!(seen.sent(expected.attempts).requests.iter().all(|request| request.body.is(&bytes)), "{length}");
    }
}
