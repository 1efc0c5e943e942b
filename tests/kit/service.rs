//! The service under a retry layer, and tower's contract.

use redial::{
    Backoff, Budget, RetryLayer, StandardPolicy, Timeouts, Transient,
    testing::{LastStream, NotReady, Readiness, Reason},
};
use tower::{Layer, Service};

use super::*;

fn layer() -> RetryLayer<StandardPolicy> {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(60) };
    let policy = StandardPolicy::builder("orders", timeouts, Transient::usual())
        .backoff(Backoff::fixed(Duration::from_millis(100), "tests are exact"))
        .budget(Budget::unlimited("tests bound themselves"));
    RetryLayer::new(policy.build().unwrap())
}

/// What is provably unsent is sent again though it is a `POST`; what is of unknown outcome is not.
#[tokio::test(start_paused = true)]
async fn unsent_is_unsent() {
    let before = LastStream::Before;
    let cases = [
        (Reply::not_connected(), 2),
        (Reply::refused_stream(), 2),
        (Reply::goaway(before, Reason::NoError), 2),
        (Reply::goaway(LastStream::This, Reason::NoError), 1),
        (Reply::close(), 1),
        (Reply::reset(), 1),
        (Reply::status(503), 1),
        (Reply::stall(), 1),
    ];
    for (reply, sent) in cases {
        let service = testing::service([reply.clone(), Reply::ok("done")]);
        let answer = layer().layer(service.clone()).oneshot(post("/x")).await;
        assert_eq!(answer.is_ok_and(|response| response.status() == 200), sent == 2, "{reply:?}");
        service.seen().sent(sent);
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_numbered_and_spaced() {
    let service = testing::service([Reply::status(503), Reply::stall(), Reply::ok("done")]);
    let request = Request::put("/x").body(Full::<Bytes>::from("hi")).unwrap();
    let response = layer().layer(service.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let seen = service.seen();
    assert_eq!(seen.sent(3).gaps(), [100, 1100].map(Duration::from_millis));
    let attempts: Vec<_> = seen.requests.iter().map(|request| request.attempt).collect();
    assert_eq!(attempts, [Some(1), Some(2), Some(3)]);
    assert!(seen.requests.iter().all(|request| request.body.is("hi")));
}

#[tokio::test(start_paused = true)]
async fn readiness_by_script() {
    let readiness = [Readiness::Now, Readiness::Fails, Readiness::After(Duration::from_secs(2)), Readiness::Never];
    let service = testing::service(Script::new([Reply::ok("done")]).readiness(readiness));
    assert_eq!(send(&service).await, OK);
    let error = service.clone().oneshot(post("/x")).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&NotReady));
    let start = tokio::time::Instant::now();
    assert_eq!(send(&service).await, OK);
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert!(tokio::time::timeout(Duration::from_secs(60), send(&service)).await.is_err());
    service.seen().sent(2);
}

#[tokio::test]
#[should_panic = "the service was called without having been made ready"]
async fn a_call_without_readiness() {
    drop(testing::service(Reply::ok("done")).call(post("/x")));
}

#[tokio::test]
#[should_panic = "the service was called without having been made ready"]
async fn readiness_is_not_cloned() {
    let mut service = testing::service(Reply::ok("done"));
    let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await.unwrap();
    drop(ready.clone().call(post("/x")));
}

/// The framing of an answer is that of the wire.
#[tokio::test]
async fn bodies_say_how_long_they_are() {
    for (reply, length) in [
        (Reply::ok("whole"), Some(5)),
        (Reply::status(204), Some(0)),
        (Reply::ok("half").header("content-length", "8"), Some(8)),
        (Reply::ok("half").close_within(), None),
        (Reply::ok("whole").trailer("x-sum", "7"), None),
    ] {
        let response = testing::service(reply.clone()).oneshot(post("/x")).await.unwrap();
        assert_eq!(response.body().size_hint().exact(), length, "{reply:?}");
        let server = Server::http1(reply.clone());
        let response = soon(client(false).request(post(&server.url("/x")))).await.unwrap();
        assert_eq!(response.body().size_hint().exact(), length, "{reply:?}");
    }
}
