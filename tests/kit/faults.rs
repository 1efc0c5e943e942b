//! What the client sees of each fault: the same over a socket and from the service.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redial::testing::{LastStream, Reason, Reply};

use super::*;

/// A TCP reset may overtake the head, though it hardly does on loopback.
const RST_WITHIN: &str = "200, then reset";

/// A fault, and what is read of it over HTTP/1.1, over HTTP/2, and from the service. `-`: not played there.
fn table() -> Vec<(&'static str, Reply, [&'static str; 3])> {
    let half = || Reply::ok("half");
    vec![
        ("an answer", Reply::ok("whole"), [OK, OK, OK]),
        ("any status", Reply::status(299), ["299", "299", "299"]),
        ("closed", Reply::close(), ["closed", "closed", "closed"]),
        ("closed, body unread", Reply::close().early(), ["closed", "closed", "closed"]),
        ("RST", Reply::reset(), ["reset", "reset", "reset"]),
        ("RST, body unread", Reply::reset().early(), ["reset", "reset", "reset"]),
        ("half a head", Reply::half_head(), ["closed", "closed", "closed"]),
        ("half a body", half().close_within(), ["200, then closed", "200, then closed", "200, then closed"]),
        ("half a body, RST", half().reset_within(), [RST_WITHIN, RST_WITHIN, RST_WITHIN]),
        ("a broken chunk", half().break_within(), ["200, then protocol", "200, then protocol", "200, then protocol"]),
        (
            "a length too long",
            half().header("content-length", "8").close_within(),
            ["200, then closed", "200, then closed", "200, then closed"],
        ),
        ("a length too short", half().header("content-length", "2"), [OK, "200, then protocol", OK]),
        ("trailers", Reply::ok("whole").trailer("x-sum", "7"), [OK, OK, OK]),
        ("a 204", Reply::status(204), ["204", "204", "204"]),
        ("a 304", Reply::status(304), ["304", "304", "304"]),
        ("refused stream", Reply::refused_stream(), ["-", "refused-stream unsent", "refused-stream unsent"]),
        ("reset stream", Reply::reset_stream(Reason::InternalError), ["-", "reset", "reset"]),
        ("reset stream, code", Reply::reset_stream(Reason::Code(99)), ["-", "reset", "reset"]),
        ("reset, body unread", Reply::reset_stream(Reason::Cancel).early(), ["-", "reset", "reset"]),
        ("reset within", half().reset_stream_within(Reason::Cancel), ["-", "200, then reset", "200, then reset"]),
        ("calm, stream", Reply::reset_stream(Reason::EnhanceYourCalm), ["-", "reset calm", "reset calm"]),
        ("left out", Reply::goaway(LastStream::Before, Reason::NoError), ["-", "goaway unsent", "goaway unsent"]),
        (
            "left out, stream 0",
            Reply::goaway(LastStream::Id(0), Reason::InternalError),
            ["-", "goaway unsent", "goaway unsent"],
        ),
        (
            "left out, calm",
            Reply::goaway(LastStream::Before, Reason::EnhanceYourCalm),
            ["-", "goaway unsent calm", "goaway unsent calm"],
        ),
        (
            "left out, stays open",
            Reply::stall().with_goaway(LastStream::Before, Reason::NoError),
            ["-", "goaway unsent", "goaway unsent"],
        ),
        ("within", Reply::goaway(LastStream::This, Reason::InternalError), ["-", "closed", "closed"]),
        ("within, by number", Reply::goaway(LastStream::Id(1), Reason::NoError), ["-", "closed", "closed"]),
        ("every stream", Reply::goaway(LastStream::Every, Reason::NoError), ["-", "closed", "closed"]),
        ("graceful", half().with_goaway(LastStream::Every, Reason::NoError), ["-", OK, OK]),
        ("unconnected", Reply::not_connected(), ["-", "-", "connect unsent"]),
        ("one's own", Reply::error(|| "strange"), ["-", "-", "unclassified"]),
    ]
}

fn check(what: &str, read: &str, expected: &str) {
    let overtaken = expected == RST_WITHIN && read == "reset";
    assert!(overtaken || read == expected, "{what}: {read}, not {expected}");
}

#[tokio::test]
async fn every_fault_over_http1() {
    for (what, reply, [expected, ..]) in table() {
        if expected != "-" {
            check(what, &over_wire(false, reply).await, expected);
        }
    }
}

#[tokio::test]
async fn every_fault_over_http2() {
    for (what, reply, [_, expected, _]) in table() {
        if expected != "-" {
            check(what, &over_wire(true, reply).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_from_the_service() {
    for (what, reply, [.., expected]) in table() {
        assert_eq!(over_service(reply).await, expected, "{what}");
    }
}

/// All reasons that a stream can be reset for.
#[tokio::test]
async fn every_reason_over_http2() {
    for code in 0..=0xe {
        let expected = match code {
            0x7 => "refused-stream unsent",
            0xb => "reset calm",
            _ => "reset",
        };
        assert_eq!(over_wire(true, Reply::reset_stream(Reason::Code(code))).await, expected, "{code}");
        assert_eq!(over_service(Reply::reset_stream(Reason::Code(code))).await, expected, "{code}");
    }
}

/// What HTTP/1.1 has no word for is turned down before anything is sent.
#[tokio::test]
async fn a_script_is_checked_against_its_wire() {
    for (what, reply, [http1, http2, _]) in table() {
        let made = |http2| catch_unwind(AssertUnwindSafe(|| drop(play(http2, reply.clone())))).is_ok();
        assert_eq!([made(false), made(true)], [http1 != "-", http2 != "-"], "{what}");
    }
}

#[tokio::test]
async fn keep_alive_closes_at_the_moment_of_reuse() {
    for http2 in [false, true] {
        let server = play(http2, [Reply::ok("first").close_on_reuse(), Reply::ok("third")]);
        let client = client(http2);
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            outcomes.push(soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await);
        }
        assert_eq!(outcomes, [OK, "closed", OK], "http2: {http2}");
        let connections: Vec<_> = server.seen().sent(2).requests.iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [1, 2]);
    }
    let service = testing::service([Reply::ok("first").close_on_reuse(), Reply::ok("third")]);
    assert_eq!([send(&service).await, send(&service).await, send(&service).await], [OK, "closed", OK]);
    service.seen().sent(2);
}

/// Closed while nobody uses it: the client takes another connection, and sees nothing.
#[tokio::test]
async fn keep_alive_closes_while_idle() {
    for http2 in [false, true] {
        let server = play(http2, Reply::ok("whole").close_after());
        let client = client(http2);
        for served in 1..=3 {
            assert_eq!(soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await, OK);
            // The client's own close ends the connection: by then it has noticed.
            server.until(|seen| (seen.connections, seen.ended) == (served, served)).await;
        }
        server.seen().sent(3);
    }
}

/// A graceful shutdown: what is on its way ends well, and what follows goes elsewhere.
#[tokio::test]
async fn after_a_graceful_goaway_comes_a_new_connection() {
    let server = Server::http2([Reply::ok("last").with_goaway(LastStream::Every, Reason::NoError), Reply::ok("first")]);
    let client = client(true);
    for _ in 0..2 {
        assert_eq!(soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await, OK);
        // hyper notices the GOAWAY by itself, and closes.
        let served = server.seen().connections;
        if served == 1 {
            server.until(|seen| seen.ended == 1).await;
        }
    }
    assert_eq!(server.seen().connections, 2);
}

/// The second of two streams is left out; the first is not touched.
#[tokio::test]
async fn goaway_leaves_out_what_lies_above() {
    let script = Script::new([Reply::status(404)])
        .route("/held", [Reply::ok("unharmed").after(Duration::from_millis(300))])
        .route("/above", [Reply::stall().with_goaway(LastStream::Before, Reason::NoError)]);
    let server = Server::http2(script);
    let client = client(true);
    let held = tokio::spawn(client.request(post(&server.url("/held"))));
    server.until(|seen| seen.complete() == 1).await;
    assert_eq!(soon(async { outcome(client.request(post(&server.url("/above"))).await).await }).await, "goaway unsent");
    assert_eq!(soon(held).await.unwrap().unwrap().status(), 200);
    assert_eq!(server.seen().connections, 1);
}

/// `MAX_CONCURRENT_STREAMS` of 0: one that came before the settings is refused, others wait in the client.
#[tokio::test]
async fn no_stream_may_be_opened() {
    let server = Server::http2(Script::new([Reply::ok("never")]).max_concurrent_streams(0));
    let client = client(true);
    // Until the client has the server's settings; from then on it waits.
    let answer = || tokio::time::timeout(Duration::from_millis(300), client.request(post(&server.url("/x"))));
    while let Ok(answer) = answer().await {
        assert_eq!(outcome(answer).await, "refused-stream unsent");
    }
    server.seen().sent(0);
}

#[tokio::test(start_paused = true)]
async fn no_stream_of_a_service_may_be_opened() {
    let service = testing::service(Script::new([Reply::ok("never")]).max_concurrent_streams(0));
    assert!(tokio::time::timeout(Duration::from_secs(60), send(&service)).await.is_err());
    service.seen().sent(0);
}
