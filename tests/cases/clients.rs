//! The clients that people have, over sockets: one policy decides alike through each, and no error says too much.

use std::{error::Error as StdError, time::Duration};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    AttemptOutcome, Backoff, CallReport, Error, Reach, RetryLayer, StandardPolicy, StopReason, Timeouts, Transient,
    reqwest_middleware::{RetryMiddleware, as_redial},
    testing::{LastStream, Reason, Reply, Server},
};
use tower::{Layer, ServiceExt};

/// A fresh one for each call: budget, hold and dice begin anew.
fn policy(attempts: u32) -> StandardPolicy {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(40) };
    let waits = Backoff::exponential(Duration::from_millis(20)).max(Duration::from_millis(60));
    StandardPolicy::builder("orders", timeouts, Transient::usual())
        .attempts(attempts)
        .backoff(waits.floor(Duration::from_millis(5)))
        .seed(137)
        .build()
        .unwrap()
}

fn inner() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).redirect(reqwest::redirect::Policy::none())
}

/// How a call ended: its last status, each attempt with its reach and the wait after it, and why there was not another.
#[derive(Debug, PartialEq, Eq)]
struct End {
    status: Option<StatusCode>,
    attempts: Vec<(AttemptOutcome, Reach, Option<Duration>)>,
    stop: Option<StopReason>,
}

impl End {
    fn of<B>(result: Result<Response<B>, &Error>) -> Self {
        let (status, report) = match &result {
            Ok(response) => (Some(response.status()), response.extensions().get::<CallReport>()),
            Err(error) => (None, error.report()),
        };
        let attempts = report.map(CallReport::attempts).unwrap_or_default();
        let attempts = attempts.iter().map(|attempt| (attempt.outcome, attempt.reach, attempt.wait)).collect();
        End { status, attempts, stop: report.and_then(CallReport::stop) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Http1,
    Http2,
    Refusing,
}

fn play(wire: Wire, reply: &Reply) -> Server {
    let replies = [reply.clone(), Reply::ok("done")];
    match wire {
        Wire::Http1 => Server::http1(replies),
        Wire::Http2 => Server::http2(replies),
        Wire::Refusing => Server::refusing(),
    }
}

async fn through_hyper(wire: Wire, server: &Server, method: &Method) -> End {
    let client = Client::builder(TokioExecutor::new()).http2_only(wire == Wire::Http2).build_http();
    let request = http::Request::builder().method(method).uri(server.url("/")).body(Full::<Bytes>::from("one more"));
    let result = RetryLayer::new(policy(3)).layer(client).oneshot(request.unwrap()).await;
    match result {
        Ok(response) => End::of(Ok(response)),
        Err(error) => End::of::<()>(Err(&error)),
    }
}

fn reqwest_over(wire: Wire) -> reqwest::Client {
    let builder = if wire == Wire::Http2 { inner().http2_prior_knowledge() } else { inner() };
    builder.build().unwrap()
}

async fn through_reqwest(wire: Wire, server: &Server, method: &Method) -> End {
    let client = redial::reqwest::client(reqwest_over(wire), policy(3)).one_request_per_attempt();
    match client.request(method.clone(), server.url("/")).body("one more").send().await {
        Ok(response) => End::of(Ok(Response::<reqwest::Body>::from(response))),
        Err(error) => End::of::<()>(Err(&error)),
    }
}

async fn through_middleware(wire: Wire, server: &Server, method: &Method) -> End {
    let middleware = RetryMiddleware::new(policy(3)).one_request_per_attempt();
    let client = reqwest_middleware::ClientBuilder::new(reqwest_over(wire)).with(middleware).build();
    match client.request(method.clone(), server.url("/")).body("one more").send().await {
        Ok(response) => End::of(Ok(Response::<reqwest::Body>::from(response))),
        Err(error) => End::of::<()>(Err(as_redial(&error).unwrap())),
    }
}

fn replies() -> Vec<(Wire, Reply)> {
    let statuses =
        [200, 204, 302, 304, 400, 401, 403, 404, 408, 409, 412, 422, 425, 429, 500, 501, 502, 503, 504, 505, 507];
    let statuses = statuses.into_iter().map(Reply::status);
    let told = ["0", "1", "3600", "no time"].map(|wait| Reply::status(429).header("retry-after", wait));
    let faults = [Reply::close(), Reply::reset(), Reply::half_head(), Reply::stall(), Reply::ok("half").close_within()];
    let over_http2 = [
        Reply::refused_stream(),
        Reply::reset_stream(Reason::Cancel),
        Reply::goaway(LastStream::Before, Reason::NoError),
        Reply::goaway(LastStream::Before, Reason::EnhanceYourCalm),
        Reply::status(503),
    ];
    let http1 = statuses.chain(told).chain(faults).map(|reply| (Wire::Http1, reply));
    let http2 = over_http2.into_iter().map(|reply| (Wire::Http2, reply));
    http1.chain(http2).chain([(Wire::Refusing, Reply::status(200))]).collect()
}

#[tokio::test]
async fn c137_the_same_decisions_through_each_client() {
    let replies = replies();
    assert!(replies.len() >= 30);
    let calls =
        replies.iter().flat_map(|(wire, reply)| [Method::PUT, Method::POST].map(|method| (*wire, reply, method)));
    join_all(calls.map(|(wire, reply, method)| async move {
        let servers = [play(wire, reply), play(wire, reply), play(wire, reply)];
        let hyper = through_hyper(wire, &servers[0], &method).await;
        let reqwest = through_reqwest(wire, &servers[1], &method).await;
        let middleware = through_middleware(wire, &servers[2], &method).await;
        let case = format!("{method} {wire:?} {reply:?}");
        assert_eq!(reqwest, hyper, "{case}");
        assert_eq!(middleware, hyper, "{case}");
        let [hyper, reqwest, middleware] = servers.map(|server| server.seen().requests.len());
        assert_eq!((reqwest, middleware), (hyper, hyper), "{case}");
    }))
    .await;
}

#[tokio::test]
async fn c138_the_same_error_with_and_without_retries() {
    let server = Server::http1([Reply::stall()]);
    let reaches = |error: &Error, attempts| {
        assert!(error.is_timeout());
        assert!(error.find_source::<reqwest::Error>().unwrap().is_timeout());
        assert_eq!(error.report().unwrap().attempts().len(), attempts as usize);
    };
    for attempts in [1, 3] {
        let client = redial::reqwest::client(inner().build().unwrap(), policy(attempts));
        let error = client.get(server.url("/")).timeout(Duration::from_millis(1)).send().await.unwrap_err();
        reaches(&error, attempts);

        let middleware = RetryMiddleware::new(policy(attempts));
        let client = reqwest_middleware::ClientBuilder::new(inner().build().unwrap()).with(middleware).build();
        let error = client.get(server.url("/")).timeout(Duration::from_millis(1)).send().await.unwrap_err();
        assert!(!error.is_timeout(), "reqwest-middleware does not look into ours");
        reaches(as_redial(&error).unwrap(), attempts);
    }
}

/// What every link of an error says, by `Display` and `Debug`.
fn links(error: &(dyn StdError + 'static)) -> String {
    let links = std::iter::successors(Some(error), |error| (*error).source());
    links.map(|error| format!("{error}\n{error:?}\n")).collect()
}

#[tokio::test]
async fn c172_no_secret_of_the_url_is_in_any_link() {
    let refusing = Server::refusing();
    let url = format!("http://USER:PASS@{}/orders?signature=SIG#FRAG", refusing.addr());
    let client = redial::reqwest::client(inner().build().unwrap(), policy(3));
    let error = client.get(&url).send().await.unwrap_err();
    let shown = error.find_source::<reqwest::Error>().unwrap().url().unwrap();
    assert_eq!(shown.path(), "/orders", "the rest is still there");

    let middleware = RetryMiddleware::new(policy(3));
    let wrapped = reqwest_middleware::ClientBuilder::new(inner().build().unwrap()).with(middleware).build();
    let wrapped = wrapped.get(&url).send().await.unwrap_err();
    let stalled = Server::http1([Reply::stall()]);
    let late = client.get(stalled.url("/orders?signature=SIG")).timeout(Duration::from_millis(10));
    let late = late.send().await.unwrap_err();
    let scheme = client.get("ftp://USER:PASS@127.0.0.1/?signature=SIG").send().await.unwrap_err();
    // As it comes, reqwest's error would say it all.
    let theirs = inner().build().unwrap().get(&url).send().await.unwrap_err();
    assert!(links(&theirs).contains("SIG"));
    for text in [links(&error), links(&wrapped), links(&late), links(&scheme)] {
        for secret in ["SIG", "PASS", "USER", "FRAG"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
