//! The request was answered, and the answer does not say what became of it.

use http::Method;
use redial::StopReason;

use super::{End, call, keyed, order, post};
use crate::support::{WIRES, Wire, client, site::Site};

#[tokio::test]
async fn c042_a_key_is_evidence_and_stays_the_same() {
    for wire in WIRES {
        let site = Site::answering(wire, [502, 201]).await;
        let end = call(&client(wire), keyed(post(&site.url()), "8e03978e")).await;
        assert_eq!(end, End { status: Some(201), attempts: 2, stop: None });
        let arrivals = site.seen().arrivals;
        assert_eq!(arrivals.len(), 2);
        assert!(arrivals.iter().all(|arrival| arrival.headers["idempotency-key"] == "8e03978e"));
    }
}

#[tokio::test]
async fn c042_no_key_and_an_empty_one_are_none() {
    for key in [None, Some(""), Some("  ")] {
        let site = Site::answering(Wire::Http1, [502, 201]).await;
        let request = post(&site.url());
        let request = match key {
            Some(key) => keyed(request, key),
            None => request,
        };
        let end = call(&client(Wire::Http1), request).await;
        assert_eq!(end, End::answered(502, 1, StopReason::NoEvidence), "{key:?}");
        assert_eq!(site.seen().started, 1, "{key:?}");
    }
}

#[tokio::test]
async fn c058_a_500_is_repeated_only_where_that_is_safe() {
    for wire in WIRES {
        for (method, attempts, stop) in
            [(Method::POST, 1, StopReason::NoEvidence), (Method::GET, 3, StopReason::Attempts)]
        {
            let site = Site::answering(wire, [500]).await;
            let end = call(&client(wire), order(method.clone(), &site.url())).await;
            assert_eq!(end, End::answered(500, attempts, stop), "{wire:?} {method}");
            assert_eq!(site.seen().started, attempts, "{wire:?} {method}");
        }
    }
}
