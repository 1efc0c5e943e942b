//! What the next hop is told of each attempt.

use http::{HeaderMap, Method, Request};
use redial::{
    AttemptBody, BoxError, Deadline, OutboundHints, RetryLayer,
    layers::{HintHeader, OutboundHeadersLayer},
};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    policies::{builder, builder_within, policy, timeouts},
    script::{Readiness, Script, hang, ms, request, secs, status},
};

/// What these headers said on each attempt; `-` where they were not there.
fn told(script: &Script, name: &str) -> Vec<String> {
    let text = |headers: &HeaderMap| headers.get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
    script.seen().iter().map(|seen| text(&seen.headers)).collect()
}

const ATTEMPT: &str = "x-envoy-attempt-count";
const LEFT: &str = "x-envoy-expected-rq-timeout-ms";

#[tokio::test(start_paused = true)]
async fn each_attempt_has_its_number_and_its_time() {
    let script = Script::new([status(503), hang(), status(200)]);
    // 1 s an attempt, 1.5 s in all, 100 ms between two.
    let policy = builder_within(timeouts(1_000, 1_500)).build().unwrap();
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy)).layer(OutboundHeadersLayer::new()).service(script.clone());
    stack.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(told(&script, ATTEMPT), ["1", "2", "3"]);
    // The third begins at 1.2 s, and ends with the call.
    assert_eq!(told(&script, LEFT), ["1000", "1000", "300"]);
}

#[tokio::test(start_paused = true)]
async fn each_header_has_its_own_form() {
    let script = Script::new([status(503), status(200)]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(OutboundHeadersLayer::new().headers(HintHeader::ALL))
        .service(script.clone());
    stack.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(told(&script, "grpc-timeout"), ["1000000u"; 2]);
    assert_eq!(told(&script, "x-envoy-expected-rq-timeout-ms"), ["1000"; 2]);
    assert_eq!(told(&script, "x-envoy-attempt-count"), ["1", "2"]);
    assert_eq!(told(&script, "x-stainless-retry-count"), ["0", "1"]);
    assert_eq!(told(&script, "grpc-previous-rpc-attempts"), ["-", "1"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_layer_nothing_is_told() {
    let script = Script::new([status(503), status(200)]);
    RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert!(script.seen().iter().all(|seen| seen.headers.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_there_is_only_shortened() {
    for (own, expected) in [("300m", ["300000u", "300000u"]), ("5S", ["1000000u", "1000000u"])] {
        let script = Script::new([status(503), status(200)]);
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(OutboundHeadersLayer::new().headers([HintHeader::GrpcTimeout, HintHeader::GrpcPreviousAttempts]))
            .service(script.clone());
        let mut request = request(Method::GET);
        request.headers_mut().insert("grpc-timeout", own.parse().unwrap());
        // Another hop's, that was forwarded.
        request.headers_mut().insert("grpc-previous-rpc-attempts", "7".parse().unwrap());
        stack.oneshot(request).await.unwrap();
        assert_eq!(told(&script, "grpc-timeout"), expected);
        assert_eq!(told(&script, "grpc-previous-rpc-attempts"), ["-", "1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_one_along_the_whole_path() {
    let script = Script::new([status(503), status(200)]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(OutboundHeadersLayer::new())
        .service(script.clone());
    // The caller's second attempt, of which 400 ms are left.
    let hints = OutboundHints::new().with_caller_attempt(2).with_deadline(Deadline::after(ms(400)));
    hints.scope(stack.oneshot(request(Method::GET))).await.unwrap();
    assert_eq!(told(&script, ATTEMPT), ["2", "3"]);
    assert_eq!(told(&script, LEFT), ["400", "300"]);
}

/// A layer between that calls only when it is polled.
#[tokio::test(start_paused = true)]
async fn a_layer_between_may_take_its_time() {
    let script = Script::new([status(503), status(200)]);
    let told_below = OutboundHeadersLayer::new().layer(script.clone());
    let slow = service_fn(move |request: Request<AttemptBody<_>>| {
        let below = told_below.clone();
        async move {
            tokio::time::sleep(ms(250)).await;
            below.oneshot(request).await
        }
    });
    RetryLayer::new(policy()).layer(slow).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(told(&script, ATTEMPT), ["1", "2"]);
    assert_eq!(told(&script, LEFT), ["750", "750"]);
}

/// Readiness that is waited for after the wait is not the attempt's time.
#[tokio::test(start_paused = true)]
async fn the_time_is_counted_from_the_sending() {
    let script = Script::new([status(503), status(200)]).readiness([Readiness::Now, Readiness::After(secs(2))]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(builder().build().unwrap()))
        .layer(OutboundHeadersLayer::new())
        .service(script.clone());
    stack.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(told(&script, LEFT), ["1000", "1000"]);
}

/// Another task knows what the request itself carries.
#[tokio::test(start_paused = true)]
async fn below_a_buffer_only_the_request_speaks() {
    for (deadline, expected) in [(None, "-"), (Some(ms(700)), "700")] {
        let script = Script::new([status(200)]);
        let below = OutboundHeadersLayer::new().layer(script.clone());
        let mut stack = RetryLayer::new(policy()).layer(tower::buffer::Buffer::new(below, 4));
        let mut request = request(Method::GET);
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(Deadline::after(deadline));
        }
        tower::Service::call(stack.ready().await.unwrap(), request).await.unwrap();
        assert_eq!((told(&script, ATTEMPT), told(&script, LEFT)), (vec!["1".to_owned()], vec![expected.to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_retries_tells_its_time_and_no_number() -> Result<(), BoxError> {
    let script = Script::new([status(200), status(200)]);
    let stack = ServiceBuilder::new()
        .layer(redial::TimeoutLayer::new().head(ms(300)))
        .layer(OutboundHeadersLayer::new())
        .service(script.clone());
    stack.oneshot(request(Method::GET)).await?;
    OutboundHeadersLayer::new().layer(script.clone()).oneshot(request(Method::GET)).await?;
    assert_eq!(
        (told(&script, ATTEMPT), told(&script, LEFT)),
        (vec!["-".into(), "-".into()], vec!["300".into(), "-".to_owned()])
    );
    Ok(())
}
