//! `redial deps`

mod known;
mod lock;

use std::collections::BTreeMap;

use super::{
    End,
    arguments::{Deps, Shape},
    input,
    terminal::Terminal,
};
use crate::contract::{Groups, Loaded};
use known::{KNOWN, Known};
use lock::Lock;

/// A crate of the tree that retries.
struct Found {
    known: &'static Known,
    version: String,
    /// From a member of the workspace to it.
    way: Vec<String>,
    declared: Declared,
}

/// What the contracts say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Declared {
    /// No contract was given.
    Unasked,
    /// It is on no provider's path, as the command was told.
    Excepted,
    /// By these providers, each with the attempts that it states.
    By(BTreeMap<String, u32>),
    Nowhere,
}

pub(super) fn run(command: &Deps, terminal: &Terminal) -> End {
    match found(command, terminal) {
        Ok(found) => {
            terminal.out(&match command.format {
                Shape::Human => human(&found, command, terminal),
                Shape::Json => json(&found),
            });
            if found.iter().any(|found| found.declared == Declared::Nowhere) { End::Broken } else { End::Kept }
        }
        Err(end) => end,
    }
}

fn found(command: &Deps, terminal: &Terminal) -> Result<Vec<Found>, End> {
    let lock = Lock::read(&command.lock).map_err(|message| input::unreadable(&message, terminal))?;
    let loaded = contracts(command, terminal)?;
    if let Some(unknown) = command.except.iter().find(|name| !KNOWN.iter().any(|known| known.name == **name)) {
        let names = KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
        let message = format!("--except {unknown}: no crate that is known to retry; these are {names}");
        return Err(input::unreadable(&message, terminal));
    }
    let from = lock.brought_by();
    let mut found = Vec::new();
    for (number, package) in lock.packages().iter().enumerate() {
        let known = KNOWN.iter().find(|known| known.name == package.name && package.numbers() >= known.since);
        let Some(known) = known else { continue };
        let mut way = vec![package.name.clone()];
        let mut at = number;
        while let Some(before) = from[at] {
            way.push(lock.packages()[before].name.clone());
            at = before;
        }
        way.reverse();
        let declared = match &loaded {
            _ if command.except.iter().any(|name| name == known.name) => Declared::Excepted,
            None => Declared::Unasked,
            Some(loaded) => declared(known, loaded),
        };
        found.push(Found { known, version: package.version.clone(), way, declared });
    }
    found.sort_by(|one, other| (one.known.name, &one.version).cmp(&(other.known.name, &other.version)));
    Ok(found)
}

fn contracts(command: &Deps, terminal: &Terminal) -> Result<Option<Loaded>, End> {
    if command.contract.is_empty() {
        return Ok(None);
    }
    let mut builder = crate::contract::Contract::builder();
    for path in &command.contract {
        builder = input::add(builder, path).map_err(|message| input::unreadable(&message, terminal))?;
    }
    if let Some(env) = &command.env {
        builder = builder.env(env);
    }
    let loaded = builder.load_with(Groups::default()).map_err(|error| {
        terminal.err(&format!("{error}\n"));
        End::of(&error)
    })?;
    Ok(Some(loaded))
}

/// Which providers say that it retries, or that it is switched off.
fn declared(known: &Known, loaded: &Loaded) -> Declared {
    let mut by = BTreeMap::new();
    for provider in &loaded.resolved.providers {
        let settings = provider.operations.iter().map(|operation| &operation.settings).chain([&provider.settings]);
        let others = settings.flat_map(|settings| settings.elsewhere.iter().flat_map(|list| &list.value));
        for other in others {
            let named = other.value.by.as_ref().is_some_and(|by| names(&by.value, known));
            if let (true, Some(attempts)) = (named, &other.value.attempts) {
                let most: &mut u32 = by.entry(provider.name.value.clone()).or_default();
                *most = attempts.value.max(*most);
            }
        }
    }
    if by.is_empty() { Declared::Nowhere } else { Declared::By(by) }
}

/// Whether a contract's words name this crate: as one of them, whole.
fn names(by: &str, known: &Known) -> bool {
    let by = by.to_ascii_lowercase().replace('_', "-");
    let words = by.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let known: Vec<String> = known.also.iter().chain([&known.name]).map(|name| name.replace('_', "-")).collect();
    words.into_iter().any(|word| known.iter().any(|name| name == word))
}

fn human(found: &[Found], command: &Deps, terminal: &Terminal) -> String {
    if found.is_empty() {
        return format!("no crate in `{}` is known to retry by itself\n", command.lock.display());
    }
    let mut out = String::new();
    for Found { known, version, way, declared } in found {
        let name = format!("{} {}", known.name, crate::redact::plain(version));
        let state = match declared {
            Declared::Unasked => String::new(),
            Declared::Excepted => terminal.dim(": on no provider's path"),
            Declared::Nowhere => terminal.bad(": not declared (S13)"),
            Declared::By(by) => {
                let by = by.iter().map(|(provider, attempts)| match attempts {
                    1 => format!("switched off for {provider}"),
                    attempts => format!("{attempts} attempts, for {provider}"),
                });
                terminal.good(&format!(": {}", by.collect::<Vec<_>>().join("; ")))
            }
        };
        let place = known.place.as_str();
        out.push_str(&format!("{}{state}\n  {}\n", terminal.bold(&name), known.what));
        out.push_str(&format!("  by way of  {}\n", way.join(" > ")));
        if *declared == Declared::Nowhere || *declared == Declared::Unasked {
            let attempts = known.attempts.map_or("N".to_owned(), |attempts| attempts.to_string());
            out.push_str(&format!(
                "  declare    elsewhere = [{{ where = \"{place}\", by = \"{}\", attempts = {attempts} }}]\n",
                known.name
            ));
            out.push_str(&format!("  switch off {}; then attempts = 1\n", known.off));
        }
        out.push_str(&format!("  source     {}\n", known.source));
    }
    let open = found.iter().filter(|found| found.declared == Declared::Nowhere).count();
    let counted = super::check::counted(found.len(), "crate");
    let summary = match command.contract.is_empty() {
        true => format!("{counted} that retry by themselves; --contract says whether a contract declares them"),
        false => format!("{counted} that retry by themselves: {open} not declared"),
    };
    out.push_str(&format!("{}\n", terminal.bold(&summary)));
    out
}

fn json(found: &[Found]) -> String {
    let found = found.iter().map(|Found { known, version, way, declared }| {
        let (state, by) = match declared {
            Declared::Unasked => ("unasked", None),
            Declared::Excepted => ("excepted", None),
            Declared::Nowhere => ("undeclared", None),
            Declared::By(by) => ("declared", Some(by)),
        };
        serde_json::json!({
            "crate": known.name,
            "version": version,
            "way": way,
            "where": known.place.as_str(),
            "attempts": known.attempts,
            "what": known.what,
            "off": known.off,
            "source": known.source,
            "state": state,
            "attempts_by_provider": by,
        })
    });
    format!("{:#}\n", serde_json::Value::Array(found.collect()))
}
