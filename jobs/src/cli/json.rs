//! What is printed for programs: one object a line.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::terminal::steers;
use crate::{ImportSummary, JobId, JobRow, Pause, Scope, Stats};

pub(super) fn row(row: &JobRow, payload: bool) -> String {
    let mut value = plain(serde_json::to_value(row).unwrap_or_default());
    if let Value::Object(fields) = &mut value {
        let stored = fields.remove("payload");
        if payload {
            // As JSON, not as a text of JSON.
            let parsed = serde_json::from_str(&row.payload).ok();
            fields.insert("payload".to_owned(), parsed.or(stored).unwrap_or_default());
        }
    }
    line(&value)
}

pub(super) fn stats(stats: &Stats, pauses: &[Pause]) -> String {
    let mut value = plain(serde_json::to_value(stats).unwrap_or_default());
    if let Value::Object(fields) = &mut value {
        fields.insert("pauses".to_owned(), plain(serde_json::to_value(pauses).unwrap_or_default()));
    }
    line(&value)
}

pub(super) fn revived(id: JobId, successor: JobId) -> String {
    line(&json!({ "id": id, "successor": successor }))
}

pub(super) fn imported(imported: ImportSummary, dry_run: bool) -> String {
    line(&json!({ "imported": imported.all(), "dead": imported.dead, "dry_run": dry_run }))
}

/// For as long as `stats` says.
pub(super) fn paused(scope: &Scope) -> String {
    line(&json!({ "scope": scope, "paused": true }))
}

pub(super) fn resumed(scope: &Scope, resumed: bool) -> String {
    line(&json!({ "scope": scope, "resumed": resumed }))
}

pub(super) fn value(value: &impl Serialize) -> String {
    line(&plain(serde_json::to_value(value).unwrap_or_default()))
}

/// JSON escapes some control characters; the others, and what steers a terminal besides, may be escaped. They stand in
/// strings alone.
fn line(value: &Value) -> String {
    let mut line = String::new();
    for c in value.to_string().chars() {
        match steers(c) {
            true => line.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => line.push(c),
        }
    }
    line.push('\n');
    line
}

/// Spans as seconds, where serde writes objects.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => object(fields),
        Value::Array(values) => values.into_iter().map(plain).collect(),
        other => other,
    }
}

fn object(fields: Map<String, Value>) -> Value {
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    if let (2, Some(secs), Some(nanos)) = (fields.len(), number("secs"), number("nanos")) {
        return Duration::new(secs, u32::try_from(nanos).unwrap_or(0)).as_secs_f64().into();
    }
    fields.into_iter().map(|(name, value)| (name, plain(value))).collect()
}
