//! Two retries on one path: how many requests one call comes to, as the server counts them.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    AttemptBody, BoxError, Place, RetryLayer, TimeoutLayer, Timeouts,
    reqwest_middleware::{RetryMiddleware, as_redial},
    testing::{Events, Reply, Server},
    tower::RetryPolicy,
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tower::{Layer, ServiceBuilder, ServiceExt, retry, service_fn};
use tracing::Level;

use crate::{inner, ms, policy, within};

/// reqwest as it comes: it retries what HTTP/2 refuses.
fn with_retries() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

fn without_retries() -> reqwest::Client {
    inner().http2_prior_knowledge().build().unwrap()
}

fn ours(client: reqwest::Client) -> redial::reqwest::Client {
    redial::reqwest::client(client, policy().build().unwrap())
}

fn middleware() -> RetryMiddleware {
    RetryMiddleware::new(policy().build().unwrap())
}

/// reqwest-retry: one try and three more.
fn theirs() -> RetryTransientMiddleware<ExponentialBackoff> {
    let waits = ExponentialBackoff::builder().retry_bounds(ms(1), ms(5)).build_with_max_retries(3);
    RetryTransientMiddleware::new_with_policy(waits)
}

fn plain() -> ClientBuilder {
    ClientBuilder::new(inner().build().unwrap())
}

struct Row {
    stack: &'static str,
    requests: usize,
    expected: usize,
}

#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn row(&mut self, stack: &'static str, server: &Server, expected: usize) {
        self.0.push(Row { stack, requests: server.seen().requests.len(), expected });
    }

    async fn refused<F: Future>(&mut self, stack: &'static str, expected: usize, call: impl FnOnce(String) -> F) {
        let server = Server::http2([Reply::refused_stream()]);
        call(server.url("/")).await;
        self.row(stack, &server, expected);
    }

    async fn busy<F: Future>(&mut self, stack: &'static str, expected: usize, call: impl FnOnce(String) -> F) {
        let server = Server::http1([Reply::status(503)]);
        call(server.url("/")).await;
        self.row(stack, &server, expected);
    }
}

async fn get(client: ClientWithMiddleware, url: String) -> Option<StatusCode> {
    client.get(url).send().await.ok().map(|response| response.status())
}

fn request(url: &str) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

#[tokio::test]
async fn table_of_what_two_retries_come_to() {
    let mut table = Table::default();

    // HTTP/2 refuses each stream.
    table.refused("reqwest alone, as it comes", 3, |url| with_retries().get(url).send()).await;
    table.refused("reqwest alone, retry::never()", 1, |url| without_retries().get(url).send()).await;
    table.refused("redial::reqwest, over reqwest as it comes", 3, |url| ours(with_retries()).get(url).send()).await;
    table.refused("redial::reqwest, over retry::never()", 3, |url| ours(without_retries()).get(url).send()).await;
    let whole = |client| ours(client).whole_bodies();
    table.refused("whole_bodies, over reqwest as it comes", 9, |url| whole(with_retries()).get(url).send()).await;
    table.refused("whole_bodies, over retry::never()", 3, |url| whole(without_retries()).get(url).send()).await;

    // The server answers 503.
    table.busy("RetryLayer around redial::reqwest", 3, around).await;
    table.busy("RetryMiddleware alone", 3, |url| get(plain().with(middleware()).build(), url)).await;
    let two = plain().with(middleware()).with(middleware()).build();
    table.busy("RetryMiddleware twice", 3, |url| get(two, url)).await;
    table.busy("reqwest-retry (3 retries) alone", 4, |url| get(plain().with(theirs()).build(), url)).await;
    let above = plain().with(theirs()).with(middleware()).build();
    table.busy("reqwest-retry, then RetryMiddleware", 6, |url| get(above, url)).await;
    let below = plain().with(middleware()).with(theirs()).build();
    table.busy("RetryMiddleware, then reqwest-retry: refused", 0, |url| get(below, url)).await;
    let below = plain().with(middleware().whole_bodies()).with(theirs()).build();
    table.busy("the same with whole_bodies: not noticed", 12, |url| get(below, url)).await;
    table.busy("tower's retry with RetryPolicy", 3, |url| towers(url, false)).await;
    table.busy("tower's retry with RetryPolicy, twice", 5, |url| towers(url, true)).await;
    table.busy("tower's retry with RetryPolicy, over RetryLayer", 5, towers_over_ours).await;

    println!("{:<50} requests of one call", "what stands on the path");
    for row in &table.0 {
        println!("{:<50} {:>8}", row.stack, row.requests);
    }
    for row in &table.0 {
        assert_eq!(row.requests, row.expected, "{}", row.stack);
    }
}

/// A handler that hands its request to our reqwest client.
async fn around(url: String) {
    let client = ours(inner().build().unwrap());
    let handler = service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
        let client = client.clone();
        async move {
            let request = reqwest::Request::try_from(request.map(reqwest::Body::wrap))?;
            let response = client.execute(request).await?;
            Ok::<_, BoxError>(http::Response::<reqwest::Body>::from(response))
        }
    });
    RetryLayer::new(policy().build().unwrap()).layer(handler).oneshot(request(&url)).await.unwrap();
}

async fn towers(url: String, twice: bool) {
    let layer = || retry::RetryLayer::new(RetryPolicy::new(policy().build().unwrap()));
    let inner = TimeoutLayer::new().head(ms(5_000)).layer(Client::builder(TokioExecutor::new()).build_http());
    match twice {
        false => layer().layer(inner).oneshot(request(&url)).await.unwrap(),
        true => layer().layer(layer().layer(inner)).oneshot(request(&url)).await.unwrap(),
    };
}

async fn towers_over_ours(url: String) {
    let stack = ServiceBuilder::new()
        .layer(retry::RetryLayer::new(RetryPolicy::new(policy().build().unwrap())))
        .layer(RetryLayer::new(policy().build().unwrap()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    stack.oneshot(request(&url)).await.unwrap();
}

#[tokio::test]
async fn reqwest_retry_below_says_what_it_cannot_do() {
    let server = Server::http1([Reply::ok("")]);
    let client = plain().with(middleware()).with(theirs()).build();
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert!(error.to_string().contains("not cloneable"), "{error}");
    server.seen().sent(0);
}

#[tokio::test]
async fn what_reqwest_retry_above_sends_again_is_still_within_the_policys_time() {
    let busy = Reply::status(503);
    let server = Server::http1([busy.clone(), busy.clone(), busy, Reply::stall()]);
    let timeouts = Timeouts { attempt: ms(200), total: ms(5_000) };
    let middleware = RetryMiddleware::new(within(timeouts).build().unwrap());
    let events = Events::capture();
    let client = plain().with(theirs()).with(middleware).build();
    let error = client.get(server.url("/")).send().await.unwrap_err();
    // reqwest-retry takes an error of a middleware for final.
    assert!(as_redial(&error).unwrap().is_timeout(), "{error}");
    server.seen().sent(4);
    assert_eq!(events.at(Level::WARN).len(), 1, "{:?}", events.all());

    let server = Server::http1([Reply::status(503)]);
    let refusing = RetryMiddleware::new(policy().build().unwrap()).refuse_stacking();
    plain().with(theirs()).with(refusing).build().get(server.url("/")).send().await.unwrap_err();
    server.seen().sent(3);
}

#[test]
fn what_whole_bodies_let_multiply_is_declared() {
    let declared = || policy().elsewhere(Place::Client, "reqwest", 3);
    declared().build().unwrap_err();
    let policy = declared().attempts_because(3, "HTTP/2 refuses streams for a moment only").build().unwrap();
    assert_eq!(policy.worst_case_requests(), 9);
}
