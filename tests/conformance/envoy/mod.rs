//! Envoy's retry decisions, row by row: what its `retry_on` words repeat, how many retries it lets be in flight, and how
//! it reads the words.
//!
//! "retry" means here that a second request was sent.

mod limit;
mod words;

use http::{HeaderName, Method, Response};
use redial::{BoxError, StopReason};
use serde_json::Value;
use tower::load_shed::error::Overloaded;

use crate::{
    engine::{self, Call, First},
    table::{Outcome, compare, only, outcome, rows},
};

use limit::{InFlight, Limit};
use words::{CODES_HEADER, Matcher, Route, Words};

fn table() -> Value {
    let table = serde_json::from_str(include_str!("../envoy_decisions.json")).expect("the table is JSON");
    only(&table, &["source", "cases", "concurrency_budget", "parse_retry_on"]);
    table
}

fn run(list: &str, judge: impl Fn(&Value) -> Outcome) {
    let table = table();
    compare(&format!("envoy {list}"), rows(&table[list]).iter().map(|row| (row.to_string(), judge(row))), &[]);
}

#[test]
fn decisions() {
    run("cases", |row| engine::paused(decision(row)));
}

#[test]
fn concurrency_budget() {
    run("concurrency_budget", |row| {
        only(row, &["active_requests", "active_retries", "budget_percent", "min_concurrency", "allow"]);
        let number = |key: &str| row[key].as_u64().expect("a number");
        let limit = Limit { percent: number("budget_percent"), least: number("min_concurrency") };
        let allowed = engine::paused(limit::allows(limit, number("active_requests"), number("active_retries")));
        outcome(row["allow"].as_bool().expect("yes or no"), allowed)
    });
}

/// Ours are named by identifiers, which the compiler reads; what is run here is the reader that the other rows go
/// through.
#[test]
fn parse_retry_on() {
    run("parse_retry_on", |row| {
        only(row, &["input", "flags", "all_valid"]);
        let words = Words::read(text(&row["input"]));
        let flags: Vec<_> = rows(&row["flags"]).iter().map(text).collect();
        let show = |flags: &[&str], all_valid: bool| format!("{flags:?}, all valid: {all_valid}");
        let ours: Vec<_> = words.known.iter().map(|word| word.name()).collect();
        outcome(show(&flags, row["all_valid"].as_bool().expect("yes or no")), show(&ours, words.all_valid))
    });
}

async fn decision(row: &Value) -> Outcome {
    let keys = [
        "retry_on",
        "response",
        "retry",
        "codes",
        "header_codes",
        "matchers",
        "retriable_request_methods",
        "method",
        "num_retries",
        "max_concurrent_retries",
        "reason",
    ];
    only(row, &keys);
    // Where a row has no method, nothing may come from it.
    let method: Method = row["method"].as_str().map_or(Method::POST, |method| method.parse().expect("a method"));
    let words = Words::read(text(&row["retry_on"]));
    assert!(words.all_valid, "a word that nobody reads: {row}");
    let list = |key: &str| row[key].as_array().into_iter().flatten();
    let route = Route {
        words: words.known,
        codes: list("codes")
            .map(|code| code.as_u64().and_then(|code| code.try_into().ok()).expect("a status"))
            .collect(),
        matchers: list("matchers").map(Matcher::read).collect(),
        methods: row
            .get("retriable_request_methods")
            .map(|methods| rows(methods).iter().map(text).map(str::to_owned).collect()),
        // Envoy's own default.
        retries: row.get("num_retries").map_or(1, |retries| retries.as_u64().expect("a number")),
        limit: row.get("max_concurrent_retries").map(|most| {
            let limit = Limit { percent: 0, least: most.as_u64().expect("a number") };
            (limit, InFlight::default())
        }),
    };
    let mut request = engine::request(method);
    if let Some(codes) = row["header_codes"].as_str() {
        request.headers_mut().insert(CODES_HEADER, codes.parse().expect("a value"));
    }
    let call = engine::call(route, request, first(&row["response"]).await).await;
    let retry = row["retry"].as_bool().expect("yes or no");
    match row["reason"].as_str() {
        None => outcome(retry, call.repeated),
        Some(reason) => {
            let wanted = Call { repeated: retry, stop: Some(stop(reason)) };
            outcome(format!("{wanted:?}"), format!("{call:?}"))
        }
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "limit_exceeded" => StopReason::Attempts,
        // A limit of the application's own speaks through the verdict.
        "overflow (budget/circuit breaker)" => StopReason::Permanent,
        reason => panic!("a reason that nobody reads: {reason}"),
    }
}

async fn first(response: &Value) -> First {
    if let Some(reset) = response["reset"].as_str() {
        only(response, &["reset"]);
        return First::Fails(failure(reset).await);
    }
    only(response, &["status", "headers"]);
    let status = response["status"].as_u64().and_then(|status| status.try_into().ok()).expect("a status");
    let mut answer = Response::builder().status::<u16>(status);
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        answer = answer.header(name.parse::<HeaderName>().expect("a name"), text(value));
    }
    First::Answer(answer.body(Default::default()).expect("a response"))
}

async fn failure(reset: &str) -> BoxError {
    match reset {
        "remote" => std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(),
        // Turned away by our own side, because it is full.
        "overflow" => Overloaded::new().into(),
        "connect_failure" => engine::refused().await,
        reset => panic!("a reset that nobody makes: {reset}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}
