//! `Retry-After` and its relatives, as nine clients and proxies read them.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use redial::policy::{
    Backoff, Unit, WaitHeader,
    budget::{Budget, Load},
};
use serde_json::Value;

use crate::table::{self, Deviation, Outcome, outcome, seconds, show};

const DEVIATIONS: &[Deviation] = &[
    Deviation(3, "D5: of several lines the longest", "3s"),
    Deviation(7, "D7: no form of RFC 9110", "no hint"),
    Deviation(17, "D1: above the cap the call stops", "stop"),
    Deviation(26, "D1: never ignored; above their 120 s it stops", "121s"),
    Deviation(27, "D6: longer than any cap (30 years)", "946080000s"),
    Deviation(36, "D4: fractions are read", "2.5s"),
    Deviation(38, "D2: the past is no minimum", "0ns"),
    Deviation(44, "D1: never clamped", "10s, 486, 500"),
];

/// Set in the processes in which this table runs again, each in another time zone.
const IN_ZONE: &str = "REDIAL_TEST_IN_ZONE";
const ZONES: [&str; 2] = ["UTC", "Asia/Jerusalem"];

#[test]
fn retry_after_table() {
    let json = include_str!("retry_after.json");
    table::run("retry_after", json, DEVIATIONS, judge);
    if std::env::var_os(IN_ZONE).is_some() {
        return;
    }
    for zone in ZONES {
        let child = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", "retry_after::retry_after_table"])
            .env("TZ", zone)
            .env(IN_ZONE, "1")
            .output()
            .expect("a test can be run again");
        let printed = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{zone}: {printed}");
        assert!(printed.contains("1 passed"), "{zone}: {printed}");
    }
}

fn judge(case: &Value) -> Outcome {
    let now = UNIX_EPOCH + Duration::from_secs(case["now"].as_u64().unwrap_or(1_559_559_600));
    let asked = read(case, now);

    if let Some(expected) = case["should_retry"].as_bool() {
        reads(case, &["status", "max_retry_after_s", "should_retry"]);
        // D8: of a status that is transient.
        assert_eq!(case["status"], 429);
        let max = seconds(&case["max_retry_after_s"]);
        return outcome(expected, asked.is_some_and(|asked| asked <= max));
    }
    if !case["clamped_delay_s"].is_null() {
        reads(case, &["cap_s", "clamped_delay_s"]);
        let within = asked.filter(|asked| *asked <= seconds(&case["cap_s"]));
        let ours = within.map_or("stop".into(), show);
        return outcome(show(seconds(&case["clamped_delay_s"])), ours);
    }
    if !case["expect_wait_s"].is_null() {
        reads(case, &["base_backoff_s", "tolerance_s", "expect_wait_s"]);
        let expected = seconds(&case["expect_wait_s"]);
        let ours = with_backoff(seconds(&case["base_backoff_s"]), asked);
        let close = ours.abs_diff(expected) <= seconds(&case["tolerance_s"]);
        return outcome(show(expected), show(if close { expected } else { ours }));
    }
    if !case["rule"].is_null() {
        return botocore(case, asked);
    }
    // Where the zone is said, the whole table runs in it; what is not strictly RFC 9110's is no date here (D7).
    reads(case, &["delay_s", "run_in_tz", "strict_rfc9110"]);
    if let Some(zones) = case.get("run_in_tz") {
        assert_eq!(*zones, serde_json::json!(ZONES));
    }
    if let Some(strict) = case.get("strict_rfc9110") {
        assert_eq!(*strict, asked.is_some());
    }
    let expected = match &case["delay_s"] {
        Value::Null => "no hint".into(),
        delay => show(seconds(delay)),
    };
    outcome(expected, asked.map_or("no hint".into(), show))
}

/// What every row may hold, and these.
fn reads(case: &Value, keys: &[&str]) {
    table::only(case, &[&["src", "name", "note", "means", "now", "headers", "value", "format"], keys].concat());
}

/// A wait, and what the attempt does to the quota of AWS's clients.
fn botocore(case: &Value, asked: Option<Duration>) -> Outcome {
    reads(case, &["attempt", "status", "rand", "rule", "delay_s", "quota_after_failure", "quota_after_success"]);
    assert_eq!(case["rule"], "delay=max(t_i,min(ra,t_i+5s)), t_i=0.05", "the rule whose values are compared here");
    assert_eq!((&case["attempt"], &case["rand"]), (&Value::from(1), &Value::from(1.0)), "of which t_i is made");
    assert_eq!(case["status"], 500, "no throttling, which would cost another share of the quota");
    let wait = with_backoff(Duration::from_millis(50), asked);
    let budget = Budget::aws();
    budget.first_try(false);
    let retry = budget.charge(Load::Retry).expect("a full quota").sent();
    let after_failure = budget.level();
    retry.succeeded();
    let show = |wait: Duration, after_failure: f64, after_success: f64| {
        format!("{}, {after_failure}, {after_success}", show(wait))
    };
    let quota = |key: &str| case[key].as_f64().expect("a quota");
    outcome(
        show(seconds(&case["delay_s"]), quota("quota_after_failure"), quota("quota_after_success")),
        show(wait, after_failure, budget.level()),
    )
}

/// D3: the longer of the two.
fn with_backoff(own: Duration, asked: Option<Duration>) -> Duration {
    let backoff = Backoff::fixed(own, "to see what is added");
    backoff.heed(own, asked.unwrap_or_default(), 0)
}

fn read(case: &Value, now: SystemTime) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    let mut name = RETRY_AFTER;
    for (key, values) in case["headers"].as_object().into_iter().flatten() {
        name = HeaderName::from_bytes(key.as_bytes()).expect("a header name");
        for value in values.as_array().expect("the lines of a header") {
            headers.append(&name, line(value.as_str().expect("text")));
        }
    }
    match case["value"].as_str() {
        Some("past-date") => headers.append(&name, line("Thu, 01 Jan 1970 00:00:00 GMT")),
        Some(value) => headers.append(&name, line(value)),
        None => false,
    };
    let unit = match (case["format"].as_str(), name.as_str()) {
        (Some("SECONDS"), _) => Unit::Seconds,
        (Some("UNIX_TIMESTAMP"), _) => Unit::EpochSeconds,
        (Some(format), _) => panic!("a format that nothing reads: {format}"),
        (None, "retry-after-ms" | "x-amz-retry-after") => Unit::Millis,
        (None, _) => Unit::RetryAfter,
    };
    WaitHeader::new(name, unit).read(&headers, now)
}

fn line(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes()).expect("a header value")
}
