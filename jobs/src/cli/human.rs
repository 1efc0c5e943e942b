//! What is printed for people.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use jiff::{Timestamp, tz::TimeZone};

use super::terminal::{Terminal, plain};
use crate::{
    AttemptRecord, Burial, Candidate, ImportSummary, JobId, JobRow, Origin, Pause, Plan, Scope, State, Stats, Step,
    Swept,
};

/// How much of a text a line of a list shows.
const SHOWN: usize = 60;

pub(super) fn imported(imported: ImportSummary, dry_run: bool) -> String {
    let all = imported.all();
    let dead = match imported.dead {
        0 => String::new(),
        dead => format!(", {dead} of them DEAD, which nothing repairs: list --state dead"),
    };
    match dry_run {
        true => format!("{all} would be imported{dead}\n"),
        false => format!("{all} are imported{dead}\n"),
    }
}

pub(super) fn list(rows: &[JobRow], limit: u32, terminal: &Terminal) -> String {
    if rows.is_empty() {
        return "no jobs\n".to_owned();
    }
    let head = ["ID", "STATE", "TYPE", "TARGET", "RUN", "SINCE", "WHAT"].map(str::to_owned);
    let mut lines = vec![head.to_vec()];
    lines.extend(rows.iter().map(|row| {
        let since = row.finished_at.or(row.started_at).unwrap_or(row.created_at);
        vec![
            row.id.to_string(),
            row.state.to_string(),
            plain(&row.job_type),
            cut(&plain(&row.target), 30),
            row.attempt.to_string(),
            time(since),
            cut(&what(row), SHOWN),
        ]
    }));
    let mut out = columns(&lines, |line, column, cell| match (line, column) {
        (0, _) => terminal.bold(cell),
        (_, 1) => state(rows[line - 1].state, cell, terminal),
        _ => cell.to_owned(),
    });
    if let (true, Some(last)) = (rows.len() >= limit as usize, rows.last()) {
        let _ = writeln!(out, "{}", terminal.dim(&format!("more may follow: --before {}", last.id)));
    }
    out
}

/// What there is to say of a job beside its state.
fn what(row: &JobRow) -> String {
    let error = row.error.as_deref().map(plain).unwrap_or_default();
    match row.state {
        State::Pending if row.run_at > SystemTime::now() => format!("starts {}", time(row.run_at)),
        State::Processing => format!("held by {}", plain(row.worker.as_deref().unwrap_or("?"))),
        State::Failed => match row.failure {
            Some(class) => format!("{class}: {error}"),
            None => error,
        },
        State::Dead => match row.dead {
            Some(reason) => format!("{reason}: {error}"),
            None => error,
        },
        _ => String::new(),
    }
}

/// A chain, the oldest first, with the attempts of each.
pub(super) fn chain(rows: &[JobRow], asked: JobId, payload: bool, terminal: &Terminal) -> String {
    let mut out = String::new();
    let Some(first) = rows.first() else { return out };
    let _ = writeln!(out, "{} for {}", terminal.bold(&plain(&first.job_type)), plain(&first.target));
    let provider = first.provider.as_deref().map(|name| format!(", provider {}", plain(name))).unwrap_or_default();
    let since = first.chain_started.map_or_else(|| "not begun".to_owned(), |at| format!("since {}", time(at)));
    let _ = writeln!(out, "chain {} {since}{provider}", first.chain);
    if let Some(trace) = &first.trace {
        let _ = writeln!(out, "trace {}", plain(trace));
    }
    if payload {
        let _ = writeln!(out, "payload {}", plain(&first.payload));
    }
    for row in rows {
        let mark = if row.id == asked && rows.len() > 1 { " <" } else { "" };
        let origin = match row.origin {
            Origin::Enqueued => "enqueued",
            Origin::Recovered => "recovered",
            Origin::Revived => "revived",
            Origin::Imported => "imported",
        };
        let id = terminal.bold(&format!("job {}", row.id));
        let _ = writeln!(out, "\n{id}  {}  run {}{mark}", state(row.state, row.state.as_str(), terminal), row.attempt);
        let _ = writeln!(out, "  {} {origin}", time(row.created_at));
        if row.snoozes > 0 {
            let _ = writeln!(out, "  put off {} times", row.snoozes);
        }
        if let (Some(started), Some(worker)) = (row.started_at, &row.worker) {
            let _ = writeln!(out, "  {} claimed by {}", time(started), plain(worker));
        }
        row.history.iter().for_each(|attempt| out.push_str(&attempt_line(attempt)));
        if let Some(finished) = row.finished_at {
            let ended = match (row.dead, row.failure) {
                (Some(reason), Some(class)) => format!("{} ({reason}, {class})", row.state),
                (None, Some(class)) => format!("{} ({class})", row.state),
                _ => row.state.to_string(),
            };
            let _ = writeln!(out, "  {} {ended}", time(finished));
        }
        if let Some(error) = &row.error {
            let _ = writeln!(out, "    {}", plain(error));
        }
        if row.outcome_unknown {
            let _ = writeln!(out, "    its outcome is unknown: it is verified before it is repeated");
        }
        match (row.state, row.retry_at) {
            (State::Pending, _) => writeln!(out, "  {} may start", time(row.run_at)),
            (State::Failed, Some(at)) => writeln!(out, "  {} recovery looks at it", time(at)),
            _ => Ok(()),
        }
        .unwrap_or_default();
    }
    out
}

fn attempt_line(attempt: &AttemptRecord) -> String {
    let unknown = if attempt.unknown { ", outcome unknown" } else { "" };
    let wait = attempt.wait_ms.map(|wait| format!(", then waited {}", span(wait))).unwrap_or_default();
    let AttemptRecord { number, started_ms, took_ms, outcome, .. } = attempt;
    let (started, took) = (span(*started_ms), span(*took_ms));
    format!("    attempt {number} at +{started}: {} after {took}{unknown}{wait}\n", plain(outcome))
}

pub(super) fn stats(stats: &Stats, pauses: &[Pause], terminal: &Terminal) -> String {
    let head = ["TYPE", "PENDING", "PROCESSING", "COMPLETED", "FAILED", "DEAD"].map(str::to_owned);
    let mut lines = vec![head.to_vec()];
    for (name, of_type) in &stats.types {
        let counts = State::ALL.into_iter().map(|state| of_type.count(state).to_string());
        lines.push(std::iter::once(plain(name)).chain(counts).collect());
    }
    let mut out = match stats.types.is_empty() {
        true => "no jobs\n".to_owned(),
        false => columns(&lines, |line, column, cell| match (line, column) {
            (0, _) => terminal.bold(cell),
            (_, 5) if cell != "0" => terminal.bad(cell),
            _ => cell.to_owned(),
        }),
    };
    if let Some(oldest) = stats.oldest_pending {
        let _ = writeln!(out, "oldest claimable job: waits {}", rough(oldest));
    }
    if stats.ghosts > 0 {
        let _ = writeln!(out, "ghosts: {} (lease over, not yet swept)", stats.ghosts);
    }
    if stats.due > 0 {
        let _ = writeln!(out, "failures that recovery has still to look at: {}", stats.due);
    }
    for pause in pauses {
        let until = pause.until.map_or_else(|| "it is resumed".to_owned(), time);
        let _ = writeln!(out, "paused: {} until {until}", scope(&pause.scope));
    }
    out
}

pub(super) fn scope(scope: &Scope) -> String {
    match scope {
        Scope::Type(name) => format!("type {}", plain(name)),
        Scope::Provider(name) => format!("provider {}", plain(name)),
    }
}

pub(super) fn plan(plan: &Plan, terminal: &Terminal) -> String {
    let mut out = String::new();
    for step in &plan.steps {
        let line = match step {
            Step::Recover { job, ghost, delay } => {
                let what = format!("{} in {}", kind(*ghost), rough(*delay));
                format!("{} {}  {what}, {}", terminal.good("recover  "), about(job), counts(job))
            }
            Step::Bury(Burial { job, ghost, reason }) => {
                let what = kind(*ghost);
                format!("{} {}  {what}, DEAD: {reason}, {}", terminal.bad("bury     "), about(job), counts(job))
            }
            Step::Supersede { job, ghost } => {
                format!("{} {}  {}, a later job exists", terminal.dim("supersede"), about(job), kind(*ghost))
            }
            Step::Wait { job, reason } => {
                let why = serde_json::to_value(reason).unwrap_or_default();
                format!("{} {}  {}", terminal.dim("wait     "), about(job), why.as_str().unwrap_or_default())
            }
        };
        let _ = writeln!(out, "{line}");
    }
    for stuck in &plan.stuck {
        let about = format!("job {}  {} {}", stuck.id, plain(&stuck.job_type), plain(&stuck.target));
        let _ = writeln!(out, "stuck     {about}  claimable for {}, and nobody claims it", rough(stuck.waited));
    }
    if out.is_empty() {
        out.push_str("nothing to do\n");
    }
    out
}

fn kind(ghost: bool) -> &'static str {
    if ghost { "ghost" } else { "failure" }
}

fn about(job: &Candidate) -> String {
    format!("job {}  {} {}", job.id, plain(&job.job_type), plain(&job.target))
}

fn counts(job: &Candidate) -> String {
    format!("{} failures, {} ghosts", job.failures, job.ghosts)
}

pub(super) fn swept(swept: &Swept, terminal: &Terminal) -> String {
    let mut out = format!(
        "recovered {} ({} ghosts), buried {}, superseded {}, waiting {}, overtaken {}\n",
        swept.recovered,
        swept.ghosts,
        swept.buried.len(),
        swept.superseded,
        swept.waiting,
        swept.overtaken
    );
    for burial in &swept.buried {
        let _ = writeln!(out, "{} {}: {}", terminal.bad("DEAD"), about(&burial.job), burial.reason);
    }
    out
}

fn state(state: State, cell: &str, terminal: &Terminal) -> String {
    match state {
        State::Completed => terminal.good(cell),
        State::Dead => terminal.bad(cell),
        State::Failed => terminal.bold(cell),
        _ => cell.to_owned(),
    }
}

/// In columns that are as wide as their widest cell; the last one is open.
fn columns(lines: &[Vec<String>], style: impl Fn(usize, usize, &str) -> String) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mut shown = String::new();
        for (column, cell) in line.iter().enumerate() {
            let pad = if column + 1 < line.len() { widths[column] - cell.chars().count() + 2 } else { 0 };
            let _ = write!(shown, "{}{}", style(number, column, cell), " ".repeat(pad));
        }
        let _ = writeln!(out, "{}", shown.trim_end());
    }
    out
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(std::iter::once('…')).collect(),
        false => text.to_owned(),
    }
}

/// In local time, to the second.
fn time(time: SystemTime) -> String {
    let zoned = Timestamp::try_from(time).map(|time| time.to_zoned(TimeZone::system()));
    zoned.map_or_else(|_| "?".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => rough(Duration::from_millis(ms)),
    }
}

fn rough(time: Duration) -> String {
    match time.as_secs() {
        0..120 => format!("{:.1} s", time.as_secs_f64()),
        secs @ 120..7200 => format!("{} min", secs / 60),
        secs @ 7200..172_800 => format!("{} h", secs / 3600),
        secs => format!("{} days", secs / 86_400),
    }
}
