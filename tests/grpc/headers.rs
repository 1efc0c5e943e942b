//! What each attempt says of itself.

use std::time::Duration;

use redial::{StandardPolicy, Timeouts, grpc::Commit, testing::Seen};

use super::support::*;

fn values(seen: &Seen, name: &str) -> Vec<Option<String>> {
    let value = |headers: &http::HeaderMap| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    seen.requests.iter().map(|request| value(&request.headers)).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_from_the_second_on() {
    let (mut client, service) = scripted([unavailable(), unavailable(), done()], idempotent());
    let mut request = order();
    // Of the hop before this one.
    request.metadata_mut().insert("grpc-previous-rpc-attempts", "7".parse().unwrap());
    client.place(request).await.unwrap();
    let counted = values(service.seen().sent(3), "grpc-previous-rpc-attempts");
    assert_eq!(counted, [None, Some("1".to_owned()), Some("2".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn the_callers_timeout_shrinks_with_each_attempt() {
    let (mut client, service) = scripted([unavailable(), unavailable(), done()], idempotent());
    let mut request = order();
    request.set_timeout(Duration::from_secs(5));
    client.place(request).await.unwrap();
    assert_eq!(values(service.seen().sent(3), "grpc-timeout"), some(&["5000000u", "4900000u", "4800000u"]));
}

/// Without one the server is told nothing: an attempt ends with the first message, and a stream goes on.
#[tokio::test(start_paused = true)]
async fn without_one_a_stream_is_not_cut() {
    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    client.place(order()).await.unwrap();
    assert_eq!(values(service.seen().sent(2), "grpc-timeout"), [None, None]);
}

/// A unary call is over when its attempt is: the server may as well know.
#[tokio::test(start_paused = true)]
async fn a_unary_call_says_the_attempts_own_end() {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_millis(1_150) };
    let policy =
        StandardPolicy::builder("shop", timeouts, redial::Transient::usual().code(redial::GrpcCode::Unavailable))
            .backoff(redial::Backoff::fixed(WAIT, "tests are exact"))
            .budget(redial::Budget::unlimited("tests bound themselves"))
            .idempotent("orders have numbers")
            .build()
            .unwrap();
    let (mut client, service) = scripted([unavailable(), unavailable(), done()], policy);
    let mut request = order();
    request.extensions_mut().insert(Commit::Status);
    client.place(request).await.unwrap();
    // The attempt's second, then what the call has left.
    assert_eq!(values(service.seen().sent(3), "grpc-timeout"), some(&["1000000u", "1000000u", "950000u"]));

    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    let mut request = order();
    request.extensions_mut().insert(Commit::Status);
    request.set_timeout(Duration::from_millis(700));
    client.place(request).await.unwrap();
    // Never longer than the caller's.
    assert_eq!(values(service.seen().sent(2), "grpc-timeout"), some(&["700000u", "600000u"]));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_timeout_is_none() {
    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    let mut request = order();
    request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    client.place(request).await.unwrap();
    assert_eq!(values(service.seen().sent(2), "grpc-timeout"), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn all_else_is_the_same_on_every_attempt() {
    let (mut client, service) = scripted([unavailable(), unavailable(), done()], idempotent());
    let mut request = order();
    request.metadata_mut().insert("x-tenant", "seven".parse().unwrap());
    client.place(request).await.unwrap();
    let seen = service.seen();
    for name in ["x-tenant", "te", "content-type"] {
        let values = values(seen.sent(3), name);
        assert!(values[0].is_some() && values.iter().all(|value| *value == values[0]), "{name}: {values:?}");
    }
    // As tonic sends it.
    assert_eq!(values(&seen, "content-length"), [None, None, None]);
}
