//! What `redial check` found once, and does not report again: the debts that a system starts with.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::input;
use crate::contract::{Finding, problem::Kind};

/// The largest file that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What is kept of a finding: all but its line, which moves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Debt {
    pub(super) file: String,
    pub(super) rule: String,
    pub(super) provider: String,
    pub(super) operation: String,
    pub(super) message: String,
}

/// Debts, and how many there are of each: one more of a kind is a new one.
pub(super) struct Baseline(BTreeMap<Debt, usize>);

impl Baseline {
    pub(super) fn of(findings: &[Finding]) -> Self {
        Self::counted(findings.iter().filter(|finding| may_be_owed(finding)).map(Debt::of))
    }

    fn counted(debts: impl IntoIterator<Item = Debt>) -> Self {
        let mut counts = BTreeMap::new();
        debts.into_iter().for_each(|debt| *counts.entry(debt).or_default() += 1);
        Baseline(counts)
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let debts: Result<Vec<Debt>, _> = serde_json::from_str(&input::text(path, LARGEST)?);
        let debts = debts.map_err(|error| format!("the baseline `{}` cannot be read: {error}", path.display()))?;
        Ok(Self::counted(debts))
    }

    /// As a list, in which each stands as often as it was found.
    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let debts = self.0.iter().flat_map(|(debt, count)| std::iter::repeat_n(debt, *count));
        let text = serde_json::to_string_pretty(&debts.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        fs::write(path, text + "\n").map_err(|error| format!("`{}` cannot be written: {error}", path.display()))
    }

    /// Whether the finding is one of them, which is used up then.
    pub(super) fn knows(&mut self, finding: &Finding) -> bool {
        let left = self.0.get_mut(&Debt::of(finding)).filter(|left| **left > 0 && may_be_owed(finding));
        left.map(|left| *left -= 1).is_some()
    }
}

impl Debt {
    pub(super) fn of(finding: &Finding) -> Self {
        let problem = finding.problem();
        Debt {
            file: plain(finding.file()),
            rule: problem.rule.unwrap_or_default().to_owned(),
            provider: problem.about.provider.clone(),
            operation: problem.about.operation.clone(),
            message: problem.message.clone(),
        }
    }
}

/// A contract that does not load is no debt.
pub(super) fn may_be_owed(finding: &Finding) -> bool {
    finding.problem().kind == Kind::Owed
}

/// A file is the same however it is named: `./contracts/shop.toml`, `contracts//shop.toml`, or from the root.
fn plain(file: &str) -> String {
    let path = Path::new(file);
    let here = env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok());
    let mut plain = PathBuf::new();
    for component in here.unwrap_or(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().replace('\\', "/")
}
