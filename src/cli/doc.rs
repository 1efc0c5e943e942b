//! `redial doc`

use std::path::Path;

use super::{End, arguments::Doc, input, lines, terminal::Terminal, words};
use crate::{
    contract::{
        Loaded,
        checklist::checklist,
        duration::shown,
        resolve::{Operation, Provider},
        settings::Settings,
    },
    redact::Redacted,
};

/// The largest page to compare with.
const LARGEST: u64 = 16 * 1024 * 1024;

const HEAD: &str = "<!-- Written by `redial doc`. Change the contract, and write it again. -->
# What is repeated, and what is not

A call is repeated only after what is listed here, only where a repeat is safe, and never earlier than the provider
says. Times and numbers of requests are the worst case, waits included, up to the answer's head. An answer that is
rejected was not processed: its repeat needs no other reason. One to verify is final: look what became of the request
before you repeat it.
";

pub(super) fn run(command: &Doc, terminal: &Terminal) -> End {
    let loaded = match input::loaded(&command.contract, terminal) {
        Ok(loaded) => loaded,
        Err(end) => return end,
    };
    let page = page(&loaded);
    match (command.check, &command.page) {
        (true, Some(path)) => checked(&page, path, terminal),
        _ => {
            terminal.out(&page);
            End::Kept
        }
    }
}

fn checked(page: &str, path: &Path, terminal: &Terminal) -> End {
    let there = match input::text(path, LARGEST) {
        Ok(there) => there,
        Err(message) => return input::unreadable(&message, terminal),
    };
    let changed = lines::changed(&there, page);
    if changed.is_empty() {
        return End::Kept;
    }
    let mut out = format!("`{}` is not what the contract says:\n", path.display());
    for line in &changed {
        let line = if line.starts_with('-') { terminal.bad(line) } else { terminal.good(line) };
        out.push_str(&format!("{line}\n"));
    }
    out.push_str("write it again: redial doc FILE > PAGE\n");
    terminal.out(&out);
    End::Broken
}

fn page(loaded: &Loaded) -> String {
    let mut out = HEAD.to_owned();
    for provider in &loaded.resolved.providers {
        section(&mut out, provider);
    }
    out
}

fn section(out: &mut String, provider: &Provider) {
    out.push_str(&format!("\n## {}\n\n", plain(&provider.name.value)));
    let hosts = provider.hosts.iter().map(|host| code(&host.value)).collect::<Vec<_>>().join(", ");
    out.push_str(&format!("Hosts: {hosts}. {}\n\n", source(provider)));
    out.push_str("| operation | requests | time | requests at most | instead |\n| --- | --- | --- | --- | --- |\n");
    for operation in &provider.operations {
        row(out, provider, operation);
    }
    if !provider.operations.iter().any(|operation| operation.is_rest) {
        out.push_str("\nAny other request is sent once.\n");
    }
    out.push_str("\nFor every operation, unless it says otherwise:\n\n");
    let general = facts(&provider.settings, 0);
    general.iter().for_each(|(name, text)| bullet(out, name, text));
    for operation in provider.operations.iter().filter(|operation| !operation.is_rest) {
        out.push_str(&format!("\n### {}\n\n", plain(&operation.name.value)));
        if let Some(never) = &operation.settings.never {
            out.push_str(&format!("- **Never repeated**: {}\n", plain(&never.value)));
            continue;
        }
        // The second question of the checklist.
        let safe = checklist(provider, operation).into_iter().nth(1).map_or(String::new(), |item| item.why);
        out.push_str(&format!("- **Safe to repeat**: {}\n", plain(&safe)));
        // Its own rules are tried first; the provider's follow, and stand above.
        let own = facts(&operation.settings, rules(&provider.settings));
        for ((name, text), (_, general)) in own.iter().zip(&general) {
            match (*name == RULES, text != NOTHING) {
                (true, true) => bullet(out, "Before these rules", text),
                (false, _) if text != general => bullet(out, name, text),
                _ => {}
            }
        }
    }
}

fn bullet(out: &mut String, name: &str, text: &str) {
    // A list begins on a line of its own.
    let gap = if text.starts_with('\n') { "" } else { " " };
    out.push_str(&format!("- **{name}**:{gap}{text}\n"));
}

/// Where the rules are from.
fn source(provider: &Provider) -> String {
    let Some(source) = &provider.source else { return "Nowhere documented.".to_owned() };
    let url = source.url.as_ref().map_or("", |url| url.value.as_str());
    // A link, unless it has what no page needs.
    let url = match url.contains('@') || url.contains(|c: char| c.is_whitespace() || c == '<' || c == '>') {
        true => code(&Redacted(url).to_string()),
        false => format!("<{url}>"),
    };
    let reviewed = source.reviewed.as_ref().map_or(String::new(), |day| format!(", last read on {}", day.value.0));
    let owner = source.owner.as_ref().map_or(String::new(), |owner| format!(", by {}", plain(&owner.value)));
    format!("Source: {url}{reviewed}{owner}.")
}

fn row(out: &mut String, provider: &Provider, operation: &Operation) {
    let settings = &operation.settings;
    let matched = if operation.is_rest {
        "every other".to_owned()
    } else {
        words::matched(provider, operation).iter().map(|text| code(text)).collect::<Vec<_>>().join("<br>")
    };
    let fallback = settings.fallback.as_ref().map_or("not stated", |fallback| fallback.value.as_str());
    out.push_str(&format!(
        "| {} | {matched} | {} | {} | {} |\n",
        plain(&operation.name.value),
        longest(settings),
        requests(settings),
        plain(fallback)
    ));
}

/// The whole call, or its only attempt.
fn longest(settings: &Settings) -> String {
    let timeouts = settings.timeouts.as_ref();
    let attempt = timeouts.and_then(|timeouts| timeouts.attempt.as_ref()).map(|time| time.value.0);
    let total = timeouts.and_then(|timeouts| timeouts.total.as_ref()).map(|time| time.value.0);
    let longest = match (attempt, total) {
        (Some(attempt), Some(total)) if words::attempts(settings) == 1 => Some(attempt.min(total)),
        (attempt, total) => total.or(attempt),
    };
    longest.map_or("not stated".to_owned(), shown)
}

fn requests(settings: &Settings) -> String {
    let (own, all) = (u64::from(words::attempts(settings)), words::requests(settings));
    if own == all { own.to_string() } else { format!("{all}: {own}, times what else retries") }
}

const RULES: &str = "Told by more than the status";
const NOTHING: &str = "nothing";

fn rules(settings: &Settings) -> usize {
    settings.answer.as_ref().map_or(0, |answers| answers.value.len())
}

/// What can differ between operations: a name and a text each, in one order. So many of the last rules are left out.
fn facts(settings: &Settings, inherited: usize) -> Vec<(&'static str, String)> {
    let timeouts = settings.timeouts.as_ref();
    let time = |time: Option<&crate::contract::place::At<crate::contract::scalar::Time>>| {
        time.map_or("not stated".to_owned(), |time| shown(time.value.0))
    };
    let list =
        |list: Option<String>| list.filter(|text| !text.is_empty()).unwrap_or_else(|| "nothing listed".to_owned());
    let own = rules(settings).saturating_sub(inherited);
    let rules = settings.answer.iter().flat_map(|answers| &answers.value).take(own);
    let rules = rules.map(|rule| {
        let basis = rule.basis.as_ref().map_or("project", |basis| basis.as_str());
        let because = rule.because.as_ref().map_or(String::new(), |because| format!("; {}", plain(&because.value)));
        format!("\n  - {} ({basis}{because})", prose(&words::rule(rule)))
    });
    let rules = rules.collect::<String>();
    vec![
        ("Repeated after", list(settings.transient.as_ref().map(|list| words::failures(list)))),
        (
            "Never after",
            format!(
                "{}; nor after what nobody lists",
                list(settings.business.as_ref().map(|list| words::failures(list)))
            ),
        ),
        (RULES, if rules.is_empty() { NOTHING.to_owned() } else { rules }),
        (
            "Attempts",
            format!(
                "{}, of {} each, within {}",
                words::attempts(settings),
                time(timeouts.and_then(|timeouts| timeouts.attempt.as_ref())),
                time(timeouts.and_then(|timeouts| timeouts.total.as_ref()))
            ),
        ),
        ("Waits", prose(&words::backoff(settings))),
        ("The provider's word", prose(&words::server(settings))),
        ("When told to wait", words::hold(settings).to_owned()),
        ("Budget", prose(&words::budget(settings))),
        ("What else retries", plain(&words::elsewhere(settings))),
    ]
}

/// A foreign text in a line of Markdown: none of its characters means anything.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Words of ours with foreign texts in backticks: what stands outside of these is plain.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { plain(part) } else { code(part) }).collect()
}

/// A foreign text as code.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}
