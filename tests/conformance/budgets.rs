//! The budgets of Finagle, AWS and gRPC, row by row, against their own published numbers
//! (`tests/conformance/budgets.json`).
//!
//! Of an AWS row this suite holds the outcome of each step (retried, refused by the quota, attempts
//! spent), the quota after it, and the wait (0.05 x 2^n, its cap, the base of 1 s after throttling). The sleep of a long
//! poll that is not repeated is not ours to make.

use std::time::Duration;

use redial::{
    Backoff,
    policy::budget::{Budget, Charge, Load, Sent},
};
use serde_json::Value;

type Outcome = Result<(), String>;

/// Rows that differ on purpose: (row, number of the decision).
const DEVIATIONS: &[(&str, &str)] = &[
    // A server's wait is never clamped: ten seconds are ten, not five and a backoff.
    ("aws/x_amz_retry_after", "D1"),
];

/// AWS counts three attempts where a row does not say otherwise.
const AWS_ATTEMPTS: u64 = 3;

#[test]
fn budgets() {
    let table: Value = serde_json::from_str(include_str!("budgets.json")).unwrap();
    let mut rows: Vec<(String, Outcome)> = Vec::new();
    for (n, row) in array(&table["scenarios"]).iter().enumerate() {
        rows.push((format!("finagle/{n}"), finagle(row)));
    }
    for row in array(&table["aws_retry_2_1"]["scenarios"]) {
        rows.push((format!("aws/{}", row["name"].as_str().unwrap()), aws(row)));
    }
    rows.push(("grpc/example".into(), grpc(&table["grpc"])));
    let known = ["scenarios", "aws_retry_2_1", "grpc"];
    for key in table.as_object().unwrap().keys().filter(|key| !known.contains(&key.as_str())) {
        rows.push((key.clone(), Err("a table that this suite does not know".into())));
    }

    let passed = rows.iter().filter(|(_, outcome)| outcome.is_ok()).count();
    let listed: Vec<_> = DEVIATIONS.iter().map(|(row, why)| format!("{row} -> {why}")).collect();
    let listed = if listed.is_empty() { "none".into() } else { listed.join(", ") };
    println!("budgets: {passed}/{}, deviations: {listed}", rows.len());

    let mut wrong = Vec::new();
    for (name, outcome) in &rows {
        match (outcome, DEVIATIONS.iter().find(|(row, _)| row == name)) {
            (Err(problem), None) => wrong.push(format!("{name}: {problem}")),
            (Ok(()), Some(_)) => wrong.push(format!("{name}: listed as a deviation, but passes")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Outcome {
    if got == wanted { Ok(()) } else { Err(format!("{what}: {got:?} instead of {wanted:?}")) }
}

/// Only what the row's kind reads may be in it: a new key must not pass unread.
fn only(row: &Value, keys: &[&str]) -> Outcome {
    match row.as_object().unwrap().keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("the key `{key}` is not read by this suite")),
        None => Ok(()),
    }
}

// ---- Finagle

const FINAGLE: [&str; 4] = ["src", "ttl_s", "min_per_s", "percent"];

fn finagle(row: &Value) -> Outcome {
    if let Some(bad) = row.get("reject") {
        only(row, &["src", "reject"])?;
        return finagle_rejects(bad);
    }
    let build = || {
        let ttl = Duration::from_secs(row["ttl_s"].as_u64().unwrap());
        let min_per_second = u32::try_from(row["min_per_s"].as_u64().unwrap()).unwrap();
        Budget::finagle(ttl, min_per_second, row["percent"].as_f64().unwrap()).map_err(|error| error.to_string())
    };
    let read = |keys: &[&str]| only(row, &[&FINAGLE[..], keys].concat());
    if let Some(calls) = row.get("deposits_then_withdraw").and_then(Value::as_u64) {
        read(&["deposits_then_withdraw", "expect", "tol"])?;
        let (wanted, off) = (row["expect"].as_u64().unwrap(), row["tol"].as_u64().unwrap());
        // The row's name allows both readings: every call withdraws after its deposit, or all after all.
        let by_turns = build()?;
        let granted = (0..calls).filter(|_| {
            by_turns.first_try(false);
            retry(&by_turns)
        });
        near("by turns", granted.count() as u64, wanted, off)?;
        let in_turn = build()?;
        (0..calls).for_each(|_| in_turn.first_try(false));
        near("in turn", (0..calls).filter(|_| retry(&in_turn)).count() as u64, wanted, off)
    } else if let Some(deposits) = row.get("deposits").and_then(Value::as_u64) {
        let budget = build()?;
        (0..deposits).for_each(|_| budget.first_try(false));
        if let Some(balance) = row.get("balance") {
            read(&["deposits", "balance"])?;
            expect("balance", budget.level(), balance.as_f64().unwrap())
        } else {
            read(&["deposits", "max_withdrawals", "note"])?;
            let granted = (0..deposits).filter(|_| retry(&budget)).count() as u64;
            expect("withdrawals", granted, row["max_withdrawals"].as_u64().unwrap())
        }
    } else {
        Err("a kind of row that this suite does not know".into())
    }
}

fn finagle_rejects(bad: &Value) -> Outcome {
    expect("bounds in one row", bad.as_object().map(|bounds| bounds.len()), Some(1))?;
    let (key, value) = bad.as_object().unwrap().iter().next().unwrap();
    let ttl = |seconds| Budget::finagle(Duration::from_secs(seconds), 0, 0.1).is_err();
    let refused = match key.as_str() {
        "ttl_s" => ttl(value.as_u64().unwrap()),
        // A negative number of retries cannot be written: the argument is a `u32`.
        "min_per_s" => value.as_i64().map(u32::try_from).unwrap().is_err(),
        "percent" => Budget::finagle(Duration::from_secs(10), 0, value.as_f64().unwrap()).is_err(),
        _ => return Err(format!("a bound that this suite does not know: {key}")),
    };
    expect("refused", refused, true)
}

fn near(what: &str, got: u64, wanted: u64, off: u64) -> Outcome {
    if got.abs_diff(wanted) <= off { Ok(()) } else { Err(format!("{what}: {got} instead of {wanted}")) }
}

fn retry(budget: &Budget) -> bool {
    budget.charge(Load::Retry).map(Charge::sent).is_some()
}

// ---- AWS

fn aws(row: &Value) -> Outcome {
    only(row, &["name", "cap", "max", "steps", "base", "max_backoff", "long_polling"])?;
    let budget = Budget::aws_with_capacity(u32::try_from(row["cap"].as_u64().unwrap()).unwrap());
    let attempts = row.get("max").map_or(AWS_ATTEMPTS, |max| max.as_u64().unwrap());
    let mut call = Call::default();
    for (n, step) in array(&row["steps"]).iter().enumerate() {
        let outcome = step[0].as_str().unwrap();
        if outcome == "NEXT_CALL" {
            call = Call::default();
            continue;
        }
        let got = call.attempt(&budget, outcome, attempts)?;
        let wanted = match &step[1] {
            Value::Null => "done",
            Value::Number(_) => "retried",
            Value::String(reason) if reason.starts_with("quota") => "quota",
            Value::String(reason) if reason.starts_with("max_attempts") => "max_attempts",
            other => {
                return Err(format!("step {n}: an end that this suite does not know: {other}"));
            }
        };
        expect(&format!("step {n}"), got, wanted)?;
        if let Some(delay) = step[1].as_f64() {
            expect(&format!("the longest wait of step {n}"), aws_wait(row, outcome, call.attempts - 1), delay)?;
        }
        expect(&format!("quota after step {n}"), budget.level(), step[2].as_f64().unwrap())?;
    }
    Ok(())
}

/// AWS's waits are full jitter; its rows have the dice at their longest. After throttling the first one is a second.
fn aws_wait(row: &Value, outcome: &str, retry: u64) -> f64 {
    let (kind, asked) = outcome.split_once(";x-amz-retry-after=").unwrap_or((outcome, "0"));
    let number = |field: &str, otherwise: f64| row.get(field).map_or(otherwise, |value| value.as_f64().unwrap());
    let base = if kind == "throttle" { 1.0 } else { number("base", 0.05) };
    let backoff = Backoff::exponential(Duration::from_secs_f64(base))
        .max(Duration::from_secs_f64(number("max_backoff", 20.0)))
        .floor(Duration::from_millis(1));
    let asked = Duration::from_millis(asked.parse().unwrap());
    backoff.longest(u32::try_from(retry).unwrap()).max(asked).as_secs_f64()
}

/// One call, as the engine makes it.
#[derive(Default)]
struct Call {
    attempts: u64,
    retry: Option<Sent>,
}

impl Call {
    fn attempt(&mut self, budget: &Budget, outcome: &str, max: u64) -> Result<&'static str, String> {
        let (succeeded, load) = match outcome.split(';').next() {
            Some("ok") => (true, Load::Retry),
            Some("5xx") => (false, Load::Retry),
            Some("throttle") => (false, Load::Throttled),
            _ => {
                return Err(format!("an outcome that this suite does not know: {outcome}"));
            }
        };
        self.attempts += 1;
        match self.retry.take() {
            Some(retry) if succeeded => retry.succeeded(),
            Some(retry) => retry.failed(),
            None => budget.first_try(succeeded),
        }
        if succeeded {
            return Ok("done");
        }
        if self.attempts == max {
            return Ok("max_attempts");
        }
        self.retry = budget.charge(load).map(Charge::sent);
        Ok(if self.retry.is_some() { "retried" } else { "quota" })
    }
}

// ---- gRPC

fn grpc(row: &Value) -> Outcome {
    only(row, &["source", "maxTokens", "tokenRatio", "rule", "example"])?;
    let (max, ratio) = (row["maxTokens"].as_f64().unwrap(), row["tokenRatio"].as_f64().unwrap());
    let build = || Budget::grpc(max, ratio).map_err(|error| error.to_string());
    let failures = array(&row["example"][0]);
    let text = row["example"][1].as_str().unwrap();
    expect("the example's text", text, "after 5 failures tokens=5 -> not > 5 -> no retry")?;

    // The example twice: five calls that fail, and one call with its retries, since each failed attempt counts.
    let (calls, attempts) = (build()?, build()?);
    let mut sent: Option<Sent> = None;
    for (n, outcome) in failures.iter().enumerate() {
        expect("outcome", outcome.as_str(), Some("fail"))?;
        expect(&format!("open before failure {n}"), calls.is_open(), true)?;
        calls.first_try(false);
        match sent.take() {
            Some(retry) => retry.failed(),
            None => attempts.first_try(false),
        }
        sent = attempts.charge(Load::Retry).map(Charge::sent);
        expect(&format!("retried after failure {n}"), sent.is_some(), n + 1 < failures.len())?;
    }
    for budget in [&calls, &attempts] {
        expect("tokens after the failures", budget.level(), 5.0)?;
        expect("retried", retry(budget), false)?;
        // The rest of the rule: a success brings the ratio, and anything above half is enough.
        budget.first_try(true);
        expect("tokens after a success", budget.level(), 5.0 + ratio)?;
        expect("retried", retry(budget), true)?;
        (0..10).for_each(|_| budget.first_try(false));
        expect("tokens, at least", budget.level(), 0.0)?;
        (0..1000).for_each(|_| budget.first_try(true));
        expect("tokens, at most", budget.level(), max)?;
    }
    Ok(())
}
