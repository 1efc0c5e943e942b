//! Replies that come before the request is read.

use std::net::SocketAddr;

use http_body::Frame;
use http_body_util::StreamBody;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;

const LONG: Duration = Duration::from_secs(3600);

/// A client that has begun an upload of this length.
async fn begun(addr: SocketAddr, length: usize, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let head = format!("PUT /x HTTP/1.1\r\nhost: {addr}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), sent].concat()).await.unwrap();
    stream
}

/// Whatever is left unread: a client that goes away is noticed, in order or by RST.
#[tokio::test]
async fn a_client_that_goes_is_noticed() {
    for reset in [false, true] {
        for (what, reply, answered) in [
            ("a stall", Reply::stall(), 0),
            ("a delay", Reply::ok("late").after(LONG), 0),
            ("a stall within", Reply::ok("half").stall_within(), 1),
            ("a pause within", Reply::ok("half").pause(LONG).body("whole"), 1),
        ] {
            for sent in [&b""[..], b"half"] {
                let server = Server::http1(reply.clone().early());
                let mut stream = begun(server.addr(), 1000, sent).await;
                server.until(|seen| seen.in_flight() == 1).await;
                if answered > 0 {
                    soon(stream.read_exact(&mut [0; 8])).await.unwrap();
                }
                if reset {
                    stream.set_zero_linger().unwrap();
                }
                drop(stream);
                let seen = server.until(|seen| seen.ended == 1 && seen.in_flight() == 0).await;
                assert_eq!((seen.sent(1).broken(), seen.complete(), seen.body_bytes()), (1, 0, 0), "{what}: {seen}");
            }
        }
    }
}

/// A client that stays is not taken for one that went, however long nothing is read of it.
#[tokio::test]
async fn a_client_that_stays_is_answered() {
    let server = Server::http1(Reply::ok("late").after(Duration::from_millis(60)).early());
    let mut stream = begun(server.addr(), 4, b"wh").await;
    let mut answer = [0; 12];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    stream.write_all(b"at").await.unwrap();
    assert!(server.until(|seen| seen.complete() == 1).await.sent(1).requests[0].body.is("what"));
}

/// The upload stands still: what is unread stays with the client.
#[tokio::test]
async fn an_unread_upload_stands_still() {
    let server = Server::http1(Reply::stall().early());
    // More than sockets hold.
    let data = vec![7; 64 << 20];
    let mut stream = begun(server.addr(), data.len(), b"").await;
    server.until(|seen| seen.in_flight() == 1).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), stream.write_all(&data)).await.is_err());
    assert_eq!(server.seen().body_bytes(), 0);
}

/// Refused, and the connection with it: nobody waits for the rest of an upload that does not end.
#[tokio::test]
async fn an_early_answer_that_closes() {
    for http2 in [false, true] {
        let server = play(http2, Reply::status(413).early().close_after());
        let endless = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let client = client(http2);
        let answer = soon(client.request(Request::put(server.url("/")).body(endless).unwrap())).await.unwrap();
        assert_eq!(answer.status(), 413, "http2: {http2}");
        drop((answer, client));
        let seen = server.until(|seen| seen.ended == 1).await;
        assert_eq!((seen.sent(1).broken(), seen.in_flight()), (1, 0));
    }
    // It is the server that ends it.
    let server = Server::http1(Reply::status(413).early().close_after());
    let mut stream = begun(server.addr(), 10, b"").await;
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}
