//! Time that is up is DEADLINE_EXCEEDED to the caller, whoever's it was.

use std::time::Duration;

use redial::{
    Deadline, FaultKind, StopReason, TimeoutLayer,
    testing::{Reply, Server},
};
use tokio::time::Instant;
use tonic::{Code, Status};
use tower::{Layer, ServiceBuilder};

use super::support::*;

#[tokio::test(start_paused = true)]
async fn an_attempts_timeout() {
    let (mut client, service) = scripted([Reply::stall()], builder().build().unwrap());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(status.message().contains("shop"), "{status:?}");
    assert_eq!(report(&status).stop(), Some(StopReason::NoEvidence));
    assert!(redial::grpc::error(&status).unwrap().is_timeout());
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn is_repeated_with_evidence() {
    let (mut client, service) = scripted([Reply::stall(), done()], idempotent());
    assert_eq!(client.place(order()).await.unwrap().get_ref(), "done");
    assert_eq!(service.seen().sent(2).gaps(), [Duration::from_secs(1) + WAIT]);
}

#[tokio::test(start_paused = true)]
async fn the_callers_timeout_ends_the_call() {
    let (mut client, service) = scripted([Reply::stall()], idempotent());
    let started = Instant::now();
    let mut request = order();
    request.set_timeout(Duration::from_millis(1_700));
    let status = client.place(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(started.elapsed(), Duration::from_millis(1_700));
    let error = redial::grpc::error(&status).unwrap();
    assert!(error.is_outer_deadline() && error.stop() == Some(StopReason::Deadline), "{error:?}");
    service.seen().sent(2);
}

#[tokio::test(start_paused = true)]
async fn so_does_a_deadline_of_this_crates_own_if_it_is_earlier() {
    let (mut client, service) = scripted([Reply::stall()], idempotent());
    let started = Instant::now();
    let mut request = order();
    request.set_timeout(Duration::from_millis(700));
    request.extensions_mut().insert(Deadline::after(Duration::from_millis(300)));
    assert_eq!(client.place(request).await.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(started.elapsed(), Duration::from_millis(300));
    service.seen().sent(1);
}

/// A wait that would cross it is not begun: the caller gets the answer, and at once.
#[tokio::test(start_paused = true)]
async fn no_wait_crosses_it() {
    let (mut client, service) = scripted([unavailable()], idempotent());
    let started = Instant::now();
    let mut request = order();
    request.set_timeout(Duration::from_millis(50));
    let status = client.place(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(report(&status).stop(), Some(StopReason::Deadline));
    assert_eq!(started.elapsed(), Duration::ZERO);
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_not_sent() {
    let (mut client, service) = scripted([done()], idempotent());
    let mut request = order();
    request.metadata_mut().insert("grpc-timeout", "0m".parse().unwrap());
    assert_eq!(client.place(request).await.unwrap_err().code(), Code::DeadlineExceeded);
    service.seen().sent(0);
}

/// tonic's channel has a timer of its own for the `grpc-timeout` that it sees, and would say CANCELLED. It is ours that
/// speaks.
#[tokio::test]
async fn the_channels_own_timer_does_not_come_between() {
    let server = Server::http2([Reply::stall()]);
    for _ in 0..5 {
        let mut client = Client::new(redial::grpc::channel(channel(server.addr()), idempotent()));
        let mut request = order();
        request.set_timeout(Duration::from_millis(60));
        let status = soon(client.place(request)).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        let error = redial::grpc::error(&status).unwrap();
        assert!(error.is_outer_deadline() && error.stop() == Some(StopReason::Deadline), "{error:?}");
    }
}

/// A shorter one of the channel's own (`Endpoint::timeout`) is a timeout like any other.
#[tokio::test]
async fn a_timeout_of_the_channels_own_is_one_of_the_attempt() {
    let server = Server::http2([Reply::stall()]);
    let endpoint = tonic::transport::Endpoint::from_shared(server.url("")).unwrap();
    let inner = endpoint.timeout(Duration::from_millis(50)).connect_lazy();
    let mut client = Client::new(redial::grpc::channel(inner, builder().build().unwrap()));
    let status = soon(client.place(order())).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(redial::grpc::error(&status).unwrap().fault().unwrap().kind(), FaultKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_layer_above_is_read_by_its_conversion() {
    let inner = redial::grpc::channel(redial::testing::service([Reply::stall()]), idempotent());
    let stack = ServiceBuilder::new()
        .map_err(Status::from)
        .layer(TimeoutLayer::new().total(Duration::from_millis(200)))
        .service(inner);
    let status = Client::new(stack).place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(report(&status).stop(), Some(StopReason::Deadline));
}

/// What the timeout layer hands on keeps its code and its report.
#[tokio::test(start_paused = true)]
async fn a_timeout_layer_above_hides_nothing() {
    for (reply, code) in [(unavailable(), Code::Unavailable), (Reply::refused_stream(), Code::Unavailable)] {
        let inner = redial::grpc::channel(redial::testing::service([reply]), idempotent());
        let stack = TimeoutLayer::new().total(Duration::from_secs(20)).layer(inner);
        let status = Client::new(stack).place(order()).await.unwrap_err();
        assert_eq!((status.code(), report(&status).attempts().len()), (code, 3));
    }
}

/// A CANCELLED that nobody's timer explains is what it says, however late it comes.
#[tokio::test(start_paused = true)]
async fn an_answer_at_the_last_moment_is_an_answer() {
    let late = fails(redial::GrpcCode::Cancelled).after(Duration::from_millis(998));
    let (mut client, service) = scripted([late, done()], idempotent());
    assert_eq!(client.place(order()).await.unwrap_err().code(), Code::Cancelled);
    service.seen().sent(1);
}
