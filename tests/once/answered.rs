//! The request was answered, and the answer does not say what became of it.

use http::Method;
use redial::{StopReason, testing::Reply};

use super::{End, call, keyed, order, play, post};
use crate::support::{WIRES, Wire, client};

#[tokio::test]
async fn c042_a_key_is_evidence_and_stays_the_same() {
    for wire in WIRES {
        let server = play(wire, [Reply::status(502), Reply::status(201)]);
        let end = call(&client(wire), keyed(post(&server.url("/x")), "8e03978e")).await;
        assert_eq!(end, End { status: Some(201), attempts: 2, stop: None });
        let seen = server.seen();
        assert!(seen.sent(2).requests.iter().all(|request| request.headers["idempotency-key"] == "8e03978e"));
    }
}

#[tokio::test]
async fn c042_no_key_and_an_empty_one_are_none() {
    for key in [None, Some(""), Some("  ")] {
        let server = play(Wire::Http1, [Reply::status(502), Reply::status(201)]);
        let request = post(&server.url("/x"));
        let request = match key {
            Some(key) => keyed(request, key),
            None => request,
        };
        let end = call(&client(Wire::Http1), request).await;
        assert_eq!(end, End::answered(502, 1, StopReason::NoEvidence), "{key:?}");
        server.seen().sent(1);
    }
}

#[tokio::test]
async fn c058_a_500_is_repeated_only_where_that_is_safe() {
    for wire in WIRES {
        for (method, attempts, stop) in
            [(Method::POST, 1, StopReason::NoEvidence), (Method::GET, 3, StopReason::Attempts)]
        {
            let server = play(wire, Reply::status(500));
            let end = call(&client(wire), order(method.clone(), &server.url("/x"))).await;
            assert_eq!(end, End::answered(500, attempts, stop), "{wire:?} {method}");
            server.seen().sent(attempts);
        }
    }
}
