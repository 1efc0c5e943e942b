//! `redial diff`

mod change;
mod evidence;
mod patterns;
mod rules;

use std::collections::BTreeMap;

use http::Request;

use super::{
    End,
    arguments::{Diff, Shape},
    check::counted,
    index::{Found, Index},
    input,
    matrix::{self, Cell, Column},
    sample,
    terminal::Terminal,
};
use crate::{
    Plan, Policy, RequestHead,
    contract::{Contract, ContractBuilder, Loaded, resolve::Provider, settings::Settings},
    policy::{Backoff, budget::BudgetSetting},
};
use change::{Change, Way, of_cells, of_settings};
use patterns::{Pattern, named, patterns};

/// What holds for one request by one of the contracts.
struct Side<'a> {
    settings: &'a Settings,
    backoff: &'a Backoff,
    budget: Option<&'a BudgetSetting>,
}

/// One of the contracts.
struct Version<'a> {
    loaded: &'a Loaded,
    index: Index<'a>,
}

impl<'a> Version<'a> {
    fn plan(&self, request: &Request<()>) -> Plan {
        self.loaded.routes().plan(&RequestHead::of(request))
    }

    fn cells(&self, columns: &[Column], request: &Request<()>) -> Vec<Cell> {
        columns.iter().map(|column| matrix::cell(self.loaded.routes(), request, *column)).collect()
    }

    /// `None`: no provider has it, and it is sent once.
    fn side<'b>(&'b self, request: &Request<()>, plan: &'b Plan) -> Option<Side<'b>>
    where
        'a: 'b,
    {
        let Found { operation, .. } = self.index.of(request)?;
        let (backoff, budget) = (&plan.operation.backoff, plan.operation.budget.setting());
        Some(Side { settings: &operation.settings, backoff, budget })
    }

    /// Whether no operation names it.
    fn is_rest(&self, request: &Request<()>) -> bool {
        self.index.of(request).is_none_or(|found| found.operation.is_rest)
    }

    fn whose(&self, request: &Request<()>) -> String {
        match self.index.of(request) {
            Some(Found { provider, operation, .. }) => format!("`{} {}`", provider.name.value, operation.name.value),
            None => "no provider's, sent once".to_owned(),
        }
    }
}

/// What changes, and for which requests.
type Changes = BTreeMap<Vec<Change>, Vec<String>>;

pub(super) fn run(command: &Diff, terminal: &Terminal) -> End {
    let changes = match compared(command, terminal) {
        Ok(changes) => changes,
        Err(end) => return end,
    };
    terminal.out(&match command.format {
        Shape::Human => human(&changes, terminal),
        Shape::Json => json(&changes),
    });
    let less_safe = changes.keys().flatten().any(|change| change.way == Way::LessSafe);
    if less_safe { End::Broken } else { End::Kept }
}

/// In the environment that is asked for; else in none, and in each that either contract has.
fn compared(command: &Diff, terminal: &Terminal) -> Result<Changes, End> {
    let builder = |file: &str| {
        let builder = input::add(Contract::builder(), file);
        builder.map_err(|message| input::unreadable(&message, terminal))
    };
    let (old, new) = both(builder(&command.old), builder(&command.new))?;
    let loaded = |builder: &ContractBuilder, env: Option<&str>| input::in_env(builder, env, terminal);
    let env = command.env.as_deref();
    let (before, after) = both(loaded(&old, env), loaded(&new, env))?;
    let plain = changes(&before, &after);
    let mut all = gathered(&plain, "");
    if env.is_some() {
        return Ok(all);
    }
    for env in before.resolved.envs.union(&after.resolved.envs) {
        // Where only one of them has it, the other does without.
        let of = |loaded: &Loaded| loaded.resolved.envs.contains(env).then_some(env.as_str());
        let (there, here) = (of(&before), of(&after));
        let mut found = match both(loaded(&old, there), loaded(&new, here))? {
            (before, after) => changes(&before, &after),
        };
        // What changes in every environment was said.
        found.retain(|found| !plain.contains(found));
        let news = match (there, here) {
            (None, _) => Some("the environment is new"),
            (_, None) => Some("the environment is gone"),
            _ => None,
        };
        let news = news.map(|text| vec![Change { way: Way::Other, text: text.to_owned() }]);
        found.extend(news.map(|news| ("all".to_owned(), news)));
        for (changes, requests) in gathered(&found, &format!("in `{env}`: ")) {
            all.entry(changes).or_default().extend(requests);
        }
    }
    Ok(all)
}

/// What cannot be read comes before what is broken.
fn both<T>(old: Result<T, End>, new: Result<T, End>) -> Result<(T, T), End> {
    match (old, new) {
        (Ok(old), Ok(new)) => Ok((old, new)),
        (Err(one), Err(other)) => Err(if one == End::Unreadable { one } else { other }),
        (Err(end), _) | (_, Err(end)) => Err(end),
    }
}

/// The requests of each change.
fn gathered(found: &[(String, Vec<Change>)], env: &str) -> Changes {
    let mut changes = Changes::new();
    for (name, found) in found {
        changes.entry(found.clone()).or_default().push(format!("{env}{name}"));
    }
    changes
}

/// What changes for which request, or for which provider.
fn changes(old: &Loaded, new: &Loaded) -> Vec<(String, Vec<Change>)> {
    let columns = matrix::columns(&[old, new]);
    let (before, after) =
        (Version { loaded: old, index: Index::new(old) }, Version { loaded: new, index: Index::new(new) });
    let mut all = Vec::new();
    for pattern in patterns(old, new) {
        let mut said: Vec<Vec<Change>> = Vec::new();
        for (method, own) in pattern.methods() {
            let Some(request) = sample::request(&pattern.host, &method, &pattern.path) else { continue };
            // What the rest of a provider is for stands there.
            if !own && before.is_rest(&request) && after.is_rest(&request) {
                continue;
            }
            let found = of_request(&columns, &before, &after, &request);
            // Of the methods that nobody named, those that differ are shown.
            if found.is_empty() || (!own && said.contains(&found)) {
                continue;
            }
            said.push(found.clone());
            let Pattern { shown, provider, host, .. } = &pattern;
            all.push((format!("{method} {shown} of {provider} ({host})"), found));
        }
    }
    all.extend(of_providers(old, new));
    all
}

fn of_request(columns: &[Column], old: &Version<'_>, new: &Version<'_>, request: &Request<()>) -> Vec<Change> {
    let mut changes = of_cells(columns, &old.cells(columns, request), &new.cells(columns, request));
    let (before, after) = (old.plan(request), new.plan(request));
    let (old_whose, new_whose) = (old.whose(request), new.whose(request));
    if old_whose != new_whose {
        changes.push(Change { way: Way::Other, text: format!("now {new_whose}; before: {old_whose}") });
    }
    if let (Some(before), Some(after)) = (old.side(request, &before), new.side(request, &after)) {
        changes.extend(of_settings(&before, &after));
    }
    changes.sort();
    changes
}

/// What is said of a provider itself.
fn of_providers(old: &Loaded, new: &Loaded) -> Vec<(String, Vec<Change>)> {
    let mut found = Vec::new();
    let other = |text: String| Change { way: Way::Other, text };
    for provider in &old.resolved.providers {
        let name = &provider.name.value;
        let mut changes = Vec::new();
        match named(new, name) {
            None => changes.push(other("the provider is gone".to_owned())),
            Some(after) => {
                let (before, after) = (source(provider), source(after));
                if before != after {
                    changes.push(other(format!("source: {after}; before: {before}")));
                }
            }
        }
        if !changes.is_empty() {
            found.push((name.clone(), changes));
        }
    }
    let come = new.resolved.providers.iter().filter(|provider| named(old, &provider.name.value).is_none());
    found.extend(come.map(|provider| (provider.name.value.clone(), vec![other("the provider is new".to_owned())])));
    found
}

fn source(provider: &Provider) -> String {
    let Some(source) = &provider.source else { return "none".to_owned() };
    let url = source.url.as_ref().map_or("", |url| url.value.as_str());
    let reviewed = source.reviewed.as_ref().map_or(String::new(), |day| format!(", reviewed {}", day.value.0));
    let owner = source.owner.as_ref().map_or("", |owner| owner.value.as_str());
    format!("{}{reviewed}, {owner}", crate::redact::Redacted(url))
}

fn human(changes: &Changes, terminal: &Terminal) -> String {
    if changes.is_empty() {
        return "no change in meaning\n".to_owned();
    }
    // What became less safe comes first.
    let mut blocks: Vec<_> = changes.iter().collect();
    blocks.sort_by_key(|(changes, _)| changes.first().map(|change| change.way));
    let mut out = String::new();
    for (changes, requests) in &blocks {
        requests.iter().for_each(|request| out.push_str(&format!("{}\n", terminal.bold(request))));
        for Change { way, text } in *changes {
            let way = match way {
                Way::LessSafe => terminal.bad(&format!("{:9}", way.as_str())),
                Way::Safer => terminal.good(&format!("{:9}", way.as_str())),
                Way::Other => format!("{:9}", way.as_str()),
            };
            out.push_str(&format!("  {way}  {text}\n"));
        }
    }
    let of = |way| changes.keys().flatten().filter(|change| change.way == way).count();
    let all = changes.keys().map(Vec::len).sum();
    let summary = format!("{}: {} less safe, {} safer", counted(all, "change"), of(Way::LessSafe), of(Way::Safer));
    out.push_str(&format!("{}\n", terminal.bold(&summary)));
    out
}

fn json(changes: &Changes) -> String {
    let changes = changes.iter().map(|(changes, requests)| {
        let changes = changes.iter().map(|change| {
            let way = change.way.as_str().replace(' ', "-");
            serde_json::json!({ "way": way, "text": change.text })
        });
        serde_json::json!({ "requests": requests, "changes": changes.collect::<Vec<_>>() })
    });
    format!("{:#}\n", serde_json::Value::Array(changes.collect()))
}
