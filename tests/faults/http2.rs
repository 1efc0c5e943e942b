//! Faults of HTTP/2: here a peer can say that it did not process a stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::client::conn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use redial::fault::Fault;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::raw_h2::{self, Act, EVERY_STREAM, MAX_CONCURRENT_STREAMS, Script, reason, violation};
use crate::scene::{BoxError, Failed, fail, http2, in_time, pass, post, read, words};

scenes! {
    c110_refused_stream: "RST_STREAM REFUSED_STREAM" => "refused-stream unsent", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Reset(reason::REFUSED_STREAM)]);

    reset_cancel: "RST_STREAM CANCEL" => "reset", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Reset(reason::CANCEL)]);

    reset_internal_error: "RST_STREAM INTERNAL_ERROR" => "reset", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Reset(reason::INTERNAL_ERROR)]);

    reset_no_error: "RST_STREAM NO_ERROR" => "reset", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Reset(reason::NO_ERROR)]);

    reset_calm: "RST_STREAM ENHANCE_YOUR_CALM" => "reset calm", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Reset(reason::ENHANCE_YOUR_CALM)]);

    goaway_above_open: "GOAWAY last 0 NO_ERROR, left open" => "goaway unsent", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(0, reason::NO_ERROR)]);

    goaway_above_closed: "GOAWAY last 0 NO_ERROR, closed" => "goaway unsent", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(0, reason::NO_ERROR), Act::Close]);

    goaway_above_internal_error: "GOAWAY last 0 INTERNAL_ERROR, closed" => "goaway unsent", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(0, reason::INTERNAL_ERROR), Act::Close]);

    goaway_above_calm: "GOAWAY last 0 ENHANCE_YOUR_CALM, closed" => "goaway unsent calm", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(0, reason::ENHANCE_YOUR_CALM), Act::Close]);

    goaway_within_closed: "GOAWAY last 1 NO_ERROR, closed" => "closed", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(1, reason::NO_ERROR), Act::Close]);

    goaway_within_internal_error: "GOAWAY last 1 INTERNAL_ERROR, closed" => "closed", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(1, reason::INTERNAL_ERROR), Act::Close]);

    goaway_within_calm: "GOAWAY last 1 ENHANCE_YOUR_CALM, closed: the reason is lost" => "closed", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(1, reason::ENHANCE_YOUR_CALM), Act::Close]);

    goaway_within_reset: "GOAWAY last 1 INTERNAL_ERROR, then a TCP RST" => "reset", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(1, reason::INTERNAL_ERROR), Act::Ping, Act::ResetConnection]);

    goaway_twice: "GOAWAY of a graceful shutdown, then last 0" => "goaway unsent", [1, 1, 2],
        answered_by(vec![
            Act::Body,
            Act::Goaway(EVERY_STREAM, reason::NO_ERROR),
            Act::Ping,
            Act::Goaway(0, reason::NO_ERROR),
        ]);

    goaway_once: "GOAWAY of a graceful shutdown, then closed" => "closed", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(EVERY_STREAM, reason::NO_ERROR), Act::Ping, Act::Close]);

    closed_without_an_answer: "closed" => "closed", [1, 1, 2], answered_by(vec![Act::Body, Act::Close]);

    reset_without_an_answer: "TCP RST" => "reset", [1, 1, 2],
        answered_by(vec![Act::Body, Act::ResetConnection]);

    c113_our_own_goaway: "the peer breaks the protocol: h2 sends the GOAWAY" => "protocol", [1, 1, 2],
        answered_by(vec![Act::Body, violation()]);

    c113_our_own_goaway_after_theirs: "GOAWAY last 1 NO_ERROR, then the peer breaks the protocol"
        => "protocol", [1, 1, 2],
        answered_by(vec![Act::Body, Act::Goaway(1, reason::NO_ERROR), violation()]);

    c109_the_stream_above_the_last_id: "streams 1 and 3, GOAWAY last 1: stream 3" => "goaway unsent", [1, 2, 4],
    async {
        let third = vec![
            Act::Body,
            Act::Goaway(1, reason::NO_ERROR),
            Act::AnswerTo(1, 200, "first"),
            Act::Close,
        ];
        let (client, server) = (http2(), raw_h2::start(vec![Script::on([vec![Act::Body], third])]).await);
        let first = tokio::spawn(client.request(post(&server.url("http"))));
        server.until(|seen| seen.body_bytes == 2).await;
        let error = fail(&client, post(&server.url("http"))).await;
        // The stream within the last id goes on.
        assert_eq!(in_time(first).await.unwrap().unwrap().status(), 200);
        Failed::new(error, &server)
    };

    c112_calm_for_both: "two requests, GOAWAY last 0 ENHANCE_YOUR_CALM: the second" => "goaway unsent calm", [1, 2, 4],
    async {
        let calm = vec![Act::Body, Act::Goaway(0, reason::ENHANCE_YOUR_CALM), Act::Close];
        let (client, server) = (http2(), raw_h2::start(vec![Script::on([vec![Act::Body], calm])]).await);
        let first = tokio::spawn(client.request(post(&server.url("http"))));
        server.until(|seen| seen.body_bytes == 2).await;
        let error = fail(&client, post(&server.url("http"))).await;
        assert_eq!(read(&in_time(first).await.unwrap().unwrap_err()), "goaway unsent calm");
        Failed::new(error, &server)
    };

    c114_a_request_on_a_connection_that_goes_away: "hyper: a new request after GOAWAY on a held connection"
        => "closed unsent", [1, 1, 2], async {
        let gate = Arc::new(Notify::new());
        let server = raw_h2::start(vec![Script::on([vec![
            Act::Body,
            Act::Goaway(EVERY_STREAM, reason::NO_ERROR),
            Act::Ping,
            Act::Wait(gate.clone()),
            Act::Answer(200, "unharmed"),
        ]])]).await;
        let io = TokioIo::new(TcpStream::connect(server.addr()).await.unwrap());
        let (mut sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let held = tokio::spawn(sender.send_request(post(&server.url("http"))));
        server.until(|seen| seen.pongs == 1).await;
        let error = in_time(sender.send_request(post(&server.url("http")))).await.unwrap_err();
        gate.notify_one();
        let held = in_time(held).await.unwrap().unwrap();
        assert_eq!(in_time(held.into_body().collect()).await.unwrap().to_bytes(), "unharmed");
        Failed::new(error, &server)
    };

    queued_then_closed: "queued behind MAX_CONCURRENT_STREAMS = 0, closed" => "closed", [1, 0, 0],
        queued(vec![Act::Close]);

    queued_then_goaway: "queued behind MAX_CONCURRENT_STREAMS = 0, GOAWAY last 0, closed" => "closed", [1, 0, 0],
        queued(vec![Act::Goaway(0, reason::NO_ERROR), Act::Close]);

    callers_body_fails: "the caller's body fails with a connection reset of its own"
        => "body permanent", [1, 1, 0],
        body_of(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());

    callers_body_fails_as_refused: "the caller's body fails with REFUSED_STREAM: the reset is ours"
        => "body permanent", [1, 1, 0],
        body_of(h2::Error::from(h2::Reason::REFUSED_STREAM).into());
}

/// A `GOAWAY` proves the same whatever its reason, and only `ENHANCE_YOUR_CALM` asks for calm.
#[tokio::test]
async fn goaway_with_every_reason_on_both_sides_of_the_last_id() {
    for reason in 0..=reason::LAST {
        let above = answered_by(vec![Act::Body, Act::Goaway(0, reason), Act::Close]).await;
        let calm = if reason == reason::ENHANCE_YOUR_CALM { " calm" } else { "" };
        assert_eq!(read(&*above.error), format!("goaway unsent{calm}"), "reason {reason}");
        let within = answered_by(vec![Act::Body, Act::Goaway(1, reason), Act::Close]).await;
        assert_eq!(read(&*within.error), "closed", "reason {reason}");
    }
}

/// Of all resets, REFUSED_STREAM alone is proof (RFC 9113, 8.7).
#[tokio::test]
async fn reset_with_every_reason() {
    for reason in 0..=reason::LAST {
        let failed = answered_by(vec![Act::Body, Act::Reset(reason)]).await;
        let expected = match reason {
            reason::REFUSED_STREAM => "refused-stream unsent",
            reason::ENHANCE_YOUR_CALM => "reset calm",
            _ => "reset",
        };
        assert_eq!(read(&*failed.error), expected, "reason {reason}");
    }
}

/// Whatever was given up before, the next request on the connection is its own.
#[tokio::test]
async fn c113_requests_given_up_leave_the_connection_usable() {
    let mut requests = vec![vec![]; 100];
    requests.push(vec![Act::Body, Act::Answer(200, "")]);
    let (client, server) = (http2(), raw_h2::start(vec![Script { requests, ..Script::default() }]).await);
    for given_up in 1..=100 {
        let attempt = tokio::spawn(client.request(post(&server.url("http"))));
        server.until(|seen| seen.requests == given_up).await;
        attempt.abort();
    }
    assert_eq!(pass(&client, post(&server.url("http"))).await, 200);
    assert_eq!(server.seen().connections, 1);
}

/// Without a look at the body, hyper's GOAWAY may be the connection's: no proof. REFUSED_STREAM is one.
#[tokio::test]
async fn goaway_is_proof_only_for_a_body_that_was_polled() {
    let calm = Act::Goaway(0, reason::ENHANCE_YOUR_CALM);
    let error = answered_by(vec![Act::Body, calm, Act::Close]).await.error;
    assert_eq!(words(Fault::read(&*error)), "goaway calm");
    let error = answered_by(vec![Act::Body, Act::Reset(reason::REFUSED_STREAM)]).await.error;
    assert_eq!(words(Fault::read(&*error)), "refused-stream unsent");
}

/// A graceful GOAWAY under load: it covers every stream, so whatever is called unsent never arrived.
///
/// On more than one thread hyper now and then ends a request with this GOAWAY that is on its way: then
/// its body was not polled. Taken as proof, it would be sent twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn graceful_goaway_under_load_proves_nothing_wrong() {
    for round in 0..40 {
        let mut requests = vec![vec![Act::Answer(200, "")]; 24];
        requests[round % 8].insert(0, Act::Goaway(EVERY_STREAM, reason::NO_ERROR));
        let server = raw_h2::start(vec![Script { requests, ..Script::default() }]).await;
        let io = TokioIo::new(TcpStream::connect(server.addr()).await.unwrap());
        let (sender, connection) = conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut callers = JoinSet::new();
        for _ in 0..4 {
            let (mut sender, url) = (sender.clone(), server.url("http"));
            callers.spawn(async move {
                let mut unsent = 0;
                for body in ["", "hi", "", "hi", "", "hi"] {
                    let polled = Arc::new(AtomicBool::new(false));
                    let body = Watched(Full::from(body), polled.clone());
                    let request = Request::post(&url).body(body).unwrap();
                    // Now and then such a request is queued while the queue closes, and then hyper
                    // never ends it: no answer, and no proof.
                    let answer = timeout(Duration::from_secs(1), sender.send_request(request));
                    if let Ok(Err(error)) = answer.await {
                        let fault = Fault::read_attempt(&error, polled.load(Ordering::SeqCst));
                        unsent += usize::from(fault.is_unsent());
                    }
                }
                unsent
            });
        }
        let unsent: usize = in_time(callers.join_all()).await.into_iter().sum();
        drop(sender);
        let _ = in_time(connection).await;
        server.until(|seen| seen.ended == 1).await;
        assert!(server.seen().requests + unsent <= 24, "{unsent} unsent: {:?}", server.seen());
    }
}

/// One request to a server that does this with it.
async fn answered_by(acts: Vec<Act>) -> Failed {
    let server = raw_h2::start(vec![Script::on([acts])]).await;
    Failed::new(fail(&http2(), post(&server.url("http"))).await, &server)
}

/// One request that waits in the client, as no stream may be opened, when the server does this.
async fn queued(acts: Vec<Act>) -> Failed {
    let (gate, taken) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = Script {
        settings: vec![(MAX_CONCURRENT_STREAMS, 0)],
        first: [vec![Act::Ping, Act::Wait(gate.clone())], acts].concat(),
        requests: vec![],
    };
    let server = raw_h2::start(vec![script]).await;
    let client: Client<_, crate::scene::Body> =
        Client::builder(TokioExecutor::new()).http2_only(true).http2_initial_max_send_streams(0).build_http();
    let body = Taken(taken.clone()).boxed_unsync();
    let answer = tokio::spawn(client.request(Request::post(server.url("http")).body(body).unwrap()));
    in_time(taken.notified()).await;
    gate.notify_one();
    Failed::new(in_time(answer).await.unwrap().unwrap_err(), &server)
}

/// One request whose body fails with this.
async fn body_of(error: BoxError) -> Failed {
    let server = raw_h2::start(vec![Script::on([vec![]])]).await;
    let seen = server.addr();
    let frames = futures_util::stream::iter([Err::<Frame<Bytes>, _>(error)]);
    let request = Request::post(format!("http://{seen}/")).body(StreamBody::new(frames).boxed_unsync()).unwrap();
    let error = fail(&http2(), request).await;
    server.until(|seen| seen.requests == 1).await;
    Failed::new(error, &server)
}

/// An empty body that says when the connection takes it up: hyper asks for its end right before it opens the stream.
struct Taken(Arc<Notify>);

impl http_body::Body for Taken {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.0.notify_one();
        false
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

/// A body that says whether it was polled, as the retry layer's does.
struct Watched(Full<Bytes>, Arc<AtomicBool>);

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.1.store(true, Ordering::SeqCst);
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
