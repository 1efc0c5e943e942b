//! The request was read, and its answer was lost.

use http::Method;
use redial::{
    StopReason,
    testing::{Reply, Server},
};

use super::{End, call, keyed, order, post};
use crate::support::{Wire, client, request, soon};

#[tokio::test]
async fn c040_reset_before_the_answer() {
    let methods = ["POST", "PATCH", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];
    for method in methods.map(|name| Method::from_bytes(name.as_bytes()).unwrap()) {
        let server = Server::http1(Reply::reset());
        let once = method == Method::POST || method == Method::PATCH;
        let end = call(&client(Wire::Http1), order(method.clone(), &server.url("/x"))).await;
        let expected = if once { End::failed(1, StopReason::NoEvidence) } else { End::failed(3, StopReason::Attempts) };
        assert_eq!((server.seen().requests.len(), end), (expected.attempts, expected), "{method}");
    }
}

/// Extension methods are not idempotent by default, and methods are case-sensitive.
#[tokio::test]
async fn c041_methods_that_nobody_knows() {
    for (method, requests) in [("POST", 1), ("QUERY", 3), ("post", 1), ("get", 1), ("BREW", 1)] {
        let server = Server::http1(Reply::close());
        let mut request = request(
            Method::from_bytes(method.as_bytes()).unwrap(),
            &server.url("/x"),
            http_body_util::Full::<bytes::Bytes>::default(),
        );
        request.headers_mut().insert("content-length", 0.into());
        assert_eq!(call(&client(Wire::Http1), request).await.attempts, requests, "{method}");
        server.seen().sent(requests);
    }
}

/// Closed without a byte of an answer: no proof that nothing was done.
#[tokio::test]
async fn c050_read_whole_and_then_closed() {
    for keyless in [true, false] {
        let server = Server::http1(Reply::close());
        let request = post(&server.url("/x"));
        let request = if keyless { request } else { keyed(request, "8e03978e") };
        let error = soon(tower::ServiceExt::oneshot(client(Wire::Http1), request)).await.unwrap_err();
        assert!(error.find_source::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message));
        assert!(error.report().unwrap().outcome_unknown(), "somebody should look");
        assert_eq!(server.seen().body_bytes(), if keyless { 10 } else { 30 });
    }
}
