//! Wire faults beneath tonic's channel: what is proved, and what is not.

use std::time::Duration;

use redial::{
    AttemptOutcome, FaultKind, Reach, StopReason,
    testing::{LastStream, Reason, Reply, Server},
};
use tonic::{Code, Status};

use super::support::*;

/// Without evidence: only what is proved to be unsent is repeated.
async fn place(server: &Server) -> Result<tonic::Response<bytes::Bytes>, Status> {
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), builder().build().unwrap()));
    soon(client.place(order())).await
}

/// What became of the first attempt, and how the call ended.
fn first(status: &Status) -> (AttemptOutcome, Reach, Code, Option<StopReason>) {
    let report = report(status);
    (report.attempts()[0].outcome, report.attempts()[0].reach, status.code(), report.stop())
}

const NO_EVIDENCE: Option<StopReason> = Some(StopReason::NoEvidence);

#[tokio::test]
async fn a_refused_stream_was_not_processed() {
    let server = Server::http2([Reply::refused_stream(), done()]);
    let answer = place(&server).await.unwrap();
    let report = answer.extensions().get::<redial::CallReport>().unwrap();
    assert_eq!(report.attempts()[0].outcome, AttemptOutcome::Fault(FaultKind::RefusedStream));
    assert_eq!(report.attempts()[0].reach, Reach::NotSent);
    let seen = server.seen();
    assert!(seen.sent(2).requests.iter().all(|request| request.body.is(framed("an order"))), "{seen}");
    assert_eq!(seen.requests[1].headers["grpc-previous-rpc-attempts"], "1");
}

#[tokio::test]
async fn a_refused_stream_is_unavailable_in_the_end() {
    let server = Server::http2([Reply::refused_stream()]);
    let status = place(&server).await.unwrap_err();
    let refused = AttemptOutcome::Fault(FaultKind::RefusedStream);
    assert_eq!(first(&status), (refused, Reach::NotSent, Code::Unavailable, Some(StopReason::Attempts)));
    server.seen().sent(3);
}

#[tokio::test]
async fn neither_was_one_that_goaway_left_out() {
    let server = Server::http2([Reply::goaway(LastStream::Before, Reason::NoError), done()]);
    let answer = place(&server).await.unwrap();
    let report = answer.extensions().get::<redial::CallReport>().unwrap();
    assert_eq!(report.attempts()[0].outcome, AttemptOutcome::Fault(FaultKind::Goaway));
    assert_eq!(report.attempts()[0].reach, Reach::NotSent);
    let seen = server.seen();
    assert_eq!(seen.sent(2).connections, 2);
}

#[tokio::test]
async fn goaway_is_unavailable_in_the_end() {
    let server = Server::http2([Reply::goaway(LastStream::Before, Reason::NoError)]);
    let status = place(&server).await.unwrap_err();
    let goaway = AttemptOutcome::Fault(FaultKind::Goaway);
    assert_eq!(first(&status), (goaway, Reach::NotSent, Code::Unavailable, Some(StopReason::Attempts)));
    server.seen().sent(3);
}

/// A keep-alive that is not answered is a lost connection, not a deadline.
#[tokio::test]
async fn a_keep_alive_that_is_not_answered() {
    let server = Server::silent();
    let endpoint = tonic::transport::Endpoint::from_shared(server.url("")).unwrap();
    let alive = Duration::from_millis(30);
    let inner = endpoint.http2_keep_alive_interval(alive).keep_alive_timeout(alive).connect_lazy();
    let timeouts = redial::Timeouts { attempt: Duration::from_secs(10), total: Duration::from_secs(15) };
    let policy = redial::StandardPolicy::new("shop", timeouts, redial::Transient::usual()).unwrap();
    let status = soon(Client::new(redial::grpc::channel(inner, policy)).place(order())).await.unwrap_err();
    let timeout = AttemptOutcome::Fault(FaultKind::Timeout);
    assert_eq!(first(&status), (timeout, Reach::Unknown, Code::Unavailable, NO_EVIDENCE));
}

#[tokio::test]
async fn one_within_goaway_may_have_been() {
    let server = Server::http2([Reply::goaway(LastStream::Every, Reason::NoError), done()]);
    let status = place(&server).await.unwrap_err();
    let closed = AttemptOutcome::Fault(FaultKind::Closed);
    assert_eq!(first(&status), (closed, Reach::Unknown, Code::Unavailable, NO_EVIDENCE));
    server.seen().sent(1);
}

#[tokio::test]
async fn so_may_one_whose_connection_was_lost() {
    for (reply, kind) in [(Reply::close(), FaultKind::Closed), (Reply::reset(), FaultKind::Reset)] {
        let server = Server::http2([reply, done()]);
        let status = place(&server).await.unwrap_err();
        assert_eq!(first(&status), (AttemptOutcome::Fault(kind), Reach::Unknown, Code::Unavailable, NO_EVIDENCE));
        server.seen().sent(1);
    }
}

/// The table of gRPC over HTTP/2.
#[tokio::test]
async fn a_reset_stream_has_the_code_of_its_reason() {
    let rows = [
        (Reason::NoError, Code::Internal),
        (Reason::ProtocolError, Code::Internal),
        (Reason::InternalError, Code::Internal),
        (Reason::Cancel, Code::Cancelled),
        (Reason::EnhanceYourCalm, Code::ResourceExhausted),
    ];
    for (reason, code) in rows {
        let server = Server::http2([Reply::reset_stream(reason), done()]);
        let status = place(&server).await.unwrap_err();
        assert_eq!((status.code(), report(&status).stop()), (code, NO_EVIDENCE), "{reason:?}");
        server.seen().sent(1);
    }
}

#[tokio::test]
async fn a_refused_connection_was_never_used() {
    let server = Server::refusing();
    let status = place(&server).await.unwrap_err();
    let refused = AttemptOutcome::Fault(FaultKind::Connect);
    assert_eq!(first(&status), (refused, Reach::NotSent, Code::Unavailable, Some(StopReason::Attempts)));
    assert_eq!(report(&status).attempts().len(), 3);
    assert!(redial::grpc::error(&status).unwrap().is_connect());
}

/// The channel makes a new connection for the next call, and repeats nothing by itself.
#[tokio::test]
async fn the_channel_reconnects_and_repeats_nothing() {
    let server = Server::http2([Reply::close(), done()]);
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), builder().build().unwrap()));
    soon(client.place(order())).await.unwrap_err();
    server.seen().sent(1);
    soon(client.place(order())).await.unwrap();
    assert_eq!(server.seen().sent(2).connections, 2);
}

/// A server that is killed within a call, and comes back: the call is repeated where that is safe.
#[tokio::test]
async fn a_server_that_dies_within_the_call() {
    for (policy, works) in [(idempotent(), true), (builder().build().unwrap(), false)] {
        let server = Server::http2([Reply::stall()]);
        let addr = server.addr();
        let mut client = Client::new(redial::grpc::channel(channel(addr), policy));
        let call = tokio::spawn(async move { client.place(order()).await });
        soon(server.until(|seen| seen.complete() == 1)).await;
        soon(server.stop()).await;
        let result = soon(call).await.unwrap();
        let status = result.unwrap_err();
        let kinds: Vec<_> = report(&status).attempts().iter().map(|attempt| attempt.outcome.to_string()).collect();
        // It does not come back: nobody listens there any more.
        if works {
            assert!(kinds[1..] == ["connect", "connect"] && ["closed", "reset"].contains(&&*kinds[0]), "{kinds:?}");
        } else {
            assert!(kinds.len() == 1 && ["closed", "reset"].contains(&&*kinds[0]), "{kinds:?}");
        }
        assert_eq!(status.code(), Code::Unavailable);
        assert!(report(&status).outcome_unknown());
    }
}

/// A call that is dropped is taken back from the server, and nothing is sent after it.
#[tokio::test]
async fn a_cancelled_call_leaves_nothing_behind() {
    let server = Server::http2([Reply::stall(), done()]);
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), idempotent()));
    let mut again = client.clone();
    let call = tokio::time::timeout(Duration::from_millis(50), client.place(order()));
    call.await.unwrap_err();
    soon(server.until(|seen| seen.requests.len() == 1 && seen.in_flight() == 0)).await;
    soon(again.place(order())).await.unwrap();
    server.seen().sent(2);
}
