//! Failures of an older system, one JSON object a line.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    time::SystemTime,
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, FailureClass, Imported, NewJob};

/// How long a line may be, in bytes: a payload of 1 MiB, and the rest.
const LINE: u64 = 2 * 1024 * 1024;
/// How many lines one file may have.
const LINES: usize = 100_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "type")]
    job_type: String,
    target: String,
    payload: Value,
    provider: Option<String>,
    failed_at: String,
    class: Option<String>,
    reason: Option<String>,
}

/// Reads this file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<Imported>, Error> {
    let wrong = |error: io::Error| Error::invalid(format!("cannot read {}: {error}", path.display()));
    let mut lines: Box<dyn BufRead> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(path).map_err(wrong)?)),
    };
    let mut failures = Vec::new();
    for number in 1.. {
        let mut line = String::new();
        let read = lines.by_ref().take(LINE).read_line(&mut line).map_err(wrong)?;
        if read == 0 {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        if number > LINES || read as u64 == LINE {
            return Err(Error::invalid(format!("line {number}: a file has {LINES} lines of {LINE} bytes at most")));
        }
        failures.push(parse(&line).map_err(|why| Error::invalid(format!("line {number}: {why}")))?);
    }
    Ok(failures)
}

fn parse(line: &str) -> Result<Imported, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let class = match line.class.as_deref() {
        None => FailureClass::Exhausted,
        Some(name) => FailureClass::parse(name).ok_or_else(|| format!("there is no class of failures `{name}`"))?,
    };
    let failed_at: Timestamp = line.failed_at.parse().map_err(|error: jiff::Error| format!("failed_at: {error}"))?;
    let job = NewJob::raw(line.job_type, line.target, line.payload.to_string()).map_err(|error| error.to_string())?;
    let job = match line.provider {
        Some(provider) => job.provider(provider).map_err(|error| error.to_string())?,
        None => job,
    };
    let reason = line.reason.unwrap_or_else(|| "imported".to_owned());
    Ok(Imported { job, failed_at: SystemTime::from(failed_at), class, reason })
}
