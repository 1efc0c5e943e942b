//! `redial diff`

mod change;

use std::collections::BTreeMap;

use http::{Method, Request};

use super::{
    End,
    arguments::{Diff, Shape, Whole},
    check::counted,
    index::Index,
    input,
    matrix::{self, Cell, Column},
    sample,
    terminal::Terminal,
};
use crate::{
    Plan, Policy, RequestHead,
    contract::{Loaded, resolve::Provider, settings::Settings},
    policy::{Backoff, budget::BudgetSetting},
};
use change::{Change, Way, of_cells, of_settings};

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
    fn side<'b>(&'b self, plan: &'b Plan) -> Option<Side<'b>>
    where
        'a: 'b,
    {
        let (_, operation) = self.index.of(plan)?;
        let (backoff, budget) = (&plan.operation.backoff, plan.operation.budget.setting());
        Some(Side { settings: &operation.settings, backoff, budget })
    }

    fn whose(&self, plan: &Plan) -> String {
        match self.index.of(plan) {
            Some((provider, operation)) => format!("`{} {}`", provider.name.value, operation.name.value),
            None => "no provider's, sent once".to_owned(),
        }
    }
}

/// What changes, and for which requests.
type Changes = BTreeMap<Vec<Change>, Vec<String>>;

pub(super) fn run(command: &Diff, terminal: &Terminal) -> End {
    let load = |file: &String| {
        let whole = Whole { file: file.clone(), env: command.env.clone() };
        input::loaded(&whole, terminal)
    };
    let (old, new) = match (load(&command.old), load(&command.new)) {
        (Ok(old), Ok(new)) => (old, new),
        // What cannot be read comes before what is broken.
        (Err(one), Err(other)) => return if one == End::Unreadable { one } else { other },
        (Err(end), _) | (_, Err(end)) => return end,
    };
    let changes = changes(&old, &new);
    terminal.out(&match command.format {
        Shape::Human => human(&changes, terminal),
        Shape::Json => json(&changes),
    });
    let less_safe = changes.keys().flatten().any(|change| change.way == Way::LessSafe);
    if less_safe { End::Broken } else { End::Kept }
}

fn changes(old: &Loaded, new: &Loaded) -> Changes {
    let columns = matrix::columns(&[old, new]);
    let (before, after) =
        (Version { loaded: old, index: Index::new(old) }, Version { loaded: new, index: Index::new(new) });
    let mut changes = Changes::new();
    for (name, request) in requests(old, new) {
        let found = of_request(&columns, &before, &after, &request);
        if !found.is_empty() {
            changes.entry(found).or_default().push(name);
        }
    }
    for (name, found) in of_providers(old, new) {
        changes.entry(found).or_default().push(name);
    }
    changes
}

/// One request for each pattern of either contract, and how it is called.
fn requests(old: &Loaded, new: &Loaded) -> Vec<(String, Request<()>)> {
    let mut found: Vec<(String, Request<()>)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (one, other) in [(old, new), (new, old)] {
        for provider in &one.resolved.providers {
            let same = named(other, &provider.name.value);
            for host in sample::telling_hosts(provider, same) {
                for operation in &provider.operations {
                    for (method, path, shown) in sample::patterns(operation) {
                        let methods = method.map_or_else(|| vec![Method::GET, Method::POST], |method| vec![method]);
                        for method in methods {
                            let Some(request) = sample::request(host, &method, &path) else { continue };
                            if seen.insert((method.clone(), request.uri().clone())) {
                                found.push((format!("{method} {shown} of {} ({host})", provider.name.value), request));
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

fn named<'a>(loaded: &'a Loaded, name: &str) -> Option<&'a Provider> {
    loaded.resolved.providers.iter().find(|provider| provider.name.value == name)
}

fn of_request(columns: &[Column], old: &Version<'_>, new: &Version<'_>, request: &Request<()>) -> Vec<Change> {
    let mut changes = of_cells(columns, &old.cells(columns, request), &new.cells(columns, request));
    let (before, after) = (old.plan(request), new.plan(request));
    let (old_whose, new_whose) = (old.whose(&before), new.whose(&after));
    if old_whose != new_whose {
        changes.push(Change { way: Way::Other, text: format!("now {new_whose}; before: {old_whose}") });
    }
    if let (Some(before), Some(after)) = (old.side(&before), new.side(&after)) {
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
