//! A server that means harm.

use http::{Method, StatusCode};
use redial::StopReason;
use tokio::time::Instant;

use crate::{
    call,
    policies::{builder_within, timeouts},
    script::{Script, ScriptBody, ms, request, secs, status},
    stop,
};

/// C174: memory within the limits of tape and drain, time within the total, attempts within their number. An endless
/// body on a real socket is in `drain`.
#[tokio::test(start_paused = true)]
async fn c174_a_hostile_server_costs_no_more_than_the_policy_allows() {
    let policy = builder_within(timeouts(1_000, 10_000)).build().unwrap();

    let (script, start) = (Script::new([status(503).retry_after("1000000000000000000")]), Instant::now());
    let answer = call(&policy, &script, request(Method::GET)).await.unwrap();
    assert_eq!((stop(&answer), start.elapsed()), (Some(StopReason::WaitTooLong), ms(0)));

    // A megabyte of headers, again and again.
    let large = "x".repeat(1 << 20);
    let script = Script::always(status(503).header("x-large", &large));
    let answer = call(&policy, &script, request(Method::GET)).await.unwrap();
    assert_eq!((answer.status(), script.count()), (StatusCode::SERVICE_UNAVAILABLE, 3));

    // Bodies that never end: each is given up, the last one is the caller's.
    let (script, start) = (Script::always(status(503).body(ScriptBody::endless())), Instant::now());
    let answer = call(&policy, &script, request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 3);
    assert!(start.elapsed() < secs(10));
    assert_eq!(script.bodies_held(), 1, "the last answer's alone");
    drop(answer);
    assert_eq!(script.bodies_held(), 0);

    // To keep attempts alive by answering now and then does not help: their number is the call's.
    let script = Script::new([status(429), status(429), status(429)]);
    call(&policy, &script, request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 3);
}
