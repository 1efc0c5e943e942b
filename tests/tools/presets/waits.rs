//! How long the presets wait, by the tables of the vendors' own SDKs.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{End, call, request};

const TABLE: &str = include_str!("../../conformance/retry_after.json");

fn rows(source: &str) -> Vec<Value> {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let rows = table["cases"].as_array().unwrap().iter();
    rows.filter(|row| row["src"].as_str().unwrap().starts_with(source)).cloned().collect()
}

fn end(row: &Value, status: u16) -> End {
    let headers = row["headers"].as_object().unwrap().iter().map(|(name, values)| {
        let name = match name.as_str() {
            "retry-after" => "retry-after",
            "retry-after-ms" => "retry-after-ms",
            "x-amz-retry-after" => "x-amz-retry-after",
            other => panic!("{other}"),
        };
        (name, values[0].as_str().unwrap().to_owned())
    });
    End::Answer(status, headers.collect(), "")
}

/// Dates in 2023 are in the past by today's clock, and ask for no minimum.
fn seconds_of(row: &Value) -> Option<f64> {
    let value = row["headers"]["retry-after"][0].as_str()?;
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()))
}

#[tokio::test(start_paused = true)]
async fn as_long_as_openai_says() {
    let rows = rows("openai-python tests/test_client.py:test_parse_retry_after_header");
    assert_eq!(rows.len(), 13);
    for preset in ["openai", "anthropic"] {
        let (host, path) = match preset {
            "openai" => ("api.openai.com", "/v1/chat/completions"),
            _ => ("api.anthropic.com", "/v1/messages"),
        };
        for row in &rows {
            // A 503, which both presets repeat whatever headers it has.
            let uri = format!("https://{host}{path}");
            let seen = call(preset, request("POST", &uri), &[end(row, 503)]).await;
            match seconds_of(row) {
                // Beyond every deadline: the SDK falls back to its own wait, here the call ends and says until when (D1).
                Some(seconds) if seconds > 1e9 => assert_eq!((seen.attempts(), seen.told_when), (1, true), "{row}"),
                Some(seconds) => {
                    let least = Duration::from_secs_f64(seconds);
                    assert!(seen.first_wait().is_some_and(|wait| wait >= least), "{row}: {:?}", seen.at);
                }
                // Malformed, or in the past: the preset's own backoff, half a second at the most.
                None => {
                    let wait = seen.first_wait().unwrap();
                    assert!(wait <= Duration::from_millis(500), "{row}: {wait:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn milliseconds_before_seconds() {
    let headers = |millis: &str| vec![("retry-after-ms", millis.to_owned()), ("retry-after", "60".to_owned())];
    let uri = "https://api.openai.com/v1/embeddings";
    let seen = call("openai", request("POST", uri), &[End::Answer(429, headers("700"), "")]).await;
    let wait = seen.first_wait().unwrap();
    assert!((Duration::from_millis(700)..Duration::from_secs(2)).contains(&wait), "{wait:?}");
    // What is malformed leaves the word to the next.
    let seen = call("openai", request("POST", uri), &[End::Answer(429, headers("soon"), "")]).await;
    assert!(seen.first_wait().is_some_and(|wait| wait >= Duration::from_secs(60)), "{:?}", seen.at);
}

#[tokio::test(start_paused = true)]
async fn as_long_as_s3_says() {
    let rows = rows("botocore test_standard_retry_v2_1.py:test_x_amz_retry_after_header_is_honored");
    assert_eq!(rows.len(), 3);
    for row in rows {
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        let uri = "https://s3.us-east-1.amazonaws.com/reports/1";
        let seen = call("s3", request("PUT", uri), &[end(&row, status)]).await;
        let wait = seen.first_wait().unwrap();
        match row["headers"]["x-amz-retry-after"][0].as_str().unwrap().parse() {
            // botocore cuts it at five seconds above its own wait; here it is never earlier than was said (D1).
            Ok(millis) => assert!(wait >= Duration::from_millis(millis), "{row}: {wait:?}"),
            Err(_) => assert!(wait <= Duration::from_millis(50), "{row}: {wait:?}"),
        }
    }
}

/// The SDK's own limit of what it waits for when it is told to: two minutes.
#[tokio::test(start_paused = true)]
async fn no_longer_than_openai_waits() {
    let rows = rows("openai-python test_retry_after_max_delay");
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["max_retry_after_s"], 120);
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        // A date is as far from our clock as the row's is from its own.
        let mut row = row;
        let now = row["now"].as_u64().unwrap();
        if let Some(date) =
            row["headers"]["retry-after"][0].as_str().and_then(|text| httpdate::parse_http_date(text).ok())
        {
            let seconds = date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() - now;
            // Of the second that is under way, nothing is left by the time that it is read.
            let date = SystemTime::now() + Duration::from_secs(seconds + 1);
            row["headers"]["retry-after"][0] = httpdate::fmt_http_date(date).into();
        }
        let uri = "https://api.openai.com/v1/chat/completions";
        let seen = call("openai", request("POST", uri), &[end(&row, status)]).await;
        match row["should_retry"].as_bool().unwrap() {
            true => {
                assert!(seen.first_wait().is_some_and(|wait| wait >= Duration::from_secs(120)), "{row}: {:?}", seen.at)
            }
            false => assert_eq!((seen.attempts(), seen.told_when), (1, true), "{row}"),
        }
    }
}

/// Never less than Stripe's SDK waits at least: half a second.
#[tokio::test(start_paused = true)]
async fn no_less_than_stripe_waits() {
    let table: Value = serde_json::from_str(include_str!("../../conformance/backoff.json")).unwrap();
    let rows = table["cases"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.filter(|row| row["src"] == "stripe-python test_initial_delay_as_minimum").collect();
    assert_eq!(rows.len(), 5);
    let mut firsts = Vec::new();
    for _ in 0..20 {
        let seen =
            call("stripe", request("GET", "https://api.stripe.com/v1/charges"), &[End::Answer(503, Vec::new(), "")])
                .await;
        assert_eq!(seen.attempts(), 3);
        // The preset makes two retries of the rows' five.
        for (row, waits) in rows.iter().zip(seen.at.windows(2)) {
            let (least, wait) = (Duration::from_secs_f64(row["delay_s"].as_f64().unwrap()), waits[1] - waits[0]);
            assert!((least..=Duration::from_secs(5)).contains(&wait), "{row}: {wait:?}");
        }
        firsts.push(seen.at[1]);
    }
    firsts.sort();
    assert!(firsts[19] - firsts[0] > Duration::from_millis(50), "they are spread: {firsts:?}");
}
