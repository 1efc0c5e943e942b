//! Faults of HTTP/1.1: once a request is on its way, a lost connection proves nothing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::client::conn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt};

use crate::common::Server;
use crate::common::raw_h1::{self, Act, answer, send};
use crate::scene::{Body, BoxError, Failed, fail, http1, in_time, pass, post, read};

scenes! {
    c050_incomplete_message_is_no_proof: "closed without an answer, fresh connection"
        => "closed", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, Act::Close]]).await;
        Failed::new(fail(&http1(), post(&server.url("http"))).await, &server)
    };

    c106_closed_on_a_reused_connection: "closed without an answer, reused connection"
        => "closed", [1, 2, 4], async {
        let script = vec![Act::Request, answer(200, ""), Act::Request, Act::Close];
        let server = raw_h1::start(vec![script]).await;
        let client = http1();
        assert_eq!(pass(&client, post(&server.url("http"))).await, 200);
        Failed::new(fail(&client, post(&server.url("http"))).await, &server)
    };

    c106_reset_on_a_reused_connection: "RST without an answer, reused connection"
        => "reset", [1, 2, 4], async {
        let script = vec![Act::Request, answer(200, ""), Act::Request, Act::Reset];
        let server = raw_h1::start(vec![script]).await;
        let client = http1();
        assert_eq!(pass(&client, post(&server.url("http"))).await, 200);
        Failed::new(fail(&client, post(&server.url("http"))).await, &server)
    };

    reset_before_the_answer: "RST without an answer, fresh connection" => "reset", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, Act::Reset]]).await;
        Failed::new(fail(&http1(), post(&server.url("http"))).await, &server)
    };

    c049_half_a_head: "closed within the answer's head" => "closed", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, send("HTTP/1.1 20"), Act::Close]]).await;
        Failed::new(fail(&http1(), post(&server.url("http"))).await, &server)
    };

    garbage: "an answer that is not HTTP" => "protocol", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, send("\u{1}garbage\r\n\r\n")]]).await;
        Failed::new(fail(&http1(), post(&server.url("http"))).await, &server)
    };

    c106_never_written: "hyper: the held connection closed before this request"
        => "closed unsent", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, answer(200, ""), Act::Close]]).await;
        let (mut sender, connection) = conn::http1::handshake(tcp(&server).await).await.unwrap();
        let connection = tokio::spawn(connection);
        in_time(sender.send_request(post("/x"))).await.unwrap();
        in_time(connection).await.unwrap().unwrap();
        Failed::new(sender.send_request(post("/x")).await.unwrap_err(), &server)
    };

    closed_before_it_took_a_request: "the connection's task ends before it takes the request"
        => "closed unsent", [1, 0, 0], async {
        let server = raw_h1::start(vec![vec![]]).await;
        let client: Client<_, Body> = Client::builder(DropsTasks).build_http();
        let error = fail(&client, post(&server.url("http"))).await;
        server.until(|seen| seen.ended == 1).await;
        Failed::new(error, &server)
    };

    upgrade_given_up: "hyper: an upgrade that was answered, its connection then dropped"
        => "closed", [1, 1, 0], async {
        let switch = send("HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
        let server = raw_h1::start(vec![vec![Act::Head, switch]]).await;
        let (mut sender, connection) = conn::http1::handshake(tcp(&server).await).await.unwrap();
        let connection = tokio::spawn(connection.with_upgrades());
        // The upgrade waits for the end of the request, which does not come.
        let endless = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let request = Request::post("/x").header("connection", "upgrade").header("upgrade", "x").body(endless);
        let answer = in_time(sender.send_request(request.unwrap())).await.unwrap();
        connection.abort();
        Failed::new(in_time(hyper::upgrade::on(answer)).await.unwrap_err(), &server)
    };

    silence: "no answer, tokio's timeout fires" => "timeout", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![]]).await;
        let answer = tokio::spawn(http1().request(post(&server.url("http"))));
        server.until(|seen| seen.body_bytes == 2).await;
        let elapsed = tokio::time::timeout(Duration::from_millis(20), answer).await.unwrap_err();
        Failed::new(elapsed, &server)
    };

    silence_under_tower: "no answer, tower's timeout layer fires" => "timeout", [1, 0, 0], async {
        // Never reads, so that the counts are the same however slow the client is.
        let server = raw_h1::start(vec![vec![Act::Wait(Default::default())]]).await;
        let client = ServiceBuilder::new().timeout(Duration::from_millis(200)).service(http1());
        let error = in_time(client.oneshot(post(&server.url("http")))).await.unwrap_err();
        server.until(|seen| seen.connections == 1).await;
        Failed::new(error, &server)
    };

    callers_body_fails: "the caller's body fails with a connection reset of its own"
        => "body permanent", [1, 1, 0],
        body_of(io::Error::from(io::ErrorKind::ConnectionReset).into());

    callers_body_fails_in_words: "the caller's body fails with an error of no known type"
        => "body permanent", [1, 1, 0], body_of("disk on fire".into());

    callers_body_fails_to_connect: "the caller's body fails with a connect error of the same client"
        => "body permanent", [1, 1, 0], async {
        let source = fail(&http1(), post("http://127.0.0.1:1/")).await;
        assert!(source.is_connect());
        body_of(source.into()).await
    };

    callers_length_is_wrong: "the caller's body ends before its content-length"
        => "body permanent", [1, 0, 0], async {
        let server = raw_h1::start(vec![vec![]]).await;
        let frames = futures_util::stream::iter([Ok(Frame::data(Bytes::from("hi")))]);
        let body = StreamBody::new(frames).boxed_unsync();
        let request = Request::post(server.url("http")).header("content-length", 10).body(body).unwrap();
        let error = fail(&http1(), request).await;
        server.until(|seen| seen.ended == 1).await;
        Failed::new(error, &server)
    };

    answers_length_is_wrong: "the answer's body ends before its content-length"
        => "closed", [1, 1, 2], async {
        let short = send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        let server = raw_h1::start(vec![vec![Act::Request, short, Act::Close]]).await;
        Failed::new(body_fails(&server).await, &server)
    };

    answers_chunks_are_wrong: "a chunk of the answer without a size" => "protocol", [1, 1, 2], async {
        let bad = send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n");
        let server = raw_h1::start(vec![vec![Act::Request, bad, Act::Close]]).await;
        Failed::new(body_fails(&server).await, &server)
    };

    answers_body_is_reset: "RST within the answer's body" => "reset", [1, 1, 2], async {
        let gate = Arc::new(Notify::new());
        let half = send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        let script = vec![Act::Request, half, Act::Wait(gate.clone()), Act::Reset];
        let server = raw_h1::start(vec![script]).await;
        let response = in_time(http1().request(post(&server.url("http")))).await.unwrap();
        gate.notify_one();
        Failed::new(in_time(response.into_body().collect()).await.unwrap_err(), &server)
    };

    gone_with_its_runtime: "hyper: the connection's task was dropped with the request on its way"
        => "closed", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![]]).await;
        let (mut sender, connection) = conn::http1::handshake(tcp(&server).await).await.unwrap();
        let connection = tokio::spawn(connection);
        let answer = tokio::spawn(sender.send_request(post("/x")));
        server.until(|seen| seen.body_bytes == 2).await;
        connection.abort();
        Failed::new(in_time(answer).await.unwrap().unwrap_err(), &server)
    };
}

/// hyper-util repeats by itself what a closed, reused connection never took: nothing is left to read.
#[tokio::test]
async fn c106_closed_while_idle_is_repeated_below() {
    let once = vec![Act::Request, answer(200, ""), Act::Close];
    let server = raw_h1::start(vec![once]).await;
    let client = http1();
    for _ in 0..2 {
        assert_eq!(pass(&client, post(&server.url("http"))).await, 200);
        // The client's own close ends the connection: by then it has noticed.
        let served = server.seen().connections;
        server.until(|seen| seen.ended == served).await;
    }
    let seen = server.seen();
    assert_eq!((seen.connections, seen.requests), (2, 2));
}

/// Accept and close at once: how far the request comes is a race, but what is called unsent never came,
/// and nothing below repeats it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c105_closed_at_once_is_one_connection_an_attempt() {
    let (mut proved, mut hung) = (0, 0);
    for _ in 0..200 {
        let server = raw_h1::start(vec![vec![Act::Finish]]).await;
        let client = http1();
        // Now and then hyper queues the request while the queue closes, and then never ends it.
        let answer = timeout(Duration::from_secs(1), client.request(post(&server.url("http"))));
        let Ok(answer) = answer.await else {
            hung += 1;
            continue;
        };
        let error = answer.unwrap_err();
        drop(client);
        server.until(|seen| seen.ended == 1).await;
        let (words, seen) = (read(&error), server.seen());
        match words.as_str() {
            "closed unsent" => {
                proved += 1;
                assert_eq!(seen.requests, 0, "{error:?}");
            }
            "closed" | "reset" => {}
            _ => panic!("{words}: {error:?}"),
        }
        assert_eq!(seen.connections, 1, "{error:?}");
    }
    println!("of 200, {proved} proved unsent, {hung} never ended");
}

/// An executor whose runtime is gone.
#[derive(Clone)]
struct DropsTasks;

impl<F> hyper::rt::Executor<F> for DropsTasks {
    fn execute(&self, _: F) {}
}

async fn tcp(server: &Server) -> TokioIo<TcpStream> {
    TokioIo::new(TcpStream::connect(server.addr()).await.unwrap())
}

/// One request whose body fails with this, after its head has arrived.
async fn body_of(error: BoxError) -> Failed {
    let server = raw_h1::start(vec![vec![]]).await;
    let gate = Arc::new(Notify::new());
    let arrived = gate.clone();
    let frames = futures_util::stream::once(async move {
        arrived.notified().await;
        Err::<Frame<Bytes>, _>(error)
    });
    let body = StreamBody::new(frames).boxed_unsync();
    let answer = tokio::spawn(http1().request(Request::post(server.url("http")).body(body).unwrap()));
    server.until(|seen| seen.requests == 1).await;
    gate.notify_one();
    Failed::new(in_time(answer).await.unwrap().unwrap_err(), &server)
}

async fn body_fails(server: &Server) -> hyper::Error {
    let response = in_time(http1().request(post(&server.url("http")))).await.unwrap();
    in_time(response.into_body().collect()).await.unwrap_err()
}
