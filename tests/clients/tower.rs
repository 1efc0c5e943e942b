//! A policy of ours within tower's own retry layer: what is kept, and what the docs say is lost.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{Full, StreamBody};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    Backoff, Budget, CallReport, Deadline, Error, Policy, Reach, RetryLayer, StandardPolicy, StopReason, TimeoutLayer,
    Timeouts, Transient,
    policy::StandardPolicyBuilder,
    testing::{Events, Readiness, Reply, Script, ScriptService, Server, service},
    tower::RetryPolicy,
};
use tokio::time::timeout;
use tower::{Layer, ServiceBuilder, ServiceExt, retry};
use tracing::Level;

use crate::{ended, ms, policy, within};

/// As the docs have it: tower's layer over a timeout layer.
fn stack<S>(
    policy: impl Policy + Clone,
    inner: S,
) -> retry::Retry<RetryPolicy<impl Policy + Clone>, redial::timeout::Timeout<S>> {
    let attempts = TimeoutLayer::new().head(Duration::from_secs(5)).layer(inner);
    retry::RetryLayer::new(RetryPolicy::new(policy)).layer(attempts)
}

fn built(policy: StandardPolicyBuilder) -> StandardPolicy {
    policy.build().unwrap()
}

fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/").body(Full::from("one more")).unwrap()
}

async fn call(
    policy: StandardPolicyBuilder,
    service: &ScriptService,
    request: Request<Full<Bytes>>,
) -> (u16, Option<CallReport>) {
    let response = stack(built(policy), service.clone()).oneshot(request).await.unwrap();
    (response.status().as_u16(), response.extensions().get().cloned())
}

#[tokio::test]
async fn over_sockets() {
    let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("")]);
    let client = stack(built(policy()), Client::builder(TokioExecutor::new()).build_http());
    let put = Request::put(server.url("/")).body(Full::<Bytes>::from("one more")).unwrap();
    let response = client.oneshot(put).await.unwrap();
    let report = response.extensions().get::<CallReport>().unwrap();
    assert_eq!((response.status().as_u16(), report.attempts().len(), report.stop()), (200, 3, None));
    let seen = server.until(|seen| seen.complete() == 3).await;
    assert!(seen.sent(3).requests.iter().all(|request| request.body.is("one more")), "{seen}");

    // A proof of the client's is not taken: nobody watched the body.
    let refusing = Server::refusing();
    let client = stack(built(policy()), Client::builder(TokioExecutor::new()).build_http());
    let post = Request::post(refusing.url("/")).body(Full::<Bytes>::from("one more")).unwrap();
    let error = client.oneshot(post).await.unwrap_err();
    assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
    assert!(error.is_connect() && error.to_string().starts_with("orders any: "), "{error}");
}

/// As in our own layer: callers that wait for next to no time say nothing of the provider's health.
#[tokio::test(start_paused = true)]
async fn hasty_callers_close_no_budget() {
    let budget = Budget::usual();
    for _ in 0..10 {
        let mut hasty = request(Method::PUT);
        hasty.extensions_mut().insert(Deadline::after(ms(1)));
        let service = service([Reply::stall()]);
        let ended = stack(built(policy().budget(budget.clone())), service).oneshot(hasty).await;
        assert!(ended.map(drop).unwrap_err().is_timeout());
    }
    assert_eq!(budget.level(), 12.5);
}

/// As in our own layer, and here too until the call ends.
#[tokio::test(start_paused = true)]
async fn c053_what_is_repeated_after_a_417_expects_nothing() {
    let listed = || {
        let transient = Transient::usual().status_because(417, "RFC 9110, 10.1.1: to be repeated without it");
        let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(60) };
        StandardPolicy::builder("orders", timeouts, transient).budget(Budget::unlimited("one call"))
    };
    let service = service([417, 503, 200].map(Reply::status));
    let mut expecting = request(Method::PUT);
    expecting.headers_mut().insert("expect", "100-continue".parse().unwrap());
    assert_eq!(call(listed(), &service, expecting).await.0, 200);
    let seen = service.seen();
    let expects: Vec<_> = seen.sent(3).requests.iter().map(|seen| seen.headers.contains_key("expect")).collect();
    assert_eq!(expects, [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn it_decides_as_our_own_layer_does() {
    let replies = || {
        [
            vec![Reply::ok("")],
            vec![Reply::status(404)],
            vec![Reply::status(503), Reply::ok("")],
            vec![Reply::status(503), Reply::status(503), Reply::ok("")],
            vec![Reply::status(503), Reply::status(404)],
            vec![Reply::status(503)],
            vec![Reply::status(425), Reply::ok("")],
            vec![Reply::status(429).header("retry-after", "2"), Reply::ok("")],
            vec![Reply::status(429).header("retry-after", "60"), Reply::ok("")],
            vec![Reply::status(501)],
            vec![Reply::reset(), Reply::ok("")],
            vec![Reply::reset()],
            vec![Reply::stall(), Reply::ok("")],
        ]
    };
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(30) };
    for method in [Method::GET, Method::POST] {
        for replies in replies() {
            let policy = || built(within(timeouts).seed(7));
            let (theirs, ours) = (service(replies.clone()), service(replies.clone()));
            let of = |result: Result<http::Response<_>, Error>| match result {
                Ok(response) => (Some(response.status()), response.extensions().get().cloned()),
                Err(error) => (None, error.report().cloned()),
            };
            let theirs_ended = of(stack(policy(), theirs.clone()).oneshot(request(method.clone())).await.map(bodiless));
            let ours_ended =
                of(RetryLayer::new(policy()).layer(ours.clone()).oneshot(request(method.clone())).await.map(bodiless));
            let statuses = (theirs_ended.0, ours_ended.0);
            if method == Method::POST && statuses.0 == Some(StatusCode::TOO_EARLY) {
                assert_eq!(
                    statuses.1,
                    Some(StatusCode::OK),
                    "the one rejection among these, which is a proof to ours alone"
                );
                continue;
            }
            assert_eq!(statuses.0, statuses.1, "{method} {replies:?}");
            // But for what a documented rejection proves: nobody watches here what becomes of the request.
            let story = |report: CallReport| {
                let rest = (report.stop(), report.elapsed(), report.retry_at().is_some());
                let mut attempts = report.attempts().to_vec();
                let rejected = attempts.iter_mut().filter(|attempt| attempt.reach == Reach::Rejected);
                rejected.for_each(|attempt| attempt.reach = Reach::Unknown);
                (attempts, rest)
            };
            assert_eq!(theirs_ended.1.map(story), ours_ended.1.map(story), "{method} {replies:?}");
            assert_eq!(theirs.seen().requests.len(), ours.seen().requests.len(), "{method} {replies:?}");
        }
    }
}

fn bodiless<B>(response: http::Response<B>) -> http::Response<()> {
    response.map(drop)
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_the_total_or_the_callers_deadline() {
    let timeouts = Timeouts { attempt: ms(4), total: ms(5) };
    let busy = service([Reply::status(503)]);
    let (_, report) = call(within(timeouts), &busy, request(Method::GET)).await;
    assert_eq!(report.unwrap().stop(), Some(StopReason::Deadline));

    let busy = service([Reply::status(503)]);
    let mut get = request(Method::GET);
    get.extensions_mut().insert(Deadline::after(ms(5)));
    let (_, report) = call(policy(), &busy, get).await;
    assert_eq!(report.unwrap().stop(), Some(StopReason::Deadline));

    // The timeout layer below keeps to the total from the second attempt on.
    let slow = service([Reply::status(503), Reply::stall()]);
    let timeouts = Timeouts { attempt: ms(100), total: ms(300) };
    let began = tokio::time::Instant::now();
    let error = stack(built(within(timeouts)), slow.clone()).oneshot(request(Method::GET)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(began.elapsed() <= ms(310), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_cancelled_wait_had_reserved_is_given_back() {
    let budget = Budget::aws();
    let busy = service([Reply::status(503)]);
    let long = Duration::from_secs(5);
    let waiting = policy().budget(budget.clone()).backoff(Backoff::fixed(long, "a clock of its own")).build().unwrap();
    let full = budget.level();
    for _ in 0..3 {
        let call = stack(waiting.clone(), busy.clone()).oneshot(request(Method::GET));
        let mut call = Box::pin(call);
        assert!(timeout(Duration::from_secs(1), &mut call).await.is_err(), "it waits");
        assert!(budget.level() < full, "and was paid for");
        drop(call);
        assert_eq!(budget.level(), full);
    }
}

/// The service was ready again too late: the timeout layer below sends nothing then.
#[tokio::test(start_paused = true)]
async fn what_came_too_late_to_be_sent_is_given_back() {
    let budget = Budget::aws();
    let timeouts = Timeouts { attempt: ms(500), total: Duration::from_secs(1) };
    let readiness = [Readiness::Now, Readiness::After(Duration::from_secs(2))];
    let slow = service(Script::new([Reply::status(503)]).readiness(readiness));
    let policy = built(within(timeouts).budget(budget.clone()));
    let error = stack(policy, slow.clone()).oneshot(request(Method::GET)).await.map(drop).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    slow.seen().sent(1);
    assert_eq!(budget.level(), 500.0);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_cannot_be_copied_are_sent_once() {
    let busy = service([Reply::status(503)]);
    let frames = futures_util::stream::iter([Ok::<_, redial::BoxError>(http_body::Frame::data(Bytes::from("one")))]);
    let put = Request::put("/").body(StreamBody::new(frames)).unwrap();
    let response = stack(built(policy()), busy.clone()).oneshot(put).await.unwrap();
    assert_eq!(response.status(), 503);
    busy.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn upgrades_and_what_another_layer_repeats_are_sent_once() {
    let busy = service([Reply::status(503)]);
    let mut upgrade = request(Method::GET);
    upgrade.headers_mut().insert("upgrade", "websocket".parse().unwrap());
    let (_, report) = call(policy(), &busy, upgrade).await;
    assert_eq!(report.unwrap().stop(), Some(StopReason::Upgrade));

    // Ours above, its body made another type, so that types do not see it.
    let busy = service([Reply::status(503)]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(built(policy())))
        .map_request(|request: Request<redial::AttemptBody<Full<Bytes>>>| request.map(|_| Full::<Bytes>::default()))
        .service(stack(built(policy()), busy.clone()));
    client.oneshot(request(Method::GET)).await.unwrap();
    busy.seen().sent(3);
}

#[tokio::test(start_paused = true)]
async fn one_call_one_story() {
    let events = Events::capture();
    let busy = service([Reply::status(503), Reply::ok("")]);
    call(policy(), &busy, request(Method::GET)).await;
    assert_eq!((events.at(Level::DEBUG).len(), events.at(Level::INFO).len()), (1, 1));
    events.no_error();

    let busy = service([Reply::status(503)]);
    call(policy(), &busy, request(Method::GET)).await;
    assert_eq!(events.one_error().get("stop"), "attempts");
}
