//! Delays and stalls: on the wire at least as long, on a paused clock exactly.

use redial::testing::Readiness;
use tokio::time::{Instant, timeout};

use super::*;

const SHORT: Duration = Duration::from_millis(40);

#[tokio::test]
async fn on_the_wire() {
    for http2 in [false, true] {
        let server = play(http2, Reply::ok("half").pause(SHORT).body("whole").after(SHORT));
        let start = Instant::now();
        let response = soon(client(http2).request(post(&server.url("/")))).await.unwrap();
        let head = start.elapsed();
        assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes(), "halfwhole");
        assert!(head >= SHORT && start.elapsed() >= 2 * SHORT, "{head:?}, {:?}", start.elapsed());
    }
}

/// The head comes, and half of the body, and then nothing.
#[tokio::test]
async fn stalled_on_the_wire() {
    for http2 in [false, true] {
        let server = play(http2, Reply::ok("half").stall_within());
        let client = client(http2);
        let response = soon(client.request(post(&server.url("/")))).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(soon(body.frame()).await.unwrap().unwrap().into_data().unwrap(), "half");
        assert!(timeout(SHORT, body.frame()).await.is_err());
        assert_eq!(server.seen().in_flight(), 1);
        // The client gives it up, which the server notices.
        drop(body);
        server.until(|seen| seen.in_flight() == 0).await;
    }
}

/// A client that gives up a request which is never answered is noticed too.
#[tokio::test]
async fn given_up_on_the_wire() {
    for reply in [Reply::stall(), Reply::ok("late").after(Duration::from_secs(3600))] {
        for http2 in [false, true] {
            let server = play(http2, reply.clone());
            let client = client(http2);
            let answer = tokio::spawn(client.request(post(&server.url("/"))));
            server.until(|seen| seen.complete() == 1).await;
            answer.abort();
            server.until(|seen| seen.in_flight() == 0).await.sent(1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_paused_clock() {
    let script = Script::new([
        Reply::ok("half").pause(Duration::from_secs(3)).body("whole").after(Duration::from_secs(2)),
        Reply::ok("half").stall_within(),
        Reply::stall(),
    ]);
    let service = testing::service(script.readiness([Readiness::After(Duration::from_secs(1))]));
    let start = Instant::now();
    let response = service.clone().oneshot(post("/")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "halfwhole");
    assert_eq!(start.elapsed(), Duration::from_secs(6));

    let mut body = service.clone().oneshot(post("/")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    assert!(timeout(Duration::from_secs(60), body.frame()).await.is_err());
    assert!(timeout(Duration::from_secs(60), service.clone().oneshot(post("/"))).await.is_err());

    let seen = service.seen();
    assert_eq!(seen.sent(3).gaps(), [5, 60].map(Duration::from_secs));
    assert_eq!(seen.times(start), [1, 6, 66].map(Duration::from_secs));
    assert_eq!(seen.in_flight(), 0);
}
