//! reqwest follows redirects by itself: what its errors prove then, and what becomes of bodies.

use redial::{
    Reach, StopReason,
    testing::{Reply, Script, Server},
};
use reqwest::redirect::Policy;

use crate::{client, ended, inner, policy, report};

fn over_http2(builder: reqwest::ClientBuilder) -> redial::reqwest::Client {
    redial::reqwest::client(builder.http2_prior_knowledge().build().unwrap(), policy().build().unwrap())
}

#[tokio::test]
async fn a_later_hop_that_is_refused_proves_nothing_about_the_first() {
    let gone = Server::refusing();
    for body in ["", "one more"] {
        let server = Server::http1([Reply::status(303).header("location", gone.url("/"))]);
        let error = client(policy()).post(server.url("/")).body(body).send().await.unwrap_err();
        assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]), "{body:?}");
        assert!(error.is_connect());
        server.seen().sent(1);
    }
}

#[tokio::test]
async fn a_later_hops_stream_that_is_refused_proves_nothing_about_the_first() {
    for body in ["", "one more"] {
        let script = Script::new([Reply::status(303).header("location", "/receipt")])
            .route("GET /receipt", [Reply::refused_stream()]);
        let server = Server::http2(script);
        let error = over_http2(inner()).post(server.url("/")).body(body).send().await.unwrap_err();
        assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]), "{body:?}");
        server.seen().to("POST /").sent(1);
    }
}

#[tokio::test]
async fn a_refused_stream_is_a_proof_where_redirects_are_not_followed() {
    let server = Server::http2([Reply::refused_stream(), Reply::ok("")]);
    let client = over_http2(inner().redirect(Policy::none())).one_request_per_attempt();
    let response = client.post(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(report(&response).attempts()[0].reach, Reach::NotSent);

    // Where they may be, a request with evidence is repeated all the same, and one without is not.
    let server = Server::http2([Reply::refused_stream(), Reply::ok("")]);
    let response = over_http2(inner()).put(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(report(&response).attempts()[0].reach, Reach::Unknown);
    let server = Server::http2([Reply::refused_stream(), Reply::ok("")]);
    let error = over_http2(inner()).post(server.url("/")).body("one more").send().await.unwrap_err();
    assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
}

#[tokio::test]
async fn a_redirect_that_asks_for_the_body_again_is_followed_by_whole_bodies_alone() {
    let script = || {
        Script::new([Reply::status(307).header("location", "/there")])
            .route("POST /there", [Reply::status(503), Reply::ok("")])
    };
    let server = Server::http1(script());
    let response = client(policy()).post(server.url("/")).body("one more").send().await.unwrap();
    assert_eq!(response.status(), 307);
    server.seen().sent(1);

    let server = Server::http1(script());
    let post = client(policy()).whole_bodies().post(server.url("/")).header("idempotency-key", "7");
    let response = post.body("one more").send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (200, &*server.url("/there")));
    // Each attempt is the whole chain.
    let seen = server.until(|seen| seen.complete() == 4).await;
    assert!(seen.sent(4).requests.iter().all(|request| request.body.is("one more")), "{seen}");
}

#[tokio::test]
async fn a_redirect_without_a_body_is_followed() {
    let script = Script::new([Reply::status(302).header("location", "/there")])
        .route("GET /there", [Reply::status(503), Reply::ok("there")]);
    let server = Server::http1(script);
    let response = client(policy()).get(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().as_str()), (200, &*server.url("/there")));
    assert_eq!(response.text().await.unwrap(), "there");
    server.seen().sent(4);
}

#[tokio::test]
async fn whole_bodies_prove_nothing() {
    let refusing = Server::refusing();
    let post = client(policy()).whole_bodies().post(refusing.url("/")).body("one more");
    assert_eq!(ended(&post.send().await.unwrap_err()), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
    let put = client(policy()).whole_bodies().put(refusing.url("/")).body("one more");
    assert_eq!(ended(&put.send().await.unwrap_err()).0, 3);
    // What is no body in memory is a stream as ever.
    let stream = futures_util::stream::iter([Ok::<_, std::io::Error>("one more")]);
    let post = client(policy()).whole_bodies().post(refusing.url("/")).body(reqwest::Body::wrap_stream(stream));
    assert_eq!(ended(&post.send().await.unwrap_err()), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
}

#[tokio::test]
async fn a_loop_of_redirects_is_not_repeated() {
    let server = Server::http1([Reply::status(302).header("location", "/")]);
    let client =
        redial::reqwest::client(inner().redirect(Policy::limited(2)).build().unwrap(), policy().build().unwrap());
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(ended(&error).0, 1);
    assert!(error.is_permanent() && error.find_source::<reqwest::Error>().unwrap().is_redirect());
    server.seen().sent(3);
}
