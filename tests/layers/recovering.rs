//! `RecoverLayer`: which failures it is shown, what it knows of them, and what they come to.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use redial::{
    Class, Error, RecoverLayer, RetryLayer, StopReason, TimeoutLayer, Transient, Verdict,
    layers::{Failure, RecoverBody},
    testing::{NotReady, Readiness, Reply, ReplyBody, Script, ScriptService, service},
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::{get, paused, post, read};

/// The caller's own error.
#[derive(Debug)]
struct Unavailable {
    class: Class,
    status: Option<u16>,
    attempts: usize,
    unknown: bool,
    stop: Option<StopReason>,
    cause: Option<Error>,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shop is not available")
    }
}

impl std::error::Error for Unavailable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

fn unavailable<B>(failure: Failure<B>) -> Result<Response<RecoverBody<B>>, Unavailable> {
    let report = failure.report();
    Err(Unavailable {
        class: failure.class(),
        status: failure.status().map(|status| status.as_u16()),
        attempts: report.map_or(0, |report| report.attempts().len()),
        unknown: failure.outcome_unknown(),
        stop: report.and_then(|report| report.stop()),
        cause: failure.into_answer().err(),
    })
}

type Answer = Result<Response<RecoverBody<redial::AnswerBody<ReplyBody>>>, Unavailable>;

async fn call(server: &ScriptService, request: Request<Full<Bytes>>) -> Answer {
    let stack = ServiceBuilder::new()
        .layer(RecoverLayer::new(unavailable))
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    stack.oneshot(request).await
}

#[tokio::test(start_paused = true)]
async fn what_passes_unchanged() {
    for status in [200, 204, 301, 400, 401, 403, 404, 409, 422, 501] {
        let server = service([Reply::status(status).header("x-why", "business")]);
        let response = call(&server, get("/")).await.expect("an answer");
        assert_eq!((response.status().as_u16(), response.headers()["x-why"].as_bytes()), (status, &b"business"[..]));
    }
    // After a retry too, its report included.
    for (last, stop) in [(200, None), (404, Some(StopReason::Permanent))] {
        let server = service([Reply::status(503), Reply::status(last)]);
        let response = call(&server, get("/")).await.expect("an answer");
        assert_eq!((response.status().as_u16(), crate::support::stop(&response)), (last, stop));
    }
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_answer_and_an_exhausted_error_are_one_to_the_caller() {
    let answered = call(&service([Reply::status(503)]), get("/")).await.unwrap_err();
    assert_eq!((answered.class, answered.status, answered.attempts), (Class::Transient, Some(503), 3));
    assert_eq!((answered.stop, answered.unknown), (Some(StopReason::Attempts), true));
    assert!(answered.cause.is_none());

    let failed = call(&service([Reply::reset()]), get("/")).await.unwrap_err();
    assert_eq!((failed.class, failed.status, failed.attempts), (Class::Transient, None, 3));
    assert_eq!((failed.stop, failed.unknown), (Some(StopReason::Attempts), true));
    assert!(failed.cause.expect("the error").find_source::<hyper::Error>().is_some());
}

#[tokio::test(start_paused = true)]
async fn it_knows_whether_the_outcome_is_unknown() {
    let lost = call(&service([Reply::reset()]), post("/")).await.unwrap_err();
    assert_eq!((lost.stop, lost.attempts, lost.unknown), (Some(StopReason::NoEvidence), 1, true));
    let unsent = call(&service([Reply::not_connected()]), post("/")).await.unwrap_err();
    assert_eq!((unsent.stop, unsent.attempts, unsent.unknown), (Some(StopReason::Attempts), 3, false));

    // A timeout that no retry layer saw: the request may have arrived.
    let server = service([Reply::stall()]);
    let stack = ServiceBuilder::new()
        .layer(RecoverLayer::new(unavailable))
        .layer(TimeoutLayer::new().head(Duration::from_secs(1)))
        .service(server);
    let late = stack.oneshot(get("/")).await.unwrap_err();
    assert_eq!((late.class, late.attempts, late.unknown), (Class::Transient, 0, true));
    assert!(late.cause.unwrap().is_timeout());
}

#[tokio::test(start_paused = true)]
async fn the_classes() {
    // To be looked into first.
    let looked = paused().judge_with(|_, outcome, verdict| match outcome.status() {
        Some(StatusCode::CONFLICT) if outcome.earlier_unknown() => Verdict::verify(),
        _ => verdict,
    });
    let server = service([Reply::reset(), Reply::status(409)]);
    let stack = ServiceBuilder::new()
        .layer(RecoverLayer::new(unavailable))
        .layer(RetryLayer::new(looked.build().unwrap()))
        .service(server);
    let request = Request::put("/orders/7").body(Full::<Bytes>::default()).unwrap();
    let error = stack.oneshot(request).await.unwrap_err();
    assert_eq!((error.class, error.status, error.unknown), (Class::Verify, Some(409), true));

    // An error that does not pass.
    let server = service([Reply::error(|| "nobody knows this")]);
    let error = call(&server, get("/")).await.unwrap_err();
    assert_eq!((error.class, error.stop), (Class::Permanent, Some(StopReason::Permanent)));

    // Told to wait for longer than the call may take.
    let server = service([Reply::status(429).header("retry-after", "3600")]);
    let error = call(&server, get("/")).await.unwrap_err();
    assert_eq!((error.class, error.status, error.stop), (Class::Transient, Some(429), Some(StopReason::WaitTooLong)));
}

#[tokio::test(start_paused = true)]
async fn every_failure_on_demand() {
    let all = |status: u16| async move {
        let stack = ServiceBuilder::new()
            .layer(RecoverLayer::new(unavailable).every_failure())
            .layer(RetryLayer::new(paused().build().unwrap()))
            .service(service([Reply::status(status)]));
        stack.oneshot(get("/")).await
    };
    for status in [400, 404, 422, 501] {
        let error = all(status).await.unwrap_err();
        assert_eq!((error.class, error.status, error.unknown), (Class::Permanent, Some(status), false));
    }
    for status in [200, 204, 304] {
        assert_eq!(all(status).await.unwrap().status().as_u16(), status);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_instead() {
    let recover =
        |failure: Failure<redial::AnswerBody<ReplyBody>>| match (failure.method().as_str(), failure.uri().path()) {
            ("GET", "/prices") => Ok(Response::new(RecoverBody::from("yesterday's prices"))),
            ("GET", "/nothing") => Ok(Response::new(RecoverBody::empty())),
            _ => failure.into_answer(),
        };
    let stack = |replies: Vec<Reply>| {
        ServiceBuilder::new()
            .layer(RecoverLayer::new(recover))
            .layer(RetryLayer::new(paused().build().unwrap()))
            .service(service(replies))
    };
    let response = stack(vec![Reply::status(503)]).oneshot(get("/prices?token=x")).await.unwrap();
    assert_eq!((response.status().as_u16(), response.body().size_hint().exact()), (200, Some(18)));
    assert_eq!(read(response.into_body()).await.unwrap(), "yesterday's prices");

    let response = stack(vec![Reply::reset()]).oneshot(get("/nothing")).await.unwrap();
    assert!(response.body().is_end_stream());

    // Passed on as it is: the answer and the error.
    let response =
        stack(vec![Reply::status(503).body("down").trailer("x", "y")]).oneshot(get("/orders")).await.unwrap();
    assert_eq!((response.status().as_u16(), crate::support::stop(&response)), (503, Some(StopReason::Attempts)));
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x"], "y");
    assert_eq!(body.to_bytes(), "down");
    let error = stack(vec![Reply::reset()]).oneshot(get("/orders")).await.unwrap_err();
    assert!(error.is_exhausted());
}

#[tokio::test(start_paused = true)]
async fn once_a_call() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let stack = ServiceBuilder::new()
        .layer(RecoverLayer::new(move |failure: Failure<redial::AnswerBody<ReplyBody>>| {
            counted.fetch_add(1, Ordering::Relaxed);
            failure.into_answer()
        }))
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(service([Reply::status(503), Reply::status(503), Reply::status(503), Reply::ok("")]));
    assert_eq!(stack.clone().oneshot(get("/")).await.unwrap().status(), 503);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(stack.oneshot(get("/")).await.unwrap().status(), 200);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

async fn ready<S: Service<Request<Full<Bytes>>, Error = Unavailable>>(stack: &mut S) -> &mut S {
    stack.ready().await.expect("an answer may be given instead")
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_is_a_failure_too() {
    let server = service(Script::new([Reply::ok("done")]).readiness([Readiness::Fails]));
    let mut stack = RecoverLayer::new(unavailable).layer(server.clone());
    let response = ready(&mut stack).await.call(get("/"));
    let error = response.await.unwrap_err();
    assert_eq!((error.class, error.unknown), (Class::Transient, false));
    assert!(error.cause.unwrap().find_source::<NotReady>().is_some());
    server.seen().sent(0);
    // It was that call's.
    let clone = stack.clone();
    assert_eq!(ready(&mut stack).await.call(get("/")).await.unwrap().status(), 200);
    assert_eq!(clone.oneshot(get("/")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn neither_target_nor_headers_are_shown() {
    let stack = RecoverLayer::new(|failure: Failure<ReplyBody>| -> Result<Response<RecoverBody<ReplyBody>>, String> {
        Err(format!("{failure:?}"))
    });
    let mut request = get("http://user:word@shop.example/a?token=secret");
    request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    let reply = Reply::error(|| "no such thing");
    let shown = stack.layer(service([reply])).oneshot(request).await.unwrap_err();
    assert!(!shown.contains("secret") && !shown.contains("word") && shown.contains("GET"), "{shown}");
    assert!(Transient::usual().has_status(503));
}
