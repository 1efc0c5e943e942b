//! `redial check`

use std::{collections::BTreeSet, fs, io};

use serde::{Deserialize, Serialize};

use super::{
    End,
    arguments::{Check, Format},
    github, input, sarif,
    terminal::Terminal,
};
use crate::contract::{
    Finding, Severity,
    check::dates,
    checklist::{Answer, checklist},
    error::graphical,
    load::Examined,
    place::Sources,
    problem::{Kind, Problem},
};

/// How many findings are shown to people: whoever has more reads the file from its start, or the JSON.
const SHOWN: usize = 200;

/// What a baseline keeps of a finding: all but its line, which moves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Debt {
    pub(super) file: String,
    pub(super) rule: String,
    pub(super) provider: String,
    pub(super) operation: String,
    pub(super) message: String,
}

impl Debt {
    pub(super) fn of(finding: &Finding) -> Self {
        let problem = finding.problem();
        Debt {
            file: finding.file().to_owned(),
            rule: problem.rule.unwrap_or_default().to_owned(),
            provider: problem.about.provider.clone(),
            operation: problem.about.operation.clone(),
            message: problem.message.clone(),
        }
    }
}

pub(super) fn run(command: &Check, terminal: &Terminal) -> End {
    match checked(command, terminal) {
        Ok(end) => end,
        Err(message) => {
            terminal.err(&format!("redial: {message}\n"));
            End::Unreadable
        }
    }
}

fn checked(command: &Check, terminal: &Terminal) -> Result<End, String> {
    let examined = input::builder(&command.input)?.examine(crate::contract::Groups::default());
    let today = command.as_of.unwrap_or_else(today);
    let mut problems = examined.problems.clone();
    problems.extend(dates(&examined.resolved, today, command.max_age));
    let findings = problems.into_iter().map(|problem| Finding::new(problem, &examined.sources));
    let mut findings: Vec<Finding> = findings.collect();
    if let Some(path) = &command.write_baseline {
        let debts: BTreeSet<Debt> = findings.iter().filter(|finding| may_be_owed(finding)).map(Debt::of).collect();
        let text = serde_json::to_string_pretty(&debts).map_err(|error| error.to_string())?;
        fs::write(path, text + "\n").map_err(|error| format!("`{}` cannot be written: {error}", path.display()))?;
        findings.retain(|finding| !may_be_owed(finding));
    }
    let mut known = 0;
    if let Some(path) = &command.baseline {
        let debts =
            baseline(path).map_err(|error| format!("the baseline `{}` cannot be read: {error}", path.display()))?;
        let before = findings.len();
        findings.retain(|finding| !may_be_owed(finding) || !debts.contains(&Debt::of(finding)));
        known = before - findings.len();
    }
    match command.format {
        Format::Human => human(command, &examined, &findings, known, terminal),
        Format::Json => terminal.out(&json(&examined, &findings)),
        Format::Sarif => terminal.out(&sarif::text(&findings)),
        Format::Github => terminal.out(&github::text(&findings)),
    }
    let worst = |severity| findings.iter().any(|finding| finding.severity() == severity);
    Ok(if findings.iter().any(|finding| finding.problem().kind == Kind::NoFile) {
        End::Unreadable
    } else if worst(Severity::Error) || (command.deny.is_some() && worst(Severity::Warning)) {
        End::Broken
    } else {
        End::Kept
    })
}

/// A contract that does not load is no debt.
fn may_be_owed(finding: &Finding) -> bool {
    finding.problem().kind == Kind::Owed
}

fn baseline(path: &std::path::Path) -> io::Result<BTreeSet<Debt>> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn today() -> jiff::civil::Date {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date()
}

fn human(command: &Check, examined: &Examined, findings: &[Finding], known: usize, terminal: &Terminal) {
    let handler = graphical(terminal.colours());
    let mut out = String::new();
    for finding in findings.iter().take(SHOWN) {
        // Writing to a text does not fail.
        let _ = handler.render_report(&mut out, finding);
        out.push('\n');
    }
    if findings.len() > SHOWN {
        out.push_str(&format!("and {} more: `--format json` has them all\n\n", findings.len() - SHOWN));
    }
    if !command.quiet {
        questions(&mut out, examined, terminal);
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let operations: usize = examined.resolved.providers.iter().map(|provider| provider.operations.len()).sum();
    let known = if known > 0 { format!(", {known} known from the baseline") } else { String::new() };
    let summary = format!(
        "{} in {}, {}: {}, {}{known}",
        counted(operations, "operation"),
        counted(examined.resolved.providers.len(), "provider"),
        counted(examined.sources.len(), "file"),
        counted(errors, "error"),
        counted(warnings, "warning"),
    );
    out.push_str(&terminal.bold(&summary));
    out.push('\n');
    terminal.out(&out);
}

pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The eight questions for each operation, and the line that answers each.
fn questions(out: &mut String, examined: &Examined, terminal: &Terminal) {
    for provider in &examined.resolved.providers {
        for operation in &provider.operations {
            let name = format!("{} {}", provider.name.value, operation.name.value);
            out.push_str(&format!("{}  {}\n", terminal.bold(&name), terminal.dim(&requests(operation))));
            for (at, item) in checklist(provider, operation).into_iter().enumerate() {
                let mark = match item.answer {
                    Answer::Yes => terminal.good("yes"),
                    Answer::NotAsked => terminal.dim(" - "),
                    Answer::No => terminal.bad("no "),
                };
                let place = item.place.map_or(String::new(), |place| examined.sources.line(place));
                out.push_str(&format!(
                    "  {mark} {}. {}\n        {}  {}\n",
                    at + 1,
                    item.question,
                    item.why,
                    terminal.dim(&place)
                ));
            }
            out.push('\n');
        }
    }
}

fn requests(operation: &crate::contract::resolve::Operation) -> String {
    if operation.is_rest {
        return "(every other request)".to_owned();
    }
    operation.matches.iter().map(|text| text.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// The same for machines.
fn json(examined: &Examined, findings: &[Finding]) -> String {
    let findings: Vec<_> = findings.iter().map(json_finding).collect();
    let sources: &Sources = &examined.sources;
    let mut operations = Vec::new();
    for provider in &examined.resolved.providers {
        for operation in &provider.operations {
            let answers: Vec<_> = checklist(provider, operation)
                .into_iter()
                .map(|item| {
                    let answer = match item.answer {
                        Answer::Yes => "yes",
                        Answer::NotAsked => "not-asked",
                        Answer::No => "no",
                    };
                    let line = item.place.map(|place| sources.begin(place).line);
                    let file = item.place.map(|place| sources.name(place));
                    serde_json::json!({ "question": item.question, "answer": answer, "why": item.why, "file": file, "line": line })
                })
                .collect();
            operations.push(serde_json::json!({
                "provider": provider.name.value,
                "operation": operation.name.value,
                "checklist": answers,
            }));
        }
    }
    let value = serde_json::json!({ "findings": findings, "operations": operations });
    format!("{value:#}\n")
}

fn json_finding(finding: &Finding) -> serde_json::Value {
    let Problem { severity, rule, message, place, help, about, .. } = finding.problem();
    let (begin, end) = (finding.sources().begin(*place), finding.sources().end(*place));
    serde_json::json!({
        "severity": match severity { Severity::Error => "error", Severity::Warning => "warning" },
        "rule": rule,
        "message": message,
        "help": help,
        "file": finding.file(),
        "line": begin.line,
        "column": begin.column,
        "end_line": end.line,
        "end_column": end.column,
        "provider": about.provider,
        "operation": about.operation,
    })
}
