//! Which reply a request gets, and what assertions say.

use std::panic::catch_unwind;

use http::Method;

use super::*;

async fn status(service: &ScriptService, method: &str, path: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).body(Full::<Bytes>::default()).unwrap();
    service.clone().oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn replies_in_order_by_route() {
    let service = testing::service(
        Script::new([Reply::status(404)])
            .route("POST /orders", [Reply::status(503), Reply::status(201)])
            .route("/orders/{id}:cancel", [Reply::status(202)])
            .route("/orders/{id}", [Reply::status(200)])
            .route("/files/{*path}", [Reply::status(206)]),
    );
    let asked = [
        ("POST", "/orders?draft=1", 503),
        ("GET", "/orders", 404),
        ("POST", "/orders", 201),
        ("POST", "/orders", 201),
        ("GET", "/orders/7", 200),
        ("GET", "/orders/", 404),
        ("POST", "/orders/7:cancel", 202),
        ("GET", "/orders/7/items", 404),
        ("GET", "/files/a/b", 206),
        ("GET", "/files/", 404),
        ("GET", "/", 404),
    ];
    for (method, path, expected) in asked {
        assert_eq!(status(&service, method, path).await, expected, "{method} {path}");
    }
    let seen = service.seen();
    seen.sent(asked.len()).to("POST /orders").sent(3);
    assert!(seen.to("/orders").requests.iter().any(|request| request.method == Method::GET));
}

/// The messages are what a test's author reads.
#[tokio::test]
async fn what_assertions_say() {
    let service = testing::service(Reply::status(200));
    status(&service, "GET", "/orders?key=s3cret").await;
    let said = panics(|| _ = service.seen().sent(2));
    assert!(said.starts_with("expected 2 requests, saw 1 on 0 connections"), "{said}");
    assert!(said.contains("1. after 0ns: GET /orders HTTP/1.1, connection 0, 0 bytes"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn what_makes_no_script() {
    assert_eq!(panics(|| drop(Script::new([]))), "a script needs a reply");
    assert_eq!(panics(|| drop(Reply::status(99))), "99 is no status");
    assert!(panics(|| drop(Reply::status(103))).starts_with("103 Early Hints is interim"));
    assert_eq!(panics(|| drop(Reply::ok("").header("a b", ""))), "`a b` is no name of a header");
    assert_eq!(panics(|| drop(Reply::ok("").header("a", "\n"))), "`\n` is no value of a header");
    let said = panics(|| drop(Reply::stall().body("")));
    assert_eq!(said, "`body` belongs to an answer, and this reply is Stall");
    let said = panics(|| drop(Script::new([Reply::stall()]).route("shop.example GET /", [Reply::stall()])));
    assert!(said.contains("has a host"), "{said}");
    let said = panics(|| drop(Script::new([Reply::stall()]).route("GET orders", [Reply::stall()])));
    assert_eq!(said, "the route `GET orders` does not end with a /path");
}

/// A request too many fails the test, and says what was seen.
#[tokio::test]
async fn an_exact_script() {
    let server = Server::http1(Script::new([Reply::ok("only")]).exact());
    let client = client(false);
    assert_eq!(soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await, OK);
    assert_eq!(soon(async { outcome(client.request(post(&server.url("/x"))).await).await }).await, "closed");
    let said = panics(|| drop(server));
    assert!(said.starts_with("1 requests came after the script had ended, saw 2 on 1 connections"), "{said}");

    let service = testing::service(Script::new([Reply::ok("only")]).exact());
    assert_eq!(send(&service).await, OK);
    assert!(tokio::spawn(async move { send(&service).await }).await.unwrap_err().is_panic());
}

/// What a panic said.
fn panics(does: impl FnOnce()) -> String {
    let said = catch_unwind(std::panic::AssertUnwindSafe(does)).expect_err("it does not panic");
    match said.downcast::<String>() {
        Ok(said) => *said,
        Err(said) => (*said.downcast_ref::<&str>().expect("a text")).to_owned(),
    }
}
