//! A look into the body of an error answer: bounded, in the attempt's time, and never missed by the caller.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    AnswerBody, CallReport, Outcome, Plan, RetryLayer, StopReason, Verdict,
    policy::{AnswerRule, PEEK},
    testing::{self, Reply, Script, Server},
};
use tokio::time::{Instant, timeout};
use tower::{Layer, ServiceExt};

use crate::{call, policies::builder, stop};

const SECONDARY: &str = r#"{"message":"You have exceeded a secondary rate limit","status":403}"#;

fn secondary() -> AnswerRule {
    AnswerRule::rejected("the provider's page on limits")
        .status([403])
        .json_contains("/message", "secondary rate limit")
        .at_least(Duration::from_secs(10))
}

fn policy() -> redial::StandardPolicy {
    builder().answer(secondary()).build().unwrap()
}

async fn text<B>(body: AnswerBody<B>) -> Bytes
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    body.collect().await.unwrap().to_bytes()
}

#[tokio::test(start_paused = true)]
async fn it_says_what_the_status_does_not() {
    // In two frames, with a pause between.
    let (front, back) = SECONDARY.split_at(20);
    let reply = Reply::status(403).body(front).pause(Duration::from_millis(100)).body(back);
    let (answer, service) = call(policy(), Method::POST, [reply, Reply::ok("")]).await;
    assert_eq!(answer.status(), 200);
    assert!(service.seen().sent(2).gaps()[0] >= Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn another_body_is_another_answer_and_reaches_the_caller_whole() {
    for body in [r#"{"message":"Resource not accessible"}"#, r#"{"message":7}"#, "{", "", "[]", "plain text"] {
        let reply = Reply::status(403).body(body).trailer("x-sum", "7");
        let (answer, _) = call(policy(), Method::POST, [reply]).await;
        assert_eq!((answer.status().as_u16(), stop(&answer)), (403, None), "{body}");
        let collected = answer.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().map(|trailers| trailers["x-sum"].as_bytes()), Some(&b"7"[..]), "{body}");
        assert_eq!(collected.to_bytes(), body);
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_and_texts_are_compared_as_they_are_written() {
    let rule = AnswerRule::rejected("documented").status([400]).json_equals("/error/code", "1302");
    for (body, requests) in [
        (r#"{"error":{"code":1302}}"#, 2),
        (r#"{"error":{"code":"1302"}}"#, 2),
        (r#"{"error":{"code":13020}}"#, 1),
        (r#"{"error":{"code":[1302]}}"#, 1),
        (r#"{"error":{}}"#, 1),
    ] {
        let policy = builder().answer(rule.clone()).build().unwrap();
        let replies = [Reply::status(400).body(body), Reply::ok("")];
        let (_, service) = call(policy, Method::POST, replies.into_iter().take(requests)).await;
        service.seen().sent(requests);
    }
}

/// The policy's look ends within the body, where the next piece is not there yet.
#[tokio::test(start_paused = true)]
async fn c089_what_a_policy_looked_at_reaches_the_caller_first() {
    let pieces = || Reply::status(403).body("hello ").pause(Duration::from_millis(100)).body("world");
    for reply in [pieces(), pieces().trailer("x-sum", "7")] {
        let (answer, service) = call(policy(), Method::POST, [reply]).await;
        assert_eq!((answer.status().as_u16(), stop(&answer)), (403, None));
        assert_eq!(text(answer.into_body()).await, "hello world");
        service.seen().sent(1);
    }
}

/// Of a long body the beginning is read, which is no JSON; the rest stays where it is until the caller reads it.
#[tokio::test(start_paused = true)]
async fn a_long_body_is_not_read_to_its_end() {
    let long = format!(r#"{{"message":"secondary rate limit","padding":"{}"}}"#, "x".repeat(3 * PEEK));
    let frames = long.as_bytes().chunks(1000).map(Bytes::copy_from_slice);
    let reply = frames.fold(Reply::status(403), Reply::body);
    let (answer, _) = call(policy(), Method::POST, [reply.stall_within()]).await;
    assert_eq!((answer.status().as_u16(), stop(&answer)), (403, None));
    let mut body = answer.into_body();
    let mut read = Vec::new();
    while let Ok(Some(frame)) = timeout(Duration::from_secs(1), body.frame()).await {
        read.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    assert_eq!(read, long.as_bytes());
}

/// What came in the attempt's time is what is known, and the call goes on.
#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_takes_the_attempts_time_and_no_more() {
    let start = Instant::now();
    let (answer, _) = call(policy(), Method::POST, [Reply::status(403).body("{\"mess").stall_within()]).await;
    assert_eq!((answer.status().as_u16(), start.elapsed()), (403, Duration::from_secs(1)));
    let mut body = answer.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{\"mess");
    assert!(timeout(Duration::from_secs(60), body.frame()).await.is_err(), "it stalls for the caller too");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_breaks_for_the_caller() {
    let half = &SECONDARY[..40];
    let (answer, _) = call(policy(), Method::POST, [Reply::status(403).body(half).reset_within()]).await;
    assert_eq!((answer.status().as_u16(), stop(&answer)), (403, None));
    let mut body = answer.into_body();
    assert!(!body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), half);
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none(), "once");
}

/// Nobody looks into a success: it streams, frame by frame, as it did.
#[tokio::test(start_paused = true)]
async fn a_success_is_never_looked_into() {
    let always = |_: &Plan, outcome: &Outcome<'_>, verdict: Verdict| {
        assert!(outcome.body().is_none());
        verdict
    };
    let policy = builder().answer(secondary()).judge_with(always).build().unwrap();
    let (answer, _) = call(policy, Method::GET, [Reply::ok("at once").stall_within()]).await;
    assert!(answer.into_body().into_inner().is_ok(), "the client's own");
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_asked_twice_and_not_more() {
    let curious = |_: &Plan, outcome: &Outcome<'_>, _: Verdict| match outcome.body() {
        Some(b"later") => Verdict::rejected("documented"),
        _ => Verdict::look_into_body(),
    };
    let policy = || builder().judge_with(curious).build().unwrap();
    let (answer, _) = call(policy(), Method::POST, [Reply::status(409).body("later"), Reply::status(409)]).await;
    assert_eq!(stop(&answer), Some(StopReason::Permanent), "nobody listed it");
    let report = answer.extensions().get::<CallReport>().unwrap();
    assert_eq!(report.attempts().len(), 2);
    // Not granted for what is no error.
    let (answer, _) = call(policy(), Method::GET, [Reply::ok("later")]).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(text(answer.into_body()).await, "later");
}

#[tokio::test(start_paused = true)]
async fn length_and_end_are_exact_whatever_was_read() {
    let (answer, _) = call(policy(), Method::POST, [Reply::status(403).body("abc").body("de")]).await;
    let mut body = answer.into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
    body.frame().await.unwrap().unwrap();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(2), false));
    body.frame().await.unwrap().unwrap();
    assert!(body.is_end_stream());
    assert!(format!("{body:?}").contains("looked_at") && !format!("{body:?}").contains("abc"));
}

/// Over sockets: the same connection is used again, whether the looked-into answer was repeated or handed on.
#[tokio::test]
async fn the_connection_is_used_again() {
    for http2 in [false, true] {
        let limited = Reply::status(403).body(SECONDARY);
        let script = Script::new([limited.clone(), Reply::ok("1"), Reply::status(403).body("{}"), Reply::ok("2")]);
        let server = if http2 { Server::http2(script) } else { Server::http1(script) };
        let rule = AnswerRule::rejected("documented").status([403]).json_contains("/message", "secondary");
        let policy = builder().answer(rule).build().unwrap();
        let client = Client::builder(TokioExecutor::new()).http2_only(http2).build_http();
        let retry = RetryLayer::new(policy).layer(client);
        for (status, body) in [(200, "1"), (403, "{}"), (200, "2")] {
            let request = Request::post(server.url("/")).body(Full::<Bytes>::from("one")).unwrap();
            let answer = retry.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(text(answer.into_body()).await, body);
        }
        let seen = server.until(|seen| seen.complete() == 4).await;
        let connections: Vec<_> = seen.sent(4).requests.iter().map(|request| request.connection).collect();
        assert!(connections.windows(2).all(|pair| pair[0] == pair[1]), "HTTP/2 {http2}: {connections:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_looks_leaves_nothing() {
    let service = testing::service([Reply::status(403).body("{").stall_within()]);
    let request = Request::post("/").body(Full::<Bytes>::from("one")).unwrap();
    let call = RetryLayer::new(policy()).layer(service.clone()).oneshot(request);
    assert!(timeout(Duration::from_millis(500), call).await.is_err());
    assert_eq!(service.seen().in_flight(), 0);
}
