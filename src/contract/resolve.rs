//! What holds for each operation: its own settings over its provider's, over its file's; and over each of them, where
//! the program chose one, its environment's.
//!
//! This is the view that everything else of a contract stands on: each value has its [`Place`], which says in which
//! file it stands, where, and at which level.

use std::collections::{BTreeSet, HashMap};

use super::{
    model::{Defaults, Document, Env, Operation as Written, Provider as WrittenProvider, Source, Waiver},
    names::Others,
    place::{At, Place},
    problem::Problem,
    read::{Keys, OneOrMore},
    scalar::Time,
    settings::{Answer, Settings},
    weight::Multiplied,
};
use crate::redact::Redacted;

/// A contract, with everything inherited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    /// In the order of the files, then of their names.
    pub(crate) providers: Vec<Provider>,
    pub(crate) waivers: Vec<At<Waiver>>,
    /// How long a request to a host that no provider has may take.
    pub(crate) unknown_hosts: Option<At<Time>>,
    /// The names of all environments of its files, chosen or not.
    pub(crate) envs: BTreeSet<String>,
}

/// A provider.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) name: At<String>,
    pub(crate) hosts: Vec<At<String>>,
    pub(crate) source: Option<At<Source>>,
    /// The provider's own, over its file's.
    pub(crate) settings: Settings,
    pub(crate) operations: Vec<Operation>,
    /// What becomes of what they do not match, where that is said.
    #[cfg_attr(not(feature = "cli"), allow(dead_code))] // for the command
    pub(crate) others: Option<At<Others>>,
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// `any` for what no other operation matches.
    pub(crate) name: At<String>,
    /// Whether it stands for what no other operation of its provider matches, by the provider's settings.
    pub(crate) is_rest: bool,
    /// `METHOD /path`. Empty for the rest.
    pub(crate) matches: Vec<At<String>>,
    /// Everything that holds for it. Rules on answers are joined: its own first, then its provider's, then its file's.
    pub(crate) settings: Settings,
}

/// Joins documents into one contract, as the environment of this name has it.
pub(super) fn resolve(documents: Vec<(Place, Document)>, env: Option<&str>, problems: &mut Vec<Problem>) -> Resolved {
    let mut resolved = Resolved::default();
    let mut known_envs = BTreeSet::new();
    let (mut weight, mut taken) = (0, HashMap::new());
    let whole = documents.first().map(|(whole, _)| *whole);
    for (_, document) in documents {
        let mut chosen = Env::default();
        for (name, found) in document.env.map(|envs| envs.value.0).unwrap_or_default() {
            if env == Some(name.as_str()) {
                chosen = found.value;
            }
            known_envs.insert(name.value);
        }
        let own = document.defaults.map(|defaults| defaults.value).unwrap_or_default();
        let Defaults { unknown_hosts, settings } = match chosen.defaults {
            Some(above) => Keys::over(above.value, own),
            None => own,
        };
        resolved.unknown_hosts = resolved.unknown_hosts.or(unknown_hosts);
        let mut overrides = Overrides::of(chosen.provider.map(|named| named.value.0).unwrap_or_default(), problems);
        for (name, provider) in document.provider.map(|named| named.value.0).unwrap_or_default() {
            if let Some(first) = taken.get(&name.value) {
                let problem =
                    Problem::unreadable(name.place, format!("the provider `{}` is there twice", Redacted(&name)));
                problems.push(problem.label("once more").other(*first, "first here"));
                continue;
            }
            taken.insert(name.value.clone(), name.place);
            let provider = match overrides.providers.remove(&name.value) {
                Some((_, above)) => Keys::over(above, provider.value),
                None => provider.value,
            };
            let operations = overrides.operations.remove(&name.value).unwrap_or_default();
            let multiplied = Multiplied {
                name: &name,
                inherited: [&provider.settings, &settings],
                operations: provider.operation.as_ref().map_or(&[], |operations| &operations.value),
                hosts: provider.hosts.as_ref(),
                url: provider.contract.as_ref().and_then(|source| source.url.as_ref()),
            };
            if let Err(problem) = multiplied.add_to(&mut weight) {
                problems.push(problem.about(&name, ""));
                continue;
            }
            resolved.providers.push(resolve_provider(name, provider, operations, settings.clone(), problems));
        }
        overrides.unused(&resolved, problems);
        resolved.waivers.extend(document.waiver.map(|waivers| waivers.value).unwrap_or_default());
    }
    if let (Some(env), Some(whole)) = (env.filter(|env| !known_envs.contains(*env)), whole) {
        let known: Vec<&str> = known_envs.iter().map(String::as_str).collect();
        let problem = Problem::unreadable(whole, format!("no file has the environment `{}`", Redacted(env)));
        let help = if known.is_empty() {
            "there is none: write `[env.NAME…]`".to_owned()
        } else {
            format!("known are {}", super::read::listed(&known))
        };
        problems.push(problem.help(help));
    }
    resolved.envs = known_envs;
    resolved
}

type NamedOperations = Vec<At<Written>>;

/// What the environment says, by the names of providers.
#[derive(Default)]
struct Overrides {
    providers: HashMap<String, (Place, WrittenProvider)>,
    operations: HashMap<String, NamedOperations>,
}

impl Overrides {
    fn of(named: Vec<(At<String>, At<WrittenProvider>)>, problems: &mut Vec<Problem>) -> Self {
        let mut overrides = Overrides::default();
        for (name, mut provider) in named {
            let operations = provider.value.operation.take().map(|operations| operations.value).unwrap_or_default();
            for operation in &operations {
                if operation.name.is_none() {
                    let problem = Problem::unreadable(operation.place, "the operation to override is not named");
                    problems.push(
                        problem.label("`name` is missing").help("write the `name` of an operation of this provider"),
                    );
                }
            }
            overrides.operations.insert(name.value.clone(), operations);
            overrides.providers.insert(name.value, (name.place, provider.value));
        }
        overrides
    }

    /// Names that override nothing are slips.
    fn unused(self, resolved: &Resolved, problems: &mut Vec<Problem>) {
        for (name, (place, _)) in self.providers {
            let mut problem =
                Problem::unreadable(place, format!("this file has no provider `{}` to override", Redacted(&name)));
            if let Some(provider) = resolved.providers.first() {
                problem = problem.help(format!("there is `{}`", provider.name.value));
            }
            problems.push(problem.label("overrides nothing"));
        }
    }
}

fn resolve_provider(
    name: At<String>,
    provider: WrittenProvider,
    mut overrides: NamedOperations,
    mut defaults: Settings,
    problems: &mut Vec<Problem>,
) -> Provider {
    let WrittenProvider { hosts, contract, others, operation, mut settings } = provider;
    let answers = join(settings.answer.take(), defaults.answer.take());
    let settings = Keys::over(settings, defaults);
    let mut operations: Vec<Operation> = Vec::new();
    let mut names: HashMap<String, Place> = HashMap::new();
    for written in operation.map(|operations| operations.value).unwrap_or_default() {
        let own_name = written.name.as_ref().map(|name| name.value.clone());
        let at = overrides.iter().position(|above| above.name.as_ref().map(|name| &name.value) == own_name.as_ref());
        let mut own = written.value;
        if let Some(mut above) = at.filter(|_| own_name.is_some()).map(|at| overrides.swap_remove(at)) {
            above.value.name = None;
            own = Keys::over(above.value, own);
        }
        let Written { name: own_name, matches, settings: mut own } = own;
        let Some(own_name) = own_name else {
            let problem = Problem::broken(
                "S15",
                written.place,
                "the operation has no name: events and errors could not say what failed",
            );
            problems.push(problem.label("`name` is missing").help("write `name = \"…\"`").about(&name, ""));
            continue;
        };
        if let Some(first) = names.insert(own_name.value.clone(), own_name.place) {
            let problem =
                Problem::unreadable(own_name.place, format!("the operation `{}` is there twice", Redacted(&own_name)));
            problems.push(problem.label("once more").other(first, "first here").about(&name, &own_name));
        }
        let matches: Vec<_> = matches.iter().flat_map(|matches| matches.iter().cloned()).collect();
        if matches.is_empty() {
            let problem = Problem::broken(
                "S18",
                own_name.place,
                format!("it is not said which requests are `{}`", Redacted(&own_name)),
            );
            problems.push(
                problem
                    .label("`match` is missing")
                    .missing(["match"])
                    .help("write `match = \"METHOD /path/{parameter}\"`")
                    .about(&name, &own_name),
            );
        }
        let own_answers = join(own.answer.take(), answers.clone());
        let mut own = Keys::over(own, settings.clone());
        own.answer = own_answers;
        operations.push(Operation { name: own_name, is_rest: false, matches, settings: own });
    }
    for above in overrides.iter().filter_map(|above| above.name.as_ref()) {
        let problem = Problem::unreadable(
            above.place,
            format!("`{}` has no operation `{}` to override", name.value, Redacted(above)),
        );
        problems.push(problem.label("overrides nothing").about(&name, above));
    }
    let settings = Settings { answer: answers, ..settings };
    if others.as_ref().is_none_or(|others| others.value == Others::AsProvider) {
        let name = At { value: "any".to_owned(), place: name.place };
        operations.push(Operation { name, is_rest: true, matches: Vec::new(), settings: settings.clone() });
    }
    let hosts = hosts.as_deref().map(OneOrMore::iter).into_iter().flatten().cloned().collect();
    Provider { name, hosts, source: contract, settings, operations, others }
}

type Answers = Option<At<Vec<At<Answer>>>>;

/// The more specific rules first.
fn join(first: Answers, then: Answers) -> Answers {
    match (first, then) {
        (Some(mut first), Some(then)) => {
            first.value.extend(then.value);
            Some(first)
        }
        (first, then) => first.or(then),
    }
}
