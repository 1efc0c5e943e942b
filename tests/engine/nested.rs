//! This crate's own errors, from a handler that is called in process below a retry layer.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use redial::{AttemptBody, Error, FaultKind, RetryLayer, StopReason, TimeoutLayer};
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, policy},
    script::{Failure, Script, fail, hang, ms, request, status},
};

/// A call through a handler that makes a new, independent call of its own through a retry layer.
async fn through_a_handler(inner: Script, attempts: u32) -> Error {
    let own = RetryLayer::new(builder().idempotent("the handler's own business").build().unwrap()).layer(inner);
    let handler =
        tower::service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| own.clone().oneshot(request(Method::GET)));
    let outer = builder().attempts(attempts).build().unwrap();
    RetryLayer::new(outer).layer(handler).oneshot(request(Method::POST)).await.map(drop).unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_proof_of_the_last_attempt_is_none_for_those_before() {
    // The first of the handler's attempts may have taken effect; that the last was never sent proves nothing.
    let script = Script::new([fail(Failure::Reset), fail(Failure::Unsent), fail(Failure::Unsent)]);
    let error = through_a_handler(script.clone(), 3).await;
    assert_eq!((error.stop(), script.count()), (Some(StopReason::NoEvidence), 3));
    assert!(error.is_connect());
}

#[tokio::test(start_paused = true)]
async fn what_a_handlers_own_call_proves_says_nothing_of_the_handler() {
    // None of its attempts was sent; but the handler may have done anything before it called.
    let script = Script::new(std::iter::repeat_n(fail(Failure::Unsent), 3));
    let error = through_a_handler(script.clone(), 2).await;
    assert_eq!((error.stop(), script.count()), (Some(StopReason::NoEvidence), 3));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_layer_below_is_read_as_a_timeout() {
    let script = Script::new([hang(), status(200)]);
    let below = TimeoutLayer::new().head(ms(20)).layer(script.clone());
    let response = RetryLayer::new(policy()).layer(below).oneshot(request(Method::GET)).await.unwrap();
    let report: &redial::CallReport = response.extensions().get().unwrap();
    assert_eq!(report.attempts()[0].outcome, redial::AttemptOutcome::Fault(FaultKind::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_request_body_that_fails_is_the_callers_fault() {
    // Whatever its error looks like: a timeout of whatever feeds the body is no timeout of this call.
    let broken = || {
        let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
        http_body_util::StreamBody::new(futures_util::stream::iter([Err::<http_body::Frame<Bytes>, _>(error)]))
    };
    let upload = tower::service_fn(|request: Request<AttemptBody<_>>| async move {
        http_body_util::BodyExt::collect(request.into_body()).await?;
        Ok::<_, redial::BoxError>(http::Response::new(String::new()))
    });
    let error = RetryLayer::new(policy()).layer(upload).oneshot(Request::put("/").body(broken()).unwrap()).await;
    let error = error.unwrap_err();
    assert_eq!((error.stop(), error.is_timeout()), (Some(StopReason::Permanent), false));
    assert_eq!(error.fault().map(|fault| fault.kind()), Some(FaultKind::Body));
    assert_eq!(error.find_source::<std::io::Error>().map(|error| error.kind()), Some(std::io::ErrorKind::TimedOut));
}
