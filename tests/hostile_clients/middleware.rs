//! reqwest-middleware, beside what else people have.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ::reqwest::{Request, Response};
use http::Extensions;
use redial::{
    Budget, RequestOptions,
    reqwest_middleware::{RetryMiddleware, as_redial},
    testing::{Reply, Script, Server},
};
use reqwest_middleware::{ClientBuilder, Extension, Middleware, Next, Result};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

use crate::{attempts, inner, ms, policy};

fn middleware() -> RetryMiddleware {
    RetryMiddleware::new(policy().build().unwrap())
}

fn plain() -> ClientBuilder {
    ClientBuilder::new(inner().build().unwrap())
}

/// One try and three more.
fn theirs() -> RetryTransientMiddleware<ExponentialBackoff> {
    let waits = ExponentialBackoff::builder().retry_bounds(ms(1), ms(5)).build_with_max_retries(3);
    RetryTransientMiddleware::new_with_policy(waits)
}

/// The same extensions for several calls: a poll loop, say.
#[tokio::test]
async fn a_call_after_one_that_worked_has_its_attempts_again() {
    let (busy, ok) = (|| Reply::status(503), || Reply::ok(""));
    let server = Server::http1([busy(), busy(), busy(), ok(), busy(), ok()]);
    let client = plain().with(middleware()).build();
    let mut extensions = Extensions::new();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = client.get(server.url("/")).build().unwrap();
        let answer = client.execute_with_extensions(request, &mut extensions).await.unwrap();
        statuses.push(answer.status().as_u16());
    }
    // The first fails after three; the second works at once; the third is a call like any other.
    assert_eq!(statuses, [503, 200, 200], "the server saw {}", server.seen().requests.len());
}

/// A middleware that polls until a job is done: 503 means "not yet", every poll is a call.
struct Poll;

#[async_trait::async_trait]
impl Middleware for Poll {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        loop {
            let response = next.clone().run(request.try_clone().unwrap(), extensions).await?;
            if response.status() != 202 {
                return Ok(response);
            }
        }
    }
}

#[tokio::test]
async fn polling_above_has_attempts_for_each_poll() {
    let (busy, ok) = (|| Reply::status(503), || Reply::status(202));
    let server = Server::http1([busy(), ok(), busy(), ok(), busy(), Reply::ok("")]);
    let client = plain().with(Poll).with(middleware()).build();
    assert_eq!(client.get(server.url("/")).send().await.unwrap().status(), 200);
    server.seen().sent(6);
}

/// Stamps each request it sees with a query of its own, as signed URLs have.
#[derive(Default)]
struct Stamp(AtomicUsize);

#[async_trait::async_trait]
impl Middleware for Stamp {
    async fn handle(&self, mut request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let nonce = self.0.fetch_add(1, Relaxed).to_string();
        request.url_mut().query_pairs_mut().append_pair("nonce", &nonce);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn reqwest_retry_above_a_stamp_above_ours_does_not_multiply() {
    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(theirs()).with(Stamp::default()).with(middleware()).build();
    client.get(server.url("/")).send().await.unwrap();
    // As the page says of reqwest-retry before this one: 3 + 3.
    server.seen().sent(6);
}

#[tokio::test]
async fn reqwest_retry_above_two_clones_of_one_client() {
    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(theirs()).with(middleware()).build();
    let other = client.clone();
    let (one, two) = tokio::join!(client.get(server.url("/")).send(), other.get(server.url("/")).send());
    one.unwrap();
    two.unwrap();
    server.seen().sent(12);
}

#[tokio::test]
async fn with_init_reaches_the_policy() {
    let server = Server::http1([Reply::status(503)]);
    let options = RequestOptions::new().attempts(2).idempotent("the number is unique");
    let client = plain().with(middleware()).with_init(Extension(options)).build();
    let response = client.post(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(attempts(&response), 2);
    server.seen().sent(2);
}

#[tokio::test]
async fn clones_share_the_budget() {
    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(RetryMiddleware::new(policy().budget(Budget::usual()).build().unwrap())).build();
    let calls = (0..40).map(|_| {
        let client = client.clone();
        let url = server.url("/");
        async move { client.get(url).send().await }
    });
    futures_util::future::join_all(calls).await;
    let sent = server.seen().requests.len();
    assert!((40..=46).contains(&sent), "{sent}");
}

/// Fetches a token by a client of its own, which retries too, before each attempt.
struct Token(reqwest_middleware::ClientWithMiddleware, String);

#[async_trait::async_trait]
impl Middleware for Token {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let token = self.0.get(&self.1).send().await?.text().await?;
        let mut request = request;
        request.headers_mut().insert("authorization", token.parse().unwrap());
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn a_token_below_is_a_call_of_its_own() {
    let tokens = Server::http1([Reply::status(503), Reply::ok("fresh")]);
    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let own = plain().with(middleware()).build();
    let client = plain().with(middleware()).with(Token(own, tokens.url("/token"))).build();
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    assert!(server.seen().sent(2).requests.iter().all(|request| request.headers["authorization"] == "fresh"));
    tokens.seen().sent(3);
}

/// A token that cannot be had: the order was never sent, but the proof is the token's.
#[tokio::test]
async fn a_token_that_cannot_be_had_is_no_proof() {
    let down = Server::refusing();
    let server = Server::http1([Reply::ok("")]);
    let own = plain().build();
    let client = plain().with(middleware()).with(Token(own, down.url("/token"))).build();
    let error = client.post(server.url("/")).body("one more").send().await.unwrap_err();
    let error = as_redial(&error).unwrap();
    eprintln!("{:?}", error.report());
    assert!(error.is_connect());
    server.seen().sent(0);
}

/// After the answer: a receipt is fetched by a client of its own, and cannot be.
struct Receipt(reqwest_middleware::ClientWithMiddleware, String);

#[async_trait::async_trait]
impl Middleware for Receipt {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let response = next.run(request, extensions).await?;
        self.0.get(&self.1).send().await?;
        Ok(response)
    }
}

#[tokio::test]
async fn a_receipt_that_cannot_be_had_does_not_repeat_the_order() {
    let down = Server::refusing();
    for whole in [false, true] {
        for body in ["", "one more"] {
            let server = Server::http1([Reply::ok("")]);
            let ours = if whole { middleware().whole_bodies() } else { middleware() };
            let own = plain().build();
            let client = plain().with(ours).with(Receipt(own, down.url("/receipt"))).build();
            client.post(server.url("/")).body(body).send().await.unwrap_err();
            server.seen().sent(1);
        }
    }
}

/// A second server behind one client: what was spent on one URL is not spent on another.
#[tokio::test]
async fn a_fallback_to_another_url_has_its_own_attempts() {
    struct Fallback(String);
    #[async_trait::async_trait]
    impl Middleware for Fallback {
        async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
            let mut second = request.try_clone().unwrap();
            let response = next.clone().run(request, extensions).await?;
            if response.status() != 503 {
                return Ok(response);
            }
            *second.url_mut() = self.0.parse().unwrap();
            next.run(second, extensions).await
        }
    }
    let server = Server::http1(
        Script::new([Reply::status(503)]).route("/other", [Reply::status(503), Reply::status(503), Reply::ok("")]),
    );
    let client = plain().with(Fallback(server.url("/other"))).with(middleware()).build();
    assert_eq!(client.get(server.url("/")).send().await.unwrap().status(), 200);
    server.seen().sent(6);
}

#[tokio::test]
async fn the_url_of_the_request_below_is_the_callers() {
    struct Looks(std::sync::Arc<std::sync::Mutex<Vec<String>>>);
    #[async_trait::async_trait]
    impl Middleware for Looks {
        async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
            self.0.lock().unwrap().push(format!("{} {:?}", request.url(), request.timeout()));
            next.run(request, extensions).await
        }
    }
    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let seen = std::sync::Arc::default();
    let client = plain().with(middleware()).with(Looks(std::sync::Arc::clone(&seen))).build();
    client.get(server.url("/x?a=1#part")).timeout(ms(5000)).send().await.unwrap();
    let line = format!("{} Some(5s)", server.url("/x?a=1#part"));
    assert_eq!(*seen.lock().unwrap(), [line.clone(), line]);
}

#[tokio::test]
async fn reqwests_own_errors_say_what_they_are() {
    let refusing = Server::refusing();
    let client = plain().with(middleware()).build();
    let error = client.get(refusing.url("/?token=SECRET")).send().await.unwrap_err();
    assert!(as_redial(&error).unwrap().is_connect());
    assert!(!format!("{error} {error:?}").contains("SECRET"));
    // A request that cannot be built is reqwest's own error, as without us.
    let error = client.get("no url").send().await.unwrap_err();
    assert!(matches!(error, reqwest_middleware::Error::Reqwest(_)), "{error:?}");
}

/// The same, where the receipt's client retries too: what its error proves is about the receipt.
#[tokio::test]
async fn a_receipt_by_a_retrying_client_that_cannot_be_had_does_not_repeat_the_order() {
    let down = Server::refusing();
    for whole in [false, true] {
        for body in ["", "one more"] {
            let server = Server::http1([Reply::ok("")]);
            let ours = if whole { middleware().whole_bodies() } else { middleware() };
            let own = plain().with(middleware()).build();
            let client = plain().with(ours).with(Receipt(own, down.url("/receipt"))).build();
            client.post(server.url("/")).body(body).send().await.unwrap_err();
            let sent = server.seen().requests.len();
            assert_eq!(sent, 1, "whole {whole}, body {body:?}");
        }
    }
}

/// The same, where the receipt's client passes the extensions on.
#[tokio::test]
async fn a_receipt_within_the_same_extensions_does_not_repeat_the_order() {
    struct Within(reqwest_middleware::ClientWithMiddleware, String);
    #[async_trait::async_trait]
    impl Middleware for Within {
        async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
            let response = next.run(request, extensions).await?;
            let receipt = self.0.get(&self.1).build()?;
            self.0.execute_with_extensions(receipt, extensions).await?;
            Ok(response)
        }
    }
    let down = Server::refusing();
    let server = Server::http1([Reply::ok("")]);
    let own = plain().with(middleware()).build();
    let client = plain().with(middleware()).with(Within(own, down.url("/receipt"))).build();
    client.post(server.url("/")).body("one more").send().await.unwrap_err();
    server.seen().sent(1);
}

#[tokio::test]
async fn a_failed_call_spends_only_its_own_method_and_url_and_a_new_builder_is_new() {
    let server = Server::http1([Reply::status(503)]);
    let client = plain().with(middleware()).build();
    let builder = client.get(server.url("/"));
    let again = builder.try_clone().unwrap();
    builder.send().await.unwrap();
    again.send().await.unwrap();
    server.seen().sent(6);
}

/// The first try of the next call waits too, where the policy says so: for both of reqwest's clients.
#[tokio::test]
async fn a_hold_over_first_tries_holds_them() {
    use redial::{Hold, HoldScope, Transient};
    use std::time::{Duration, Instant};
    let told = || Reply::status(429).header("retry-after", "1");
    let policy = || {
        crate::with(Transient::usual().rejected(429, "throttled is not processed"))
            .hold(HoldScope::All, Hold::default())
            .build()
            .unwrap()
    };
    let server = Server::http1([told(), Reply::ok("")]);
    let client = plain().with(RetryMiddleware::new(policy())).build();
    let first = tokio::spawn(client.get(server.url("/")).send());
    server.until(|seen| seen.complete() == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    client.get(server.url("/")).send().await.unwrap();
    assert!(began.elapsed() >= ms(700), "middleware: {:?}", began.elapsed());
    first.await.unwrap().unwrap();

    let server = Server::http1([told(), Reply::ok("")]);
    let client = redial::reqwest::client(inner().build().unwrap(), policy());
    let first = tokio::spawn(client.get(server.url("/")).send());
    server.until(|seen| seen.complete() == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    client.get(server.url("/")).send().await.unwrap();
    assert!(began.elapsed() >= ms(700), "reqwest: {:?}", began.elapsed());
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_error_body_is_looked_into_and_still_the_callers() {
    use redial::policy::AnswerRule;
    let rule = AnswerRule::transient().status([400]).json_equals("/code", "busy").because("documented as passing");
    let busy = "{\"code\": \"busy\"}";
    let server = Server::http1([Reply::status(400).body(busy)]);
    let client = plain().with(RetryMiddleware::new(policy().answer(rule).build().unwrap())).build();
    let response = client.get(server.url("/x")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), attempts(&response)), (400, 3));
    assert_eq!(response.url().as_str(), server.url("/x"));
    assert_eq!(response.text().await.unwrap(), busy);
}

/// HTTP/2 refuses the stream of a later hop: by default that proves nothing of the order.
#[tokio::test]
async fn a_later_hops_refused_stream_does_not_repeat_the_order() {
    for body in ["", "one more"] {
        let script = Script::new([Reply::status(303).header("location", "/receipt")])
            .route("GET /receipt", [Reply::refused_stream()]);
        let server = Server::http2(script);
        let h2 = inner().http2_prior_knowledge().build().unwrap();
        let client = ClientBuilder::new(h2).with(middleware()).build();
        client.post(server.url("/")).body(body).send().await.unwrap_err();
        server.seen().to("POST /").sent(1);
    }
}
