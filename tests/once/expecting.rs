//! `Expect: 100-continue`, met and not, and what a server says before its answer.

use std::sync::{Arc, Mutex};

use http::{Method, Request, StatusCode};
use http_body_util::Full;
use redial::{Outcome, Plan, StopReason, Timeouts, Transient, Verdict, policy::StandardPolicyBuilder};

use super::{End, call, common::raw_h1, order};
use crate::support::{Wire, client, client_with, policy, raw};

fn expecting(url: &str) -> Request<Full<bytes::Bytes>> {
    let mut request = order(Method::PUT, url);
    request.headers_mut().insert("expect", "100-continue".parse().unwrap());
    request
}

/// What arrived, and whether each of it expected something.
fn expected(requests: &raw::Requests) -> Vec<bool> {
    let texts = requests.lock().unwrap().iter().map(|bytes| String::from_utf8_lossy(bytes).to_lowercase()).collect();
    let texts: Vec<String> = texts;
    assert!(texts.iter().all(|text| text.ends_with("ten bytes!")), "{texts:?}");
    texts.iter().map(|text| text.contains("expect: 100-continue")).collect()
}

#[tokio::test]
async fn c053_an_unmet_expectation_is_final() {
    let (server, requests) = raw::keeping([417, 200]).await;
    let end = call(&client(Wire::Http1), expecting(&server.url("http"))).await;
    assert_eq!(end, End { status: Some(417), attempts: 1, stop: None });
    assert_eq!(expected(&requests), [true]);
}

/// Listed, it is repeated as RFC 9110, 10.1.1 has it; the same request is never sent again, however often it is answered
/// so, and neither once something else was answered meanwhile.
#[tokio::test]
async fn c053_what_is_repeated_expects_nothing() {
    let timeouts = Timeouts { attempt: std::time::Duration::from_secs(10), total: std::time::Duration::from_secs(30) };
    let listed = || -> StandardPolicyBuilder {
        let transient = Transient::usual().status_because(417, "RFC 9110, 10.1.1: to be repeated without it");
        redial::StandardPolicy::builder("orders", timeouts, transient)
            .backoff(redial::Backoff::fixed(std::time::Duration::from_millis(5), "one call"))
    };
    for (statuses, end, expects) in [
        ([417, 200, 200], End::ok(2), vec![true, false]),
        ([417, 503, 200], End::ok(3), vec![true, false, false]),
        ([503, 417, 200], End::ok(3), vec![true, true, false]),
        ([417, 417, 417], End::answered(417, 3, StopReason::Attempts), vec![true, false, false]),
    ] {
        let (server, requests) = raw::keeping(statuses).await;
        let ended = call(&client_with(Wire::Http1, listed()), expecting(&server.url("http"))).await;
        assert_eq!((ended, expected(&requests)), (end, expects), "{statuses:?}");
    }
}

/// Interim responses are no answers: neither judged, nor counted, nor heeded.
#[tokio::test]
async fn c053_interim_responses_are_not_judged() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nretry-after: 3600\r\n\r\n";
    let server = raw_h1::start(vec![vec![
        raw_h1::Act::Request,
        raw_h1::send(interim),
        raw_h1::answer(503, "later"),
        raw_h1::Act::Request,
        raw_h1::send(interim),
        raw_h1::answer(200, "done"),
    ]])
    .await;
    let judged = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&judged);
    let policy = policy().judge_with(move |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| {
        seen.lock().unwrap().extend(outcome.status());
        standard
    });
    let end = call(&client_with(Wire::Http1, policy), expecting(&server.url("http"))).await;
    assert_eq!(end, End::ok(2));
    assert_eq!(*judged.lock().unwrap(), [StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK]);
    assert_eq!(server.seen().requests, 2);
}
