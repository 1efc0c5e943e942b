//! Never earlier than the server said (S17), never longer than the call may take (D1).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderName, Method};
use redial::{Backoff, CallReport, Clock, RetryLayer, StandardPolicy, StopReason, Unit};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    policies::{builder, builder_within, timeouts},
    script::{Script, ScriptBody, Step, ms, request, secs, status, text},
};

async fn gaps(policy: StandardPolicy, steps: impl IntoIterator<Item = Step>) -> Vec<u128> {
    let script = Script::new(steps);
    let start = Instant::now();
    RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    script.millis(start).windows(2).map(|pair| pair[1] - pair[0]).collect()
}

async fn refused(policy: StandardPolicy, step: Step) -> CallReport {
    let start = Instant::now();
    let script = Script::new([step.body(ScriptBody::text("slow down"))]);
    let answer = RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((start.elapsed(), script.count()), (ms(0), 1), "at once, and only one request");
    let report = answer.extensions().get::<CallReport>().unwrap().clone();
    assert_eq!(text(answer).await, "slow down");
    report
}

fn epoch(secs: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(secs)
}

#[tokio::test(start_paused = true)]
async fn c014_never_earlier() {
    // C014
    for jitter in [Backoff::default(), Backoff::fixed(ms(100), "tests are exact")] {
        let policy = builder().backoff(jitter).build().unwrap();
        let gap = gaps(policy, [status(429).retry_after("2"), status(200)]).await[0];
        assert!((2_000..=2_401).contains(&gap), "{gap}");
    }
}

#[tokio::test(start_paused = true)]
async fn c060_longer_than_the_total_stops_at_once_and_says_until_when() {
    // C060
    let now = epoch(1_800_000_000);
    let policy = builder_within(timeouts(5_000, 30_000)).clock(Clock::fixed(now)).build().unwrap();
    for wait in [30, 60, 100] {
        let report = refused(policy.clone(), status(429).retry_after(&wait.to_string())).await;
        assert_eq!(report.stop(), Some(StopReason::WaitTooLong));
        assert_eq!(report.retry_at(), Some(now + secs(wait)));
    }
}

#[tokio::test(start_paused = true)]
async fn c061_longer_than_the_cap_stops_at_once() {
    // C061, C062: no clamp, and no falling back to the short schedule; a date in the far future is no different.
    let now = epoch(1_445_412_480);
    let capped = || builder().longest_server_wait(secs(10)).clock(Clock::fixed(now)).build().unwrap();
    for word in ["11", "3600", "99999999999999999999", "Wed, 21 Oct 2065 07:28:00 GMT"] {
        let report = refused(capped(), status(429).retry_after(word)).await;
        assert_eq!(report.stop(), Some(StopReason::WaitTooLong), "{word}");
        assert!(report.retry_at().unwrap() > now, "{word}");
    }
}

#[tokio::test(start_paused = true)]
async fn c062_six_refusals_of_thirty_seconds_are_one_request() {
    // Never the short schedule of the policy's own.
    let policy = builder().longest_server_wait(secs(20)).attempts_because(7, "as in the report").build().unwrap();
    let (script, start) = (Script::always(status(429).retry_after("30")), Instant::now());
    let answer = RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((answer.status().as_u16(), script.count(), start.elapsed()), (429, 1, ms(0)));
}

#[tokio::test(start_paused = true)]
async fn c022_as_long_as_the_cap_is_waited() {
    // C022: the cap itself is allowed.
    let header = HeaderName::from_static("retry-after-ms");
    let capped = || {
        builder_within(timeouts(5_000, 600_000))
            .longest_server_wait(secs(60))
            .wait_header(header.clone(), Unit::Millis)
            .build()
            .unwrap()
    };
    assert_eq!(gaps(capped(), [status(429).retry_after("60"), status(200)]).await, [60_000]);
    assert_eq!(gaps(capped(), [status(429).header("retry-after-ms", "60000"), status(200)]).await, [60_000]);
    assert_eq!(refused(capped(), status(429).retry_after("61")).await.stop(), Some(StopReason::WaitTooLong));
    let above = status(429).header("retry-after-ms", "60001");
    assert_eq!(refused(capped(), above).await.stop(), Some(StopReason::WaitTooLong));
}

#[tokio::test(start_paused = true)]
async fn c065_the_longer_of_the_two_waits() {
    // C065: a minimum does not shorten what the policy would have waited.
    let backoff = Backoff::exponential(secs(1)).max(secs(16)).unjittered("tests are exact");
    let policy = builder().attempts_because(6, "the schedule of C065").backoff(backoff).build().unwrap();
    let mut steps = vec![status(429).retry_after("1"); 5];
    steps.push(status(200));
    assert_eq!(gaps(policy, steps).await, [1_000, 2_000, 4_000, 8_000, 16_000]);
}

#[tokio::test(start_paused = true)]
async fn c064_those_who_were_told_the_same_come_back_spread() {
    // C064: also where the cap is exactly what was asked for.
    for cap in [5, 60] {
        let policy = builder_within(timeouts(1_000, 600_000))
            .backoff(Backoff::default())
            .longest_server_wait(secs(cap))
            .build()
            .unwrap();
        let mut all = Vec::new();
        for _ in 0..1_000 {
            all.extend(gaps(policy.clone(), [status(429).retry_after("5"), status(200)]).await);
        }
        let (least, most) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
        assert!(least >= 5_000 && most <= 6_001 && most - least > 500, "{least} to {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn c010_dates_are_read_by_the_policys_clock() {
    let now = epoch(1_445_412_475); // 07:27:55
    let policy = || builder().clock(Clock::following_tokio(now)).build().unwrap();
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    assert_eq!(gaps(policy(), [status(503).retry_after(date), status(200)]).await, [5_000]);
    // By the server's own clock, where it says what that is.
    let skewed = status(503).retry_after(date).header("date", "Wed, 21 Oct 2015 07:27:53 GMT");
    assert_eq!(gaps(policy(), [skewed, status(200)]).await, [7_000]);
    // C010: a date in the past sets no minimum, and does not undo the policy's own wait.
    let past = status(503).retry_after("Wed, 21 Oct 2015 07:27:00 GMT");
    assert_eq!(gaps(policy(), [past, status(200)]).await, [100]);
}

#[tokio::test(start_paused = true)]
async fn retry_at_is_there_whatever_stopped_it() {
    // The server's word is worth knowing also where it was not what ended the call.
    let now = epoch(1_800_000_000);
    let policy = builder().attempts(1).clock(Clock::fixed(now)).build().unwrap();
    let report = refused(policy, status(503).retry_after("7")).await;
    assert_eq!((report.stop(), report.retry_at()), (Some(StopReason::Attempts), Some(now + secs(7))));
    let policy = builder().attempts(1).clock(Clock::fixed(now)).build().unwrap();
    assert_eq!(refused(policy, status(503)).await.retry_at(), None);
}
