//! Everything that can be said of a contract, whether it loads or not.

use std::{collections::HashSet, sync::Arc};

use super::{
    ContractBuilder, Loaded,
    budgets::Groups,
    check,
    lower::{self, Lowered},
    model::Document,
    place::{Place, Sources},
    problem::Problem,
    resolve::{self, Resolved},
};

/// What was found in a contract, in the order of its files.
pub(crate) struct Examined {
    pub(crate) sources: Arc<Sources>,
    #[cfg_attr(not(feature = "cli"), allow(dead_code))] // for the command
    pub(crate) resolved: Resolved,
    pub(crate) problems: Vec<Problem>,
    /// `None`: it does not load.
    pub(super) loaded: Option<Loaded>,
    /// The same contract under each environment that was looked at beside, without its operations.
    #[cfg(feature = "cli")]
    pub(crate) under: Vec<Resolved>,
}

impl ContractBuilder {
    /// As the chosen environment has it.
    pub(super) fn examine(&self, groups: Groups) -> Examined {
        let (sources, documents, mut problems) = self.documents();
        let (resolved, lowered) = judge(documents, self.env.as_deref(), groups, &mut problems);
        Examined::of(sources, resolved, lowered, problems)
    }

    /// The same; and where no environment was chosen, what can be said of it under each that the files speak of: one that
    /// nobody looks at is what production runs.
    #[cfg(feature = "cli")]
    pub(crate) fn examine_each(&self) -> Examined {
        let (sources, documents, mut problems) = self.documents();
        let (resolved, lowered) = judge(documents.clone(), self.env.as_deref(), Groups::default(), &mut problems);
        let known: HashSet<_> = problems.iter().map(Problem::identity).collect();
        let envs = resolved.envs.iter().take(resolve::ENVS).filter(|_| self.env.is_none());
        let mut under = Vec::new();
        for env in envs {
            let mut found = Vec::new();
            under.push(judge(documents.clone(), Some(env), Groups::default(), &mut found).0.without_operations());
            found.retain(|problem| !known.contains(&problem.identity()));
            let within = |problem: Problem| Problem { message: format!("as `{env}`: {}", problem.message), ..problem };
            problems.extend(found.into_iter().map(within));
        }
        Examined { under, ..Examined::of(sources, resolved, lowered, problems) }
    }
}

impl Examined {
    fn of(sources: Sources, resolved: Resolved, lowered: Option<Lowered>, problems: Vec<Problem>) -> Self {
        let mut problems = problems;
        check::waive(&resolved, &mut problems);
        without_consequences(&mut problems);
        sort(&mut problems);
        let sources = Arc::new(sources);
        let loaded = lowered.map(|lowered| Loaded::new(&sources, resolved.clone(), lowered, &problems));
        Examined {
            sources,
            resolved,
            problems,
            loaded,
            #[cfg(feature = "cli")]
            under: Vec::new(),
        }
    }
}

/// What holds as this environment has it, held against every rule.
fn judge(
    documents: Vec<(Place, Document)>,
    env: Option<&str>,
    groups: Groups,
    problems: &mut Vec<Problem>,
) -> (Resolved, Option<Lowered>) {
    let resolved = resolve::resolve(documents, env, problems);
    check::rules(&resolved, problems);
    let lowered = lower::lower(&resolved, groups, problems);
    check::warnings(&resolved, lowered.as_ref(), problems);
    (resolved, lowered)
}

/// What is said to be missing although it is there, unreadable or misspelt, is no problem of its own.
fn without_consequences(problems: &mut Vec<Problem>) {
    let spoilt = problems.iter().flat_map(|problem| problem.spoils.iter().map(|key| (problem.place.file, key.clone())));
    let spoilt: HashSet<(u16, String)> = spoilt.collect();
    problems
        .retain(|problem| !problem.missing.iter().any(|key| spoilt.contains(&(problem.place.file, (*key).to_owned()))));
}

/// In the order of the files; what was said of one place twice is said once: a provider's slip is one, however many
/// operations inherit it.
fn sort(problems: &mut Vec<Problem>) {
    problems.sort_by_key(|problem| (problem.place.file, problem.place.start, problem.severity));
    let mut seen = HashSet::new();
    problems.retain(|problem| seen.insert(problem.identity()));
}
