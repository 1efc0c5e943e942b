//! An answer of a later hop is no answer to the first.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    RetryLayer, Transient,
    policy::AnswerRule,
    reqwest_middleware::RetryMiddleware,
    testing::{Reply, Script, Server},
};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::follow_redirect::FollowRedirectLayer;

use crate::{client, inner, policy, with};
use ::reqwest;

/// The POST is processed (303), its receipt is what is throttled.
fn script() -> Script {
    Script::new([Reply::status(303).header("location", "/receipt")])
        .route("GET /receipt", [Reply::status(429), Reply::ok("receipt")])
}

fn rejects() -> redial::policy::StandardPolicyBuilder {
    with(Transient::usual().rejected(429, "API guide: a throttled request is not processed"))
}

#[tokio::test]
async fn a_rejection_of_a_later_hop_does_not_repeat_the_post_reqwest() {
    let server = Server::http1(script());
    let _ = client(rejects()).post(server.url("/orders")).body("one more").send().await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

#[tokio::test]
async fn a_rejection_by_rule_of_a_later_hop_does_not_repeat_the_post_reqwest() {
    let server = Server::http1(script());
    let policy = policy().answer(AnswerRule::rejected("throttled is not processed").status([429]));
    let _ = client(policy).post(server.url("/orders")).body("one more").send().await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

#[tokio::test]
async fn a_rejection_of_a_later_hop_does_not_repeat_the_post_middleware() {
    let server = Server::http1(script());
    let client = reqwest_middleware::ClientBuilder::new(inner().build().unwrap())
        .with(RetryMiddleware::new(rejects().build().unwrap()))
        .build();
    let _ = client.post(server.url("/orders")).body("one more").send().await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

#[tokio::test]
async fn a_rejection_of_a_later_hop_does_not_repeat_the_post_tower_http() {
    let server = Server::http1(script());
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(rejects().build().unwrap()))
        .layer(FollowRedirectLayer::new())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let request = Request::post(server.url("/orders")).body(Full::<Bytes>::from("one more")).unwrap();
    let _ = stack.oneshot(request).await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

#[tokio::test]
async fn credentials_do_not_follow_to_another_host_and_are_back_on_the_next_attempt() {
    let other = Server::http1([Reply::status(503), Reply::ok("")]);
    // `localhost` and `127.0.0.1` are two hosts to reqwest; so are two ports.
    let server = Server::http1([Reply::status(302).header("location", other.url("/there"))]);
    let response = client(policy()).get(server.url("/")).bearer_auth("TOKEN").send().await.unwrap();
    assert_eq!(response.url().as_str(), other.url("/there"));
    let here = server.seen();
    assert!(here.sent(2).requests.iter().all(|request| request.headers.contains_key("authorization")));
    let there = other.seen();
    assert!(there.sent(2).requests.iter().all(|request| !request.headers.contains_key("authorization")));
}

#[tokio::test]
async fn a_308_across_hosts_with_whole_bodies() {
    let other = Server::http1([Reply::status(503), Reply::ok("done")]);
    let server = Server::http1([Reply::status(308).header("location", other.url("/there"))]);
    let put = client(policy()).whole_bodies().put(server.url("/")).bearer_auth("TOKEN").body("one more");
    let response = put.send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (200, &*other.url("/there")));
    let there = other.until(|seen| seen.complete() == 2).await;
    assert!(there.requests.iter().all(|request| request.body.is("one more")));
    assert!(there.requests.iter().all(|request| !request.headers.contains_key("authorization")));
}

/// A hop on another host is throttled: that says nothing of this provider, whose other calls go on.
#[tokio::test]
async fn a_later_hops_word_on_another_host_does_not_hold_the_provider() {
    use std::time::{Duration, Instant};
    let other = Server::http1([Reply::status(429).header("retry-after", "2"), Reply::ok("")]);
    let script = Script::new([Reply::status(302).header("location", other.url("/there"))])
        .route("GET /own", [Reply::status(503), Reply::ok("")]);
    let server = Server::http1(script);
    let client = client(rejects());
    let first = tokio::spawn(client.get(server.url("/")).send());
    other.until(|seen| seen.complete() == 1).await;
    tokio::time::sleep(crate::ms(50)).await;
    let began = Instant::now();
    client.get(server.url("/own")).send().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "held for {:?} by another host", began.elapsed());
    first.await.unwrap().unwrap();
}

/// POST, then GET of the very same URL: the URL of the answer does not tell them apart.
#[tokio::test]
async fn nor_where_the_later_hop_has_the_same_url() {
    let script = Script::new([Reply::ok("")])
        .route("POST /orders", [Reply::status(303).header("location", "/orders")])
        .route("GET /orders", [Reply::status(429), Reply::ok("receipt")]);
    let server = Server::http1(script);
    let _ = client(rejects()).post(server.url("/orders")).body("one more").send().await.unwrap();
    server.seen().to("POST /orders").sent(1);
}

/// "No error of a later hop counts as never sent" (README, on redirects below): over HTTP/2, where the hop is refused.
#[tokio::test]
async fn a_refused_stream_of_a_later_hop_is_no_proof_tower_http() {
    use redial::testing::Reason;
    for reply in [
        Reply::refused_stream(),
        Reply::reset_stream(Reason::RefusedStream),
        Reply::goaway(redial::testing::LastStream::Before, Reason::NoError),
    ] {
        for body in ["", "one more"] {
            let script = Script::new([Reply::status(303).header("location", "/receipt")])
                .route("GET /receipt", [reply.clone(), Reply::ok("receipt")]);
            let server = Server::http2(script);
            let stack = ServiceBuilder::new()
                .layer(RetryLayer::new(policy().build().unwrap()))
                .layer(FollowRedirectLayer::new())
                .service(Client::builder(TokioExecutor::new()).http2_only(true).build_http());
            let request = Request::post(server.url("/orders")).body(Full::<Bytes>::from(body)).unwrap();
            let _ = stack.oneshot(request).await;
            let sent = server.seen().to("POST /orders").requests.len();
            assert_eq!(sent, 1, "{body:?} {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_of_a_later_hop_is_no_proof_tower_http() {
    let gone = Server::refusing();
    for body in ["", "one more"] {
        let server = Server::http1([Reply::status(303).header("location", gone.url("/receipt"))]);
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy().build().unwrap()))
            .layer(FollowRedirectLayer::new())
            .service(Client::builder(TokioExecutor::new()).build_http());
        let request = Request::post(server.url("/orders")).body(Full::<Bytes>::from(body)).unwrap();
        let _ = stack.oneshot(request).await;
        let sent = server.seen().to("POST /orders").requests.len();
        assert_eq!(sent, 1, "{body:?}");
    }
}

/// The stack of the recipe for async-openai: reqwest's client in a `service_fn`, which follows redirects.
#[tokio::test]
async fn a_later_hop_is_no_proof_reqwest_in_a_service_fn() {
    use reqwest::Body;
    for refused in [false, true] {
        for body in ["", "one more"] {
            let gone = Server::refusing();
            let location = if refused { gone.url("/receipt") } else { "/receipt".to_owned() };
            let script = Script::new([Reply::status(303).header("location", location)])
                .route("GET /receipt", [Reply::refused_stream(), Reply::ok("receipt")]);
            let server = Server::http2(script);
            let http = inner().http2_prior_knowledge().build().unwrap();
            let stack = ServiceBuilder::new().layer(RetryLayer::new(policy().build().unwrap())).service_fn(
                move |request: http::Request<redial::AttemptBody<redial::Streamed<Body>>>| {
                    let request = request.map(Body::wrap).try_into().map(|request| http.execute(request));
                    async move { Ok::<_, reqwest::Error>(http::Response::from(request?.await?)) }
                },
            );
            let request = Request::post(server.url("/orders")).body(Body::from(body)).unwrap();
            let _ = stack.oneshot(request.map(redial::Streamed::new)).await;
            let sent = server.seen().to("POST /orders").requests.len();
            assert_eq!(sent, 1, "refused connection {refused}, {body:?}");
        }
    }
}
