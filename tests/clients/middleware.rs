//! The retry layer as a middleware of reqwest-middleware.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::Extensions;
use redial::{
    Deadline, Error, Reach, RequestOptions, StopReason,
    policy::StandardPolicyBuilder,
    reqwest_middleware::{RetryMiddleware, as_redial},
    testing::{Events, Reply, Server},
};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};
use tracing::Level;

use crate::{ended, inner, ms, policy, report};

fn middleware(policy: StandardPolicyBuilder) -> RetryMiddleware {
    RetryMiddleware::new(policy.build().unwrap())
}

fn plain() -> ClientBuilder {
    ClientBuilder::new(inner().build().unwrap())
}

fn client() -> ClientWithMiddleware {
    plain().with(middleware(policy())).build()
}

fn ours(error: &reqwest_middleware::Error) -> &Error {
    as_redial(error).unwrap_or_else(|| panic!("not ours: {error:?}"))
}

#[tokio::test]
async fn a_call_is_repeated_and_its_answer_is_reqwests() {
    let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("an order")]);
    let response = client().put(server.url("/orders/7")).body("one more").send().await.unwrap();
    assert_eq!(response.url().as_str(), server.url("/orders/7"));
    assert_eq!(report(&response).attempts().len(), 3);
    assert_eq!(response.text().await.unwrap(), "an order");
    let seen = server.until(|seen| seen.complete() == 3).await;
    assert!(seen.sent(3).requests.iter().all(|request| request.body.is("one more")), "{seen}");
}

#[tokio::test]
async fn what_the_errors_say_is_read() {
    let refusing = Server::refusing();
    let error = client().post(refusing.url("/")).body("one more").send().await.unwrap_err();
    assert_eq!(ended(ours(&error)), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    assert!(ours(&error).find_source::<reqwest::Error>().unwrap().is_connect());

    let server = Server::http1([Reply::reset()]);
    let error = client().post(server.url("/")).body("one more").send().await.unwrap_err();
    assert_eq!(ended(ours(&error)), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
}

#[tokio::test]
async fn a_stream_that_is_too_long_is_sent_once_instead_of_failing() {
    let server = Server::http1([Reply::status(503)]);
    let frames = || futures_util::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(vec![7; 1024])));
    let put = client().put(server.url("/")).body(reqwest::Body::wrap_stream(frames()));
    let response = put.send().await.unwrap();
    assert_eq!((response.status().as_u16(), report(&response).stop()), (503, Some(StopReason::BodyTooLarge)));
    assert!(server.seen().sent(1).requests[0].body.is([7; 100 * 1024]));
}

#[tokio::test]
async fn options_and_deadlines_come_with_extension() {
    let server = Server::http1([Reply::status(503)]);
    let options = RequestOptions::new().attempts(2).idempotent("the number is unique");
    let response = client().post(server.url("/")).with_extension(options).send().await.unwrap();
    assert_eq!(report(&response).attempts().len(), 2);

    let silent = Server::http1([Reply::stall()]);
    let get = client().get(silent.url("/")).with_extension(Deadline::after(ms(200)));
    assert!(ours(&get.send().await.unwrap_err()).is_outer_deadline());
}

/// What the middlewares below see: counted in the extensions themselves.
#[derive(Clone, Default)]
struct Below {
    attempts: Arc<std::sync::Mutex<Vec<Option<u32>>>>,
    signed: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
struct Count(usize);

#[async_trait::async_trait]
impl Middleware for Below {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        self.attempts.lock().unwrap().push(redial::attempt_number(extensions));
        let Count(before) = *extensions.get_or_insert_with(|| Count(0));
        extensions.insert(Count(before + 1));
        if request.body().is_some_and(|body| body.as_bytes() == Some(b"one more")) {
            self.signed.fetch_add(1, Ordering::Relaxed);
        }
        next.run(request, extensions).await
    }
}

/// Above: what has come back in the extensions.
#[derive(Clone, Default)]
struct Above(Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Middleware for Above {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let result = next.run(request, extensions).await;
        self.0.store(extensions.get::<Count>().map_or(0, |count| count.0), Ordering::Relaxed);
        assert_eq!(redial::attempt_number(extensions), None, "the marks are the attempts' alone");
        result
    }
}

#[tokio::test]
async fn the_middlewares_below_run_once_an_attempt_and_keep_what_they_put_in() {
    let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("")]);
    let (above, below) = (Above::default(), Below::default());
    let client = plain().with(above.clone()).with(middleware(policy())).with(below.clone()).build();
    client.put(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(*below.attempts.lock().unwrap(), [Some(1), Some(2), Some(3)]);
    assert_eq!(above.0.load(Ordering::Relaxed), 3);
    assert_eq!(below.signed.load(Ordering::Relaxed), 0, "a stream is not looked into");

    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let client = plain().with(middleware(policy()).whole_bodies()).with(below.clone()).build();
    client.put(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(below.signed.load(Ordering::Relaxed), 2);
    let seen = server.until(|seen| seen.complete() == 2).await;
    assert!(seen.sent(2).requests.iter().all(|request| request.body.is("one more")), "{seen}");
}

#[tokio::test]
async fn a_second_one_sends_once_and_warns_or_refuses() {
    let server = Server::http1([Reply::status(503)]);
    let events = Events::capture();
    let client = plain().with(middleware(policy())).with(middleware(policy())).build();
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!(report(&response).attempts().len(), 3);
    assert!(report(&response).inner_stacked());
    server.seen().sent(3);
    assert_eq!(events.at(Level::WARN).len(), 1, "{:?}", events.all());

    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(middleware(policy())).with(middleware(policy()).refuse_stacking()).build();
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert!(ours(&error).is_stacked(), "{error}");
    server.seen().sent(0);
}

/// A middleware that builds a request of its own loses all that the old one carried.
struct Rebuilt;

#[async_trait::async_trait]
impl Middleware for Rebuilt {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        next.run(Request::new(request.method().clone(), request.url().clone()), extensions).await
    }
}

#[tokio::test]
async fn a_second_one_notices_where_the_request_was_built_anew() {
    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(middleware(policy())).with(Rebuilt).with(middleware(policy())).build();
    client.get(server.url("/")).send().await.unwrap();
    server.seen().sent(3);
}

/// Answers a challenge, as those for OAuth do.
struct Authenticates;

#[async_trait::async_trait]
impl Middleware for Authenticates {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let mut again = request.try_clone().unwrap();
        let response = next.clone().run(request, extensions).await?;
        if response.status() != 401 {
            return Ok(response);
        }
        again.headers_mut().insert("authorization", "Bearer fresh".parse().unwrap());
        next.run(again, extensions).await
    }
}

#[tokio::test]
async fn an_answered_challenge_is_another_call_with_attempts_of_its_own() {
    let server = Server::http1([Reply::status(401), Reply::status(503), Reply::status(503), Reply::ok("")]);
    let client = plain().with(Authenticates).with(middleware(policy())).build();
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), report(&response).attempts().len()), (200, 3));
    server.seen().sent(4);
}

#[tokio::test]
async fn a_cancelled_call_changes_nothing_above() {
    let server = Server::http1([Reply::stall()]);
    let client = plain().with(middleware(policy())).with(Below::default()).build();
    let mut extensions = Extensions::new();
    let request = client.get(server.url("/")).build().unwrap();
    let call = client.execute_with_extensions(request, &mut extensions);
    assert!(tokio::time::timeout(ms(200), call).await.is_err());
    assert!(extensions.is_empty());
    server.until(|seen| seen.in_flight() == 0).await;
}

/// Wraps what it is given, as a middleware may that says what it was about.
struct Wraps;

#[derive(Debug)]
struct Wrapped(reqwest_middleware::Error);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no order was placed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[async_trait::async_trait]
impl Middleware for Wraps {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        next.run(request, extensions).await.map_err(|error| reqwest_middleware::Error::middleware(Wrapped(error)))
    }
}

#[tokio::test]
async fn our_error_is_found_where_it_was_wrapped_and_none_where_there_is_none() {
    let refusing = Server::refusing();
    let client = plain().with(Wraps).with(middleware(policy())).build();
    let error = client.get(refusing.url("/")).send().await.unwrap_err();
    assert!(ours(&error).is_connect());
    let error = plain().with(Wraps).build().get(refusing.url("/")).send().await.unwrap_err();
    assert!(as_redial(&error).is_none());
    let error = plain().build().get(refusing.url("/")).send().await.unwrap_err();
    assert!(as_redial(&error).is_none());
}
