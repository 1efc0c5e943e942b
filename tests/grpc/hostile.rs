//! Whatever a server writes: nothing panics, nothing is sent more often than the policy allows, and what passes on is
//! what came.

use std::time::Duration;

use proptest::prelude::*;
use redial::{grpc::Commit, testing};
use tower::ServiceExt;

use super::support::*;

/// What a header may hold, and more often what it should hold.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![0x20_u8..0x7F, 0x80_u8..=0xFF];
    prop_oneof![
        prop_oneof!["[0-9]{1,3}", "-?[0-9]{1,30}", "[A-Za-z0-9+/=]{0,12}"].prop_map(String::into_bytes),
        proptest::collection::vec(byte, 0..12),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    let names =
        ["grpc-status", "grpc-message", "grpc-status-details-bin", "grpc-retry-pushback-ms", "retry-after", "x"];
    proptest::sample::select(names.to_vec())
}

fn lines() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    proptest::collection::vec((name(), value()), 0..5)
}

fn commit() -> impl Strategy<Value = Commit> {
    proptest::sample::select(vec![Commit::Head, Commit::Message, Commit::Status])
}

proptest! {
    #[test]
    fn no_answer_is_too_strange(
        headers in lines(),
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..3),
        trailers in lines(),
        status in proptest::sample::select(vec![200, 200, 200, 204, 302, 404, 503]),
        commit in commit(),
    ) {
        let mut reply = testing::Reply::status(status);
        for (name, value) in &headers {
            reply = reply.header(name, value);
        }
        for body in &bodies {
            reply = reply.body(body.clone());
        }
        for (name, value) in &trailers {
            reply = reply.trailer(name, value);
        }
        let request = || http::Request::post("/shop.Orders/Place").body(tonic::body::Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let service = testing::service([reply.clone()]);
            let client = redial::grpc::channel(service.clone(), idempotent()).commit(commit);
            let started = tokio::time::Instant::now();
            let result = client.oneshot(request()).await;
            assert!(started.elapsed() < Duration::from_secs(60));
            assert!((1..=3).contains(&service.seen().requests.len()));
            let Ok(answer) = result else { return };
            let (expected, expected_body) = testing::service([reply]).oneshot(request()).await.unwrap().into_parts();
            let (head, body) = answer.into_parts();
            assert_eq!((head.status, head.headers), (expected.status, expected.headers));
            assert_eq!(read(body).await, read(expected_body).await);
        });
    }
}
