//! Numbers at their ends, bounds, and what is let go.

use std::time::Duration;

use http::Method;
use redial::{
    BufferResponseLayer, Deadline, Error, Failure, RecoverLayer, ResumeLayer, RetryLayer, StopReason,
    layers::{AttemptSpanLayer, Failure as Final, InboundLayer, OutboundHeadersLayer},
};
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt};

use crate::{
    policies::policy,
    script::{Readiness, Script, ScriptBody, hang, ms, request, status},
};

#[tokio::test(start_paused = true)]
async fn a_wait_for_ever() {
    let block = redial::retry(&policy(), |_| async { Err::<(), _>(Failure::retry_after("busy", Duration::MAX)) });
    let error: Error = block.idempotent("it only reads").deadline(Deadline::after(Duration::MAX)).await.unwrap_err();
    assert_eq!((error.stop(), error.retry_at()), (Some(StopReason::WaitTooLong), None));
}

fn whole_stack(
    script: &Script,
) -> impl tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>, Error = Error, Response: Send, Future: Send>
+ Clone
+ Send
+ use<> {
    ServiceBuilder::new()
        .layer(InboundLayer::new())
        .layer(RecoverLayer::new(|failure: Final<_>| failure.into_answer()))
        .layer(ResumeLayer::new())
        .layer(redial::IdempotencyKeyLayer::new())
        .layer(RetryLayer::new(policy()))
        .layer(BufferResponseLayer::new(1_024))
        .layer(AttemptSpanLayer::new())
        .layer(OutboundHeadersLayer::new())
        .service(script.clone())
}

/// Whatever moment it is dropped at, nothing is left; and it may be spawned.
#[tokio::test(start_paused = true)]
async fn dropped_at_any_moment() {
    for patience in [0, 5, 50, 105, 150, 1_050, 1_150, 2_500] {
        let script =
            Script::new([status(503).after(ms(10)), hang(), status(200).body(ScriptBody::text("half").stalling())])
                .readiness([Readiness::After(ms(1)), Readiness::After(ms(20)), Readiness::After(ms(20))]);
        let call = tokio::spawn(timeout(ms(patience), whole_stack(&script).oneshot(request(Method::GET))));
        drop(call.await.unwrap());
        assert_eq!((script.in_flight(), script.bodies_held()), (0, 0), "{patience}");
    }
}

/// Clones are not ready because the first one was.
#[tokio::test(start_paused = true)]
async fn readiness_is_each_clones_own() {
    let script = Script::always(status(200));
    let mut first = whole_stack(&script);
    first.ready().await.unwrap();
    let clone = first.clone();
    clone.oneshot(request(Method::GET)).await.map(drop).unwrap();
    use tower::Service;
    first.call(request(Method::GET)).await.map(drop).unwrap();
    assert_eq!(script.count(), 2);
}

/// A block may be spawned.
#[tokio::test(start_paused = true)]
async fn a_block_may_be_spawned() {
    let policy = policy();
    let block = redial::retry(&policy, |attempt| async move {
        if attempt.number() < 3 { Err(Failure::transient("not yet")) } else { Ok(attempt.number()) }
    });
    let result: Result<u32, Error> = tokio::spawn(block.idempotent("it only reads").into_future()).await.unwrap();
    assert_eq!(result.unwrap(), 3);
}
