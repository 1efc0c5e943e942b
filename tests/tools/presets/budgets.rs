//! The presets' budgets, by the tables of those whose budgets they are.

use std::time::Duration;

use redial::{StopReason, contract::Contract};
use serde_json::Value;

use super::{End, call_by, loaded, request, status, with_header};

const TABLE: &str = include_str!("../../conformance/budgets.json");
const URI: &str = "https://reports.s3.us-east-1.amazonaws.com/2026/1";

/// What a retry costs by AWS's rules.
const COST: u64 = 14;

/// Rows of AWS that are not S3's preset, and why.
const OTHERS: &[(&str, &str)] = &[
    ("retry_quota_reached_after_single_retry", "another capacity"),
    ("no_retries_if_retry_quota_is_zero", "another capacity"),
    ("retry_stops_after_retry_quota_exhaustion", "another capacity"),
    ("retry_quota_recovery_after_successful_responses", "another capacity"),
    ("dynamodb", "DynamoDB's attempts and base"),
    ("verify_max_backoff_time", "another cap, more attempts"),
    ("long_polling_throttle_empty_bucket", "S3 has no long polls"),
    ("long_polling_max_attempts_no_sleep", "S3 has no long polls"),
];

/// Rows whose waits are others in the preset, and why.
const OTHER_WAITS: &[(&str, &str)] = &[
    (
        "throttling_error_token_bucket_drain_and_backoff",
        "a second for throttling errors: S3's is a 503, as its others are",
    ),
    ("x_amz_retry_after", "D1: ten seconds are ten"),
];

#[tokio::test(start_paused = true)]
async fn s3_by_the_table_of_aws() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let scenarios = table["aws_retry_2_1"]["scenarios"].as_array().unwrap();
    let mut played = 0;
    for row in scenarios {
        let name = row["name"].as_str().unwrap();
        if OTHERS.iter().any(|(other, _)| *other == name) {
            continue;
        }
        assert!(row["cap"] == 500 && row.get("max").is_none_or(|max| max == 3), "{name}: what the preset has");
        scenario(name, row["steps"].as_array().unwrap()).await;
        played += 1;
    }
    assert_eq!(played + OTHERS.len(), scenarios.len());
}

async fn scenario(name: &str, steps: &[Value]) {
    let contract = loaded("s3");
    let mut ends: Vec<End> = steps.iter().map(|step| end(step[0].as_str().unwrap())).collect();
    let last = steps.last().unwrap();
    // A row may leave off before the call is over: it goes well then, which brings its own cost back.
    let left_off = last[1].is_number();
    if left_off {
        ends.push(status(200));
    }
    let seen = call_by(&contract, request("GET", URI), &ends).await;
    assert_eq!(seen.attempts(), ends.len(), "{name}");
    for (step, waits) in steps.iter().zip(seen.at.windows(2)) {
        let wait = waits[1] - waits[0];
        // The row's is the longest that full jitter can give.
        let most = Duration::from_secs_f64(step[1].as_f64().unwrap());
        match OTHER_WAITS.iter().find(|(other, _)| *other == name) {
            None => assert!(wait <= most, "{name}: {wait:?}"),
            Some(_) if name == "x_amz_retry_after" => assert!(wait >= Duration::from_secs(10), "{name}: {wait:?}"),
            Some(_) => assert!(wait < most, "{name} is no longer another: {wait:?}"),
        }
    }
    let level = last[2].as_u64().unwrap() + if left_off { COST } else { 0 };
    assert_eq!(drained(&contract).await, level / COST, "{name}");
}

fn end(step: &str) -> End {
    match step.split_once(";x-amz-retry-after=") {
        Some((_, millis)) => with_header(500, "x-amz-retry-after", millis),
        None if step == "throttle" => status(429),
        None if step == "5xx" => status(500),
        None => status(200),
    }
}

/// How many more retries the budget pays for.
async fn drained(contract: &Contract) -> u64 {
    let mut retries = 0;
    for _ in 0..100 {
        let seen = call_by(contract, request("GET", URI), &[status(500)]).await;
        retries += seen.attempts() as u64 - 1;
        if seen.stop == Some(StopReason::Budget) {
            return retries;
        }
    }
    panic!("a budget that pays for everything");
}

/// The others have the usual budget, which no vendor's table is of: what it lets through in an outage is bounded.
#[tokio::test(start_paused = true)]
async fn the_others_are_bounded() {
    for (preset, uri) in [
        ("anthropic", "https://api.anthropic.com/v1/models"),
        ("azure-blob", "https://shop.blob.core.windows.net/reports/1"),
        ("gcs", "https://storage.googleapis.com/storage/v1/b/reports/o"),
        ("github", "https://api.github.com/user"),
        ("openai", "https://api.openai.com/v1/models"),
        ("stripe", "https://api.stripe.com/v1/charges"),
    ] {
        let contract = loaded(preset);
        let (mut calls, mut attempts) = (0, 0);
        for _ in 0..200 {
            attempts += call_by(&contract, request("GET", uri), &[status(503)]).await.attempts();
            calls += 1;
        }
        assert!(attempts < calls + calls / 4, "{preset}: {attempts} attempts of {calls} calls");
        assert!(attempts > calls, "{preset}: it repeats");
    }
}
