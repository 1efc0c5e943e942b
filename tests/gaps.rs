//! What a server sees between two attempts, for each form of `Retry-After`.
//!
//! `cargo test --test gaps -- --nocapture` prints the table.
#![cfg(feature = "hyper")]

#[path = "common/mod.rs"]
mod common;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use common::raw_h1::{self, Act};
use http::Request;
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{Backoff, RetryLayer, StandardPolicy, Timeouts, Transient};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

const OWN: Duration = Duration::from_millis(100);

/// The server's clock, an hour ahead of ours.
fn servers_now() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3600)
}

fn date(at: SystemTime) -> String {
    httpdate::fmt_http_date(at)
}

/// The same instant in the two obsolete forms of RFC 9110, section 5.6.7.
fn obsolete(at: SystemTime) -> [String; 2] {
    let date = date(at);
    let parts: Vec<&str> = date.split([' ', ',']).filter(|part| !part.is_empty()).collect();
    let [weekday, day, month, year, time, _] = parts[..] else { panic!("{date}") };
    let long = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let long = long.iter().find(|name| name.starts_with(weekday)).unwrap();
    let day_number: u32 = day.parse().unwrap();
    [
        format!("{long}, {day}-{month}-{} {time} GMT", &year[2..]),
        format!("{weekday} {month} {day_number:>2} {time} {year}"),
    ]
}

/// Answers 429 with these header lines, then 200; what lay between, seen from the server.
async fn gap(lines: &[String]) -> Duration {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let refusal = format!("HTTP/1.1 429 X\r\ncontent-length: 0\r\n{lines}\r\n");
    let server =
        raw_h1::start(vec![vec![Act::Request, raw_h1::send(&refusal), Act::Request, raw_h1::answer(200, "")]]).await;
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };
    let policy = StandardPolicy::builder("gaps", timeouts, Transient::usual())
        .backoff(Backoff::fixed(OWN, "so that only the server's word differs"))
        .build()
        .unwrap();
    let client = RetryLayer::new(policy).layer(Client::builder(TokioExecutor::new()).build_http());
    let request = Request::get(server.url("http")).body(Full::<Bytes>::default()).unwrap();
    let call = tokio::spawn(client.oneshot(request));
    server.until(|seen| seen.requests == 1).await;
    let first = Instant::now();
    server.until(|seen| seen.requests == 2).await;
    let gap = first.elapsed();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    gap
}

#[tokio::test]
async fn between_two_attempts() {
    let retry_after = |value: &str| format!("retry-after: {value}");
    let skewed = |value: String| vec![format!("date: {}", date(servers_now())), retry_after(&value)];
    let in_two_seconds = servers_now() + Duration::from_secs(2);
    let [rfc850, asctime] = obsolete(in_two_seconds);
    let seconds = Duration::from_secs;
    let forms: Vec<(&str, Vec<String>, Duration)> = vec![
        ("none: the policy's own wait", vec![], OWN),
        ("seconds", vec![retry_after("1")], seconds(1)),
        ("seconds with a fraction", vec![retry_after("0.503")], Duration::from_millis(503)),
        ("zero: the policy's own wait", vec![retry_after("0")], OWN),
        ("two lines: the longer", vec![retry_after("1"), retry_after("2")], seconds(2)),
        ("no hint: the policy's own wait", vec![retry_after("1m0s")], OWN),
        ("IMF-fixdate, clock an hour ahead", skewed(date(in_two_seconds)), seconds(2)),
        ("RFC 850 date, clock an hour ahead", skewed(rfc850), seconds(2)),
        ("asctime date, clock an hour ahead", skewed(asctime), seconds(2)),
        ("a date in the server's past", skewed(date(servers_now() - seconds(60))), OWN),
    ];
    let gaps = futures_util::future::join_all(forms.iter().map(|(_, lines, _)| gap(lines))).await;
    println!("{:<36} {:>9} {:>9}", "Retry-After", "asked", "gap");
    for ((form, _, asked), gap) in forms.iter().zip(&gaps) {
        println!("{form:<36} {:>6} ms {:>6} ms", asked.as_millis(), gap.as_millis());
    }
    for ((form, _, asked), gap) in forms.iter().zip(&gaps) {
        // Both ends are seen by the server a little after they happened.
        let early = Duration::from_millis(20);
        assert!(*gap + early >= *asked, "{form}: {gap:?}");
        assert!(*gap < *asked + Duration::from_secs(5), "{form}: {gap:?}");
    }
}
