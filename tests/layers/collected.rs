//! Real reports of answers that broke off, where the body is read as part of the attempt.

use bytes::Bytes;
use http::Request;
use http_body::Body;
use http_body_util::Full;
use redial::testing::{Reply, Server};
use redial::{AttemptBody, BoxError, BufferResponseLayer, FaultKind, RetryLayer, TimeoutLayer, testing};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::{
    common::raw_h1::{self, Act},
    get, paused, read,
    support::{Wire, attempts, client, hyper_client, noise, policy, soon},
};

const LIMIT: usize = 1 << 20;

/// What a call comes to whose body is collected: how many attempts it took, and the whole of it.
async fn collected<S, B>(service: S, policy: redial::StandardPolicy, request: Request<Full<Bytes>>) -> (usize, Bytes)
where
    S: Service<Request<AttemptBody<Full<Bytes>>>, Response = http::Response<B>, Error: Into<BoxError>> + Clone,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy)).layer(BufferResponseLayer::new(LIMIT)).service(service);
    let response = stack.oneshot(request).await.unwrap_or_else(|error| panic!("{error}"));
    let attempts = attempts(&response);
    let body = read(response.into_body()).await.unwrap_or_else(|error| panic!("{}", error.into()));
    (attempts, body)
}

/// What came of the first answer is nothing: the caller has the second, and that alone.
#[tokio::test(start_paused = true)]
async fn c090_collected_the_first_partial_body_is_discarded() {
    let service = testing::service([Reply::ok("h").stall_within(), Reply::ok("hello world!")]);
    let (attempts, body) = collected(service.clone(), paused().build().unwrap(), get("/")).await;
    assert_eq!((attempts, body), (2, "hello world!".into()));
    service.seen().sent(2);
}

#[tokio::test]
async fn c092_collected_a_reset_within_the_body_is_repeated() {
    let whole = noise(1_000_000);
    let broken = || Reply::ok(whole.slice(..300_000)).header("content-length", "1000000").reset_within();
    let server = Server::http1([broken(), Reply::ok(whole.clone())]);
    let (tries, body) =
        soon(collected(hyper_client(Wire::Http1), policy().build().unwrap(), get(&server.url("/file")))).await;
    assert!(tries == 2 && body == whole);
    server.seen().sent(2);

    // As it streams it is the caller's, who knows how much came, and is told that it was the body that broke.
    let server = Server::http1(broken());
    let stack = TimeoutLayer::new().body_idle(std::time::Duration::from_secs(10)).layer(client(Wire::Http1));
    let response = soon(stack.oneshot(get(&server.url("/file")))).await.unwrap();
    assert_eq!(attempts(&response), 1);
    let mut body = std::pin::pin!(response.into_body());
    let (mut came, mut error) = (0, None);
    while let Some(frame) = soon(std::future::poll_fn(|cx| body.as_mut().poll_frame(cx))).await {
        match frame {
            Ok(frame) => came += frame.data_ref().map_or(0, Bytes::len),
            Err(failed) => error = Some(failed),
        }
    }
    let error = error.expect("it broke");
    assert!(error.is_body() && came <= 300_000, "{came}: {error}");
    server.seen().sent(1);
}

/// Framing tells of the first two that they are not whole (RFC 9112, 8), and of the third nothing.
#[tokio::test]
async fn c097_collected_an_answer_cut_short_is_repeated_where_that_can_be_told() {
    let cases = [
        ("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nhello", 2, "all of it"),
        ("HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", 2, "all of it"),
        ("HTTP/1.0 200 X\r\n\r\nhello", 1, "hello"),
    ];
    for (answer, requests, expected) in cases {
        let cut = vec![Act::Request, raw_h1::send(answer), Act::Close];
        let server = raw_h1::start(vec![cut, vec![Act::Request, raw_h1::answer(200, "all of it")]]).await;
        let call = collected(hyper_client(Wire::Http1), policy().build().unwrap(), get(&server.url("http")));
        assert_eq!(soon(call).await, (requests, expected.into()), "{answer}");
        assert_eq!(server.seen().requests, requests);
    }
}

/// Head and body have one attempt's time together.
#[tokio::test(start_paused = true)]
async fn c141_collected_the_attempts_timeout_covers_head_and_body() {
    let slow = Reply::ok("h").after(std::time::Duration::from_secs(3)).stall_within();
    let at_once = Reply::ok("").header("content-length", "10").close_within();
    let service = testing::service([slow, at_once, Reply::ok("whole")]);
    let (attempts, body) = collected(service.clone(), paused().build().unwrap(), get("/")).await;
    assert_eq!((attempts, body), (3, "whole".into()));
    let millis: Vec<_> = service.seen().gaps().iter().map(|gap| gap.as_millis()).collect();
    // An attempt has 5 s, and a wait is of 100 ms.
    assert_eq!(millis, [5_100, 100]);
}

/// The same, told apart in the report.
#[tokio::test(start_paused = true)]
async fn c141_collected_each_end_has_its_name() {
    let at_once = Reply::ok("").header("content-length", "10").close_within();
    let service = testing::service([at_once, Reply::ok("whole")]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(BufferResponseLayer::new(LIMIT))
        .service(service);
    let response = stack.oneshot(get("/")).await.unwrap();
    let report = response.extensions().get::<redial::CallReport>().unwrap();
    assert_eq!(report.attempts()[0].outcome, redial::retry::AttemptOutcome::Fault(FaultKind::Closed));
}
