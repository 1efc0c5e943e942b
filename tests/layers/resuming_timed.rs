//! `ResumeLayer` and time: waits, deadlines, a silence, and what is dropped in the middle.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use redial::{
    Backoff, Deadline, ResumeLayer, RetryLayer, TimeoutLayer,
    testing::{Readiness, Reply, Script, service},
};
use tokio::time::{Instant, timeout};
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::{
    get, paused, read,
    resuming::{ETAG, FILE, broken, call, call_with, given_up, rest},
};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn empty() -> Reply {
    let reply = Reply::status(206).header("etag", ETAG).header("content-range", "bytes 3-9/10");
    reply.header("content-length", "7").close_within()
}

#[tokio::test(start_paused = true)]
async fn waits_grow_while_nothing_comes_and_begin_anew_when_something_does() {
    let doubled = Backoff::exponential(MS(100)).max(MS(10_000)).unjittered("tests are exact");
    let one_byte = Reply::status(206).body("3").header("etag", ETAG).header("content-range", "bytes 3-9/10");
    let one_byte = one_byte.header("content-length", "7").close_within();
    let server = service([broken(3), empty(), empty(), one_byte, rest(4)]);
    let layer = ResumeLayer::new().backoff(doubled).unwrap();
    let response = call_with(layer, &server, get("/file")).await.unwrap();
    assert_eq!(read(response.into_body()).await.unwrap(), FILE);
    assert_eq!(server.seen().gaps(), [MS(100), MS(200), MS(400), MS(100)]);
}

#[tokio::test(start_paused = true)]
async fn the_waits_are_spread_by_default() {
    let mut waits = std::collections::HashSet::new();
    for _ in 0..8 {
        let server = service([broken(3), rest(3)]);
        let response = call_with(ResumeLayer::new(), &server, get("/file")).await.unwrap();
        read(response.into_body()).await.unwrap();
        let wait = server.seen().gaps()[0];
        assert!(wait >= MS(50) && wait <= MS(201), "{wait:?}");
        waits.insert(wait);
    }
    assert!(waits.len() > 1, "{waits:?}");
}

#[test]
fn a_backoff_that_breaks_a_rule_is_refused() {
    let error = ResumeLayer::new().backoff(Backoff::exponential(MS(100)).floor(Duration::ZERO)).unwrap_err();
    assert_eq!(error.rules().collect::<Vec<_>>(), ["S9", "S11"]);
    assert!(error.to_string().starts_with("the policy `resume` breaks 2 rules"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_the_resumes() {
    let until = |time| {
        let mut request = get("/file");
        request.extensions_mut().insert(Deadline::after(time));
        request
    };
    // The wait would cross it: nothing is sent, and nobody waits.
    let (server, start) = (service([broken(3), rest(3)]), Instant::now());
    let response = call(&server, until(MS(100))).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: no time left".to_owned()));
    assert_eq!(start.elapsed(), Duration::ZERO);
    server.seen().sent(1);

    // It passes while the rest is asked for: the retry layer below keeps it.
    let (server, start) = (service([broken(3), Reply::stall()]), Instant::now());
    let response = call(&server, until(MS(1500))).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!((given_up(&error).0, start.elapsed()), (1, MS(1500)));

    // It passes while the service is not ready.
    let script = Script::new([broken(3), rest(3)]).readiness([Readiness::Now, Readiness::Never]);
    let (server, start) = (service(script), Instant::now());
    let response = call(&server, until(MS(1500))).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(
        (given_up(&error), start.elapsed()),
        ((1, "given up after 1 resume: no time left".to_owned()), MS(1500))
    );

    let script = Script::new([broken(3), rest(3)]).readiness([Readiness::Now, Readiness::Fails]);
    let response = call(&service(script), get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert!(given_up(&error).1.contains("not ready, says the script"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dropped_in_its_wait_nothing_more_is_sent() {
    let server = service([broken(3), rest(3)]);
    let mut body = call(&server, get("/file")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert!(timeout(MS(50), body.frame()).await.is_err(), "it waits");
    drop(body);
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn dropped_while_the_rest_is_asked_for_the_request_ends() {
    let server = service([broken(3), Reply::stall()]);
    let mut body = call(&server, get("/file")).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert!(timeout(MS(500), body.frame()).await.is_err());
    assert_eq!(server.seen().sent(2).in_flight(), 1);
    drop(body);
    assert_eq!(server.seen().in_flight(), 0);
}

fn stalled() -> Reply {
    Reply::ok(&FILE[..3]).header("content-length", "10").header("etag", ETAG).stall_within()
}

#[tokio::test(start_paused = true)]
async fn a_silence_noticed_below_is_resumed() {
    let server = service([stalled(), rest(3)]);
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(Duration::from_secs(600)))
        .layer(ResumeLayer::new())
        .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)))
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    assert_eq!(read(response.into_body()).await.unwrap(), FILE);
    let gap = server.seen().sent(2).gaps()[0];
    assert!(gap > Duration::from_secs(10) && gap < Duration::from_secs(11), "{gap:?}");
}

/// The wrong order, and what it does.
#[tokio::test(start_paused = true)]
async fn a_silence_noticed_above_is_the_end() {
    let server = service([stalled(), rest(3)]);
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)))
        .layer(ResumeLayer::new())
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    assert!(read(response.into_body()).await.unwrap_err().is_timeout());
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn a_total_is_final_above_and_below() {
    // Above: the whole, resumes included.
    let (server, start) = (service([stalled()]), Instant::now());
    let stack = ServiceBuilder::new()
        .layer(TimeoutLayer::new().total(Duration::from_secs(25)))
        .layer(ResumeLayer::new())
        .layer(TimeoutLayer::new().body_idle(Duration::from_secs(10)))
        .layer(RetryLayer::new(paused().build().unwrap()))
        .service(server.clone());
    let response = stack.oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert!(error.is_timeout() && start.elapsed() <= Duration::from_secs(25), "{error}");

    // Below: that time of a call is over is no reason to give it more.
    let server = service([stalled(), rest(3)]);
    let below = TimeoutLayer::new().total(Duration::from_secs(5)).layer(server.clone());
    let request: Request<_> = get("/file");
    let response = ResumeLayer::new().layer(below).oneshot(request).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: what broke it does not pass".to_owned()));
    assert!(error.is_timeout());
    server.seen().sent(1);
}
