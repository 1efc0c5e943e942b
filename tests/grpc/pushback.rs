//! `grpc-retry-pushback-ms`: never earlier than the server said, and not at all where it said so.

use std::time::Duration;

use redial::{GrpcCode, StopReason, Transient, testing::Reply};

use super::support::*;

/// Sent so often, with these gaps.
async fn repeated(first: Reply) -> Vec<Duration> {
    let (mut client, service) = scripted([first, done()], idempotent());
    let _ = client.place(order()).await;
    service.seen().gaps()
}

#[tokio::test(start_paused = true)]
async fn a_number_is_waited_for() {
    let gaps = repeated(unavailable().header("grpc-retry-pushback-ms", "1500")).await;
    assert!(gaps.len() == 1 && gaps[0] >= Duration::from_millis(1500), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn so_is_one_in_trailers() {
    let late = head().ends(GrpcCode::Unavailable).trailer("grpc-retry-pushback-ms", "1500");
    let gaps = repeated(late).await;
    assert!(gaps.len() == 1 && gaps[0] >= Duration::from_millis(1500), "{gaps:?}");
}

/// Unlike gRFC A6, where it stands in place of the backoff.
#[tokio::test(start_paused = true)]
async fn the_policys_own_wait_is_still_the_floor() {
    assert_eq!(repeated(unavailable().header("grpc-retry-pushback-ms", "0")).await, [WAIT]);
    let gaps = repeated(unavailable().header("grpc-retry-pushback-ms", "7")).await;
    assert!(gaps.len() == 1 && gaps[0] >= WAIT, "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn negative_or_garbage_says_no() {
    for no in ["-1", "soon", "", "1.5", "+5", "5, 6", "\u{e9}"] {
        for first in [
            unavailable().header("grpc-retry-pushback-ms", no),
            head().ends(GrpcCode::Unavailable).trailer("grpc-retry-pushback-ms", no),
        ] {
            let (mut client, service) = scripted([first, done()], idempotent());
            let status = client.place(order()).await.unwrap_err();
            assert_eq!(report(&status).stop(), Some(StopReason::ServerSaidNo), "{no:?}");
            service.seen().sent(1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_waited_for_ends_the_call_and_says_until_when() {
    for long in ["60000", "99999999999999999999999999"] {
        let (mut client, service) =
            scripted([unavailable().header("grpc-retry-pushback-ms", long), done()], idempotent());
        let status = client.place(order()).await.unwrap_err();
        assert_eq!(report(&status).stop(), Some(StopReason::WaitTooLong), "{long}");
        assert!(redial::grpc::error(&status).unwrap().retry_at().is_some());
        service.seen().sent(1);
    }
}

/// A code that nobody named is final, whatever comes with it.
#[tokio::test(start_paused = true)]
async fn it_makes_no_code_transient() {
    assert_eq!(repeated(fails(GrpcCode::NotFound).header("grpc-retry-pushback-ms", "1")).await, [Duration::ZERO; 0]);
}

/// What one call was told holds for the others (S17), where the code is documented as a rejection.
#[tokio::test(start_paused = true)]
async fn it_holds_the_others_too() {
    let transient = Transient::usual().rejected_code(GrpcCode::ResourceExhausted, "API guide, section 4");
    let policy = with(transient).idempotent("orders have numbers").build().unwrap();
    let told = fails(GrpcCode::ResourceExhausted).header("grpc-retry-pushback-ms", "2000");
    let (mut client, service) = scripted([told, Reply::reset(), done()], policy);
    let mut other = client.clone();
    let started = tokio::time::Instant::now();
    let (one, two) = tokio::join!(client.place(order()), other.place(order()));
    one.unwrap();
    two.unwrap();
    let times = service.seen().sent(4).times(started);
    // Both first tries at once; both repeats when the pushback is over.
    assert!(times[1].is_zero() && times[2] >= Duration::from_secs(2), "{times:?}");
}
