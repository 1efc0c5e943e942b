//! Several requests on one connection of HTTP/2.

use redial::testing::{LastStream, Reason};

use super::*;

const LATER: Duration = Duration::from_millis(80);

/// A request that has its answer coming ends well; the one that `GOAWAY` leaves out is sent anew, on a new connection.
#[tokio::test]
async fn goaway_between_two_streams() {
    let left_out = Reply::stall().with_goaway(LastStream::Before, Reason::NoError);
    let script = Script::new([Reply::status(404)])
        .route("/first", [Reply::ok("first").after(LATER).close_after()])
        .route("/second", [left_out, Reply::ok("second")]);
    let server = Server::http2(script);
    let client = client(true);
    let first = tokio::spawn(client.request(post(&server.url("/first"))));
    server.until(|seen| seen.complete() == 1).await;
    let second = client.request(post(&server.url("/second"))).await;
    assert_eq!(outcome(second).await, "goaway unsent");
    assert_eq!(outcome(soon(first).await.unwrap()).await, OK);
    assert_eq!(soon(async { outcome(client.request(post(&server.url("/second"))).await).await }).await, OK);
    let seen = server.until(|seen| seen.ended == 1).await;
    let connections: Vec<_> = seen.sent(3).requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections, [1, 1, 2]);
}

/// What becomes of one stream is nothing to the others.
#[tokio::test]
async fn streams_fail_one_by_one() {
    let script = Script::new([Reply::ok("well").after(LATER)])
        .route("/reset", [Reply::reset_stream(Reason::InternalError)])
        .route("/refused", [Reply::refused_stream()])
        .route("/within", [Reply::ok("half").reset_stream_within(Reason::Cancel)]);
    let server = Server::http2(script);
    let client = client(true);
    let call = |path: &str| {
        let (client, request) = (client.clone(), post(&server.url(path)));
        async move { outcome(client.request(request).await).await }
    };
    let well = tokio::spawn(call("/well"));
    server.until(|seen| seen.complete() == 1).await;
    let failing = ["/reset", "/refused", "/within"].map(call);
    let failed = soon(futures_util::future::join_all(failing)).await;
    assert_eq!(failed, ["reset", "refused-stream unsent", "200, then reset"]);
    assert_eq!(soon(well).await.unwrap(), OK);
    assert_eq!(server.seen().sent(4).connections, 1);
}

/// A client that does not take one answer is given the others all the same.
#[tokio::test]
async fn an_answer_that_is_not_taken_keeps_up_no_other() {
    let script = Script::new([Reply::ok("small")]).route("/large", [Reply::ok(vec![7; 16 << 20])]);
    let server = Server::http2(script);
    let client = client(true);
    let large = soon(client.request(post(&server.url("/large")))).await.unwrap();
    for _ in 0..3 {
        assert_eq!(soon(async { outcome(client.request(post(&server.url("/small"))).await).await }).await, OK);
    }
    assert_eq!(server.seen().in_flight(), 1);
    assert_eq!(soon(large.into_body().collect()).await.unwrap().to_bytes().len(), 16 << 20);
    server.until(|seen| seen.in_flight() == 0).await;
}

/// With one stream at a time, the second request waits for the first.
#[tokio::test]
async fn one_stream_at_a_time() {
    let server = Server::http2(Script::new([Reply::ok("well").after(LATER)]).max_concurrent_streams(1));
    let client = client(true);
    // The server's settings are known.
    soon(async { outcome(client.request(post(&server.url("/"))).await).await }).await;
    let calls = (0..3).map(|_| async { outcome(client.request(post(&server.url("/"))).await).await });
    assert_eq!(soon(futures_util::future::join_all(calls)).await, [OK; 3]);
    let seen = server.seen();
    assert!(seen.sent(4).gaps().iter().skip(1).all(|gap| *gap >= LATER), "{seen}");
    assert_eq!(seen.connections, 1);
}
