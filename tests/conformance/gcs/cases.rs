//! Scenarios times operations: the table, expanded.

use serde_json::Value;

use super::operations::{self, Operation};
use crate::table::{only, rows};

/// One case.
pub struct Case {
    /// `scenario/instructions/operation`, and so the id of the test at the server.
    pub id: String,
    pub operation: &'static Operation,
    pub kind: Kind,
    pub instructions: Vec<String>,
    pub precondition: bool,
    pub succeeds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One call.
    Call,
    ResumableUpload,
    Download,
}

pub fn all() -> Vec<Case> {
    let table: Value = serde_json::from_str(include_str!("../gcs_retry_tests.json")).expect("the table is JSON");
    only(&table, &["retryTests"]);
    rows(&table["retryTests"]).iter().flat_map(scenario).collect()
}

fn scenario(scenario: &Value) -> Vec<Case> {
    only(scenario, &["id", "description", "cases", "methods", "preconditionProvided", "expectSuccess"]);
    let yes = |key: &str| scenario[key].as_bool().expect("yes or no");
    let mut cases = Vec::new();
    for (number, faults) in rows(&scenario["cases"]).iter().enumerate() {
        only(faults, &["instructions"]);
        let instructions: Vec<_> =
            rows(&faults["instructions"]).iter().map(|text| text.as_str().expect("text").to_owned()).collect();
        for method in rows(&scenario["methods"]) {
            // The resources are what Google's client needs to exist; here every path exists.
            only(method, &["name", "group", "resources"]);
            let name = method["name"].as_str().expect("a name");
            cases.push(Case {
                id: format!("{}/{number}/{name}", scenario["id"]),
                operation: operations::find(name),
                kind: match method["group"].as_str() {
                    None => Kind::Call,
                    Some("storage.resumable.upload") => Kind::ResumableUpload,
                    Some("storage.objects.download") => Kind::Download,
                    Some(group) => panic!("a group that nothing runs: {group}"),
                },
                instructions: instructions.clone(),
                precondition: yes("preconditionProvided"),
                succeeds: yes("expectSuccess"),
            });
        }
    }
    cases
}
