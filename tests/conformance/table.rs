//! Runs a table and compares it with its list of deviations.

use std::time::Duration;

use serde_json::Value;

/// A row that we do not follow: which (counted from 0), why, and what we do instead.
pub struct Deviation(pub usize, pub &'static str, pub &'static str);

/// What a row expects, and what we do.
pub struct Outcome {
    pub expected: String,
    pub ours: String,
}

pub fn outcome(expected: impl ToString, ours: impl ToString) -> Outcome {
    Outcome { expected: expected.to_string(), ours: ours.to_string() }
}

/// Runs every case of a table: see [`compare`].
pub fn run(name: &str, json: &str, deviations: &[Deviation], judge: impl Fn(&Value) -> Outcome) {
    let table: Value = serde_json::from_str(json).expect("the table is JSON");
    only(&table, &["cases", "note", "source"]);
    compare(name, rows(&table["cases"]).iter().map(|case| (case.to_string(), judge(case))), deviations);
}

pub fn rows(list: &Value) -> &[Value] {
    list.as_array().expect("a list of rows")
}

/// Compares rows, each given with its text; prints the count and the deviations; fails on any other
/// difference, and on a listed deviation that is none.
pub fn compare(name: &str, rows: impl IntoIterator<Item = (String, Outcome)>, deviations: &[Deviation]) {
    let mut failures = Vec::new();
    let (mut passed, mut total) = (0, 0);
    for (row, (text, Outcome { expected, ours })) in rows.into_iter().enumerate() {
        total += 1;
        let listed = deviations.iter().find(|deviation| deviation.0 == row);
        let wanted = listed.map_or(&*expected, |deviation| deviation.2);
        if ours != wanted {
            failures.push(format!("{row}: wanted {wanted}, got {ours}: {text}"));
        } else if listed.is_some() && ours == expected {
            failures.push(format!("{row}: listed, but does not deviate: {text}"));
        } else if listed.is_none() {
            passed += 1;
        }
    }
    let list: Vec<_> =
        deviations.iter().map(|Deviation(row, why, ours)| format!("\n  {row} -> {why} (ours: {ours})")).collect();
    println!("{name}: {passed}/{total}, deviations:{}", if list.is_empty() { " none".into() } else { list.concat() });
    assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n"));
    assert_eq!(passed + deviations.len(), total, "a row was not run");
}

/// Only what a suite reads may be in a row: a new key must not pass unread.
pub fn only(row: &Value, keys: &[&str]) {
    for key in row.as_object().expect("an object").keys() {
        assert!(keys.contains(&key.as_str()), "nothing reads the key `{key}` of {row}");
    }
}

/// To the microsecond, so that a bound that only floats have is no difference.
pub fn show(wait: Duration) -> String {
    let micros = (wait.as_nanos() + 500) / 1000;
    format!("{:?}", Duration::from_micros(micros as u64))
}

pub fn seconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().expect("a number of seconds"))
}

pub fn millis(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().expect("a number of milliseconds"))
}
