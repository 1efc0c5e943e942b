//! Findings as SARIF 2.1.0, for code scanning.

use std::path::Path;

use serde_json::{Value, json};

use super::baseline::Debt;
use crate::contract::{
    Finding, Severity,
    rules::{self, HELP, RULES},
};

/// What cannot be read has a rule of its own, since SARIF has no result without.
const UNREADABLE: &str = "format";

/// The log.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut described: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.number,
                "name": rule.name,
                "shortDescription": { "text": rule.text },
                "helpUri": HELP,
                "help": { "text": format!("{}: {}", rule.number, rule.text) },
            })
        })
        .collect();
    described.push(json!({
        "id": UNREADABLE,
        "name": UNREADABLE,
        "shortDescription": { "text": "The file is a contract that can be read." },
        "helpUri": HELP,
        "help": { "text": "The file is a contract that can be read." },
    }));
    let results: Vec<Value> = findings.iter().map(result).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "redial",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://docs.rs/redial",
                "rules": described,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn result(finding: &Finding) -> Value {
    let problem = finding.problem();
    let id = problem.rule.filter(|rule| rules::find(rule).is_some()).unwrap_or(UNREADABLE);
    let index = RULES.iter().position(|rule| rule.number == id).unwrap_or(RULES.len());
    let (begin, end) = (finding.sources().begin(problem.place), finding.sources().end(problem.place));
    let help = problem.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    json!({
        "ruleId": id,
        "ruleIndex": index,
        "level": match problem.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "message": { "text": format!("{}{help}", problem.message) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": relative(finding.file()), "uriBaseId": "%SRCROOT%" },
            "region": {
                "startLine": begin.line,
                "startColumn": begin.column,
                "endLine": end.line,
                "endColumn": end.column,
            },
        } }],
        "partialFingerprints": { "redial/v1": fingerprint(finding) },
    })
}

/// As a URI reference, relative to where the command runs: the root of the repository in CI.
pub(super) fn relative(file: &str) -> String {
    let path = Path::new(file);
    let here = std::env::current_dir().ok();
    let path = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let text = path.to_string_lossy().replace('\\', "/");
    let text = text.strip_prefix("./").unwrap_or(&text);
    let mut uri = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The same as long as the finding is, wherever its line moves: FNV-1a over what a baseline keeps.
fn fingerprint(finding: &Finding) -> String {
    let Debt { file, rule, provider, operation, message } = Debt::of(finding);
    let file = relative(&file);
    let parts = [file, rule, provider, operation, message];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}
