//! Findings as annotations of a workflow on GitHub, and a table of them all.

use super::{check::counted, sarif::relative, words};
use crate::contract::{Finding, Severity};

/// GitHub shows this many annotations of each level to a step, and drops the rest without a word.
const SHOWN: usize = 10;

/// Errors first; what GitHub would drop is in the table, which goes to the step's summary too where there is one.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    for (severity, level) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
        let these = findings.iter().filter(|finding| finding.severity() == severity);
        for finding in these.take(SHOWN) {
            out.push_str(&annotation(level, finding));
        }
    }
    let table = table(findings);
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // A summary that cannot be written is no reason to fail a check.
        let _ = file.and_then(|mut file| file.write_all(table.as_bytes()));
    }
    out + &table
}

fn annotation(level: &str, finding: &Finding) -> String {
    let problem = finding.problem();
    let (begin, end) = (finding.sources().begin(problem.place), finding.sources().end(problem.place));
    let title = problem.rule.map_or("contract".to_owned(), |rule| format!("contract: {rule}"));
    let mend = problem.help.as_ref().map_or(String::new(), |help| format!("\n{help}"));
    // GitHub ignores columns where an annotation spans lines.
    let columns =
        if begin.line == end.line { format!(",col={},endColumn={}", begin.column, end.column) } else { String::new() };
    format!(
        "::{level} file={},line={},endLine={}{columns},title={}::{}\n",
        property(finding.file().strip_prefix("./").unwrap_or(finding.file())),
        begin.line,
        end.line,
        property(&title),
        data(&format!("{}{mend}", problem.message)),
    )
}

/// As the runner's own toolkit escapes it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn table(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let mut out = format!("### Contracts: {}, {}\n", counted(errors, "error"), counted(warnings, "warning"));
    if findings.is_empty() {
        return out;
    }
    out.push_str("\n| | rule | where | what | how to mend it |\n| --- | --- | --- | --- | --- |\n");
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.severity());
    for finding in sorted {
        let level = match finding.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let place = words::cell(&format!("`{}:{}`", relative(finding.file()), finding.line()));
        let (what, mend) = (words::cell(finding.message()), words::cell(finding.mend().unwrap_or_default()));
        out.push_str(&format!("| {level} | {} | {place} | {what} | {mend} |\n", finding.rule().unwrap_or_default()));
    }
    out
}
