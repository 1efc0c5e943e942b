//! The rules that a policy could be built against, but a contract has to keep; and what is allowed, but probably not
//! meant.

use std::collections::HashMap;

use super::{
    duration::shown,
    locate::named,
    lower::Lowered,
    overlap,
    place::{At, Level, Place},
    problem::{Kind, Problem},
    resolve::{Operation, Provider, Resolved},
    settings::{BodyTest, Elsewhere, Failures},
};

/// The rules.
pub(super) fn rules(resolved: &Resolved, problems: &mut Vec<Problem>) {
    for provider in &resolved.providers {
        let mut found = Vec::new();
        source(provider, &mut found);
        problems.extend(found.into_iter().map(|problem| problem.about(&provider.name, "")));
        for operation in &provider.operations {
            let mut found = Vec::new();
            statement(operation, &mut found);
            contradictions(operation, &mut found);
            key(operation, &mut found);
            elsewhere(operation, &mut found);
            fallback(operation, &mut found);
            problems.extend(found.into_iter().map(|problem| problem.about(&provider.name, &operation.name)));
        }
    }
}

/// S6: the document has a source, a date and an owner.
fn source(provider: &Provider, problems: &mut Vec<Problem>) {
    let place = provider.source.as_ref().map_or(provider.name.place, |source| source.place);
    let source = provider.source.as_ref().map(|source| &source.value);
    let missing = [
        ("url", source.is_none_or(|source| source.url.is_none())),
        ("reviewed", source.is_none_or(|source| source.reviewed.is_none())),
        ("owner", source.is_none_or(|source| source.owner.is_none())),
    ];
    let missing: Vec<&str> = missing.into_iter().filter_map(|(name, missing)| missing.then_some(name)).collect();
    if !missing.is_empty() {
        let message = format!("the contract of `{}` lacks {}", provider.name.value, super::read::listed(&missing));
        let help = "write `contract = { url = \"https://…\", reviewed = 2026-11-30, owner = \"team\" }`";
        problems.push(
            Problem::owed("S6", place, message)
                .label("documented where, when, by whom?")
                .missing(missing)
                .missing(["contract"])
                .help(help),
        );
    }
    if let Some(url) = source.and_then(|source| source.url.as_ref()) {
        let authority = url.split_once("//").map_or("", |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or("");
        if authority.contains('@') {
            let problem = Problem::owed("S6", url.place, "the contract's `url` has a user or a password in it");
            problems.push(
                problem.label("a secret?").help("leave it out: this file is read by many, and change the password"),
            );
        }
    }
}

/// S7: a statement is about one operation.
fn statement(operation: &Operation, problems: &mut Vec<Problem>) {
    let stated = operation.settings.idempotent.as_ref().and_then(|idempotent| idempotent.stated.as_ref());
    if let Some(stated) = stated.filter(|stated| matches!(stated.place.level, Level::Provider | Level::Defaults)) {
        let problem =
            Problem::owed("S7", stated.place, "one statement cannot say of every operation that a repeat is safe");
        problems.push(problem.label("for which one?").help("state it for each operation that it is true of"));
    }
}

/// S5: what passes is not final, and what is final does not pass.
fn contradictions(operation: &Operation, problems: &mut Vec<Problem>) {
    let settings = &operation.settings;
    if let (Some(transient), Some(business)) = (&settings.transient, &settings.business) {
        let (Failures { status, faults, grpc }, other) = (&business.value, &transient.value);
        both(status, &other.status, |status| status.0.to_string(), problems);
        both(faults, &other.faults, |fault| fault.as_str().to_owned(), problems);
        both(grpc, &other.grpc, |code| code.name().as_str().to_owned(), problems);
    }
    for answer in settings.answer.iter().flat_map(|answers| &answers.value) {
        let body = answer.when.as_ref().and_then(|when| when.body.as_ref());
        let statuses = answer.when.as_ref().and_then(|when| when.status.as_ref());
        let success = statuses.into_iter().flat_map(|statuses| statuses.iter()).find(|status| status.value.0 < 400);
        if let (Some(At { value: BodyTest { .. }, place }), Some(success)) = (body, success) {
            let message = format!("the body of a {} is not looked into", success.value.0);
            let problem = Problem::owed("S6", success.place, message).label("not an error");
            problems.push(
                problem.other(*place, "looked into").help("only error answers are: leave out the status, or the body"),
            );
        }
    }
}

type List<T> = Option<At<Vec<At<T>>>>;

fn both<T>(business: &List<T>, transient: &List<T>, text: impl Fn(&T) -> String, problems: &mut Vec<Problem>) {
    let (Some(business), Some(transient)) = (business, transient) else { return };
    let mut passes: HashMap<String, Place> = HashMap::new();
    for other in &transient.value {
        passes.entry(text(&other.value)).or_insert(other.place);
    }
    for one in &business.value {
        let name = text(&one.value);
        if let Some(other) = passes.get(&name) {
            let message = format!("{name} is listed as business and as transient");
            let problem = Problem::owed("S5", one.place, message).label("final here");
            problems.push(problem.other(*other, "passes here").help("leave it out of one of the lists"));
        }
    }
}

/// S7: a key that the operation relies on is declared, and lives as long as the call.
fn key(operation: &Operation, problems: &mut Vec<Problem>) {
    let settings = &operation.settings;
    let relied_on = settings.idempotent.as_ref().and_then(|idempotent| idempotent.key.as_ref()).filter(|key| key.value);
    if let (Some(relied_on), None) = (relied_on, &settings.key) {
        let problem =
            Problem::owed("S7", relied_on.place, format!("{} relies on a key that is not declared", named(operation)));
        problems.push(
            problem.label("which header?").help("write `key = { header = \"Idempotency-Key\", valid_for = \"24h\" }`"),
        );
    }
    let valid_for = settings.key.as_ref().and_then(|key| key.valid_for.as_ref());
    let total = settings.timeouts.as_ref().and_then(|timeouts| timeouts.total.as_ref());
    if let (Some(valid_for), Some(total)) = (valid_for, total) {
        if valid_for.value < total.value {
            let message = format!(
                "the key is valid for {}, and a call may take {}",
                shown(valid_for.value.0),
                shown(total.value.0)
            );
            let problem = Problem::owed("S7", valid_for.place, message).label("too short");
            problems.push(
                problem.other(total.place, "the call").help("shorten `total`: past its time a key recognises nothing"),
            );
        }
    }
}

/// S13: what else retries says how often.
fn elsewhere(operation: &Operation, problems: &mut Vec<Problem>) {
    for other in operation.settings.elsewhere.iter().flat_map(|list| &list.value) {
        let Elsewhere { place, by, attempts } = &other.value;
        if place.is_none() || by.is_none() || attempts.as_ref().is_none_or(|attempts| attempts.value == 0) {
            let problem = Problem::owed("S13", other.place, "what else retries is not said in full");
            let help =
                "write `{ where = \"sdk\", by = \"octocrab\", attempts = 3 }`; 1 attempt says that it is switched off";
            problems.push(problem.label("where, by what, and how many attempts?").help(help));
        }
    }
}

/// S19: what instead.
fn fallback(operation: &Operation, problems: &mut Vec<Problem>) {
    if operation.settings.fallback.is_none() {
        let message = format!("it is not said what happens instead when {} has failed", named(operation));
        let problem =
            Problem::owed("S19", operation.name.place, message).label("`fallback` is missing").missing(["fallback"]);
        problems.push(problem.help("write `fallback = \"…\"`, or `fallback = \"none\"` where there is nothing"));
    }
}

/// What is allowed, but probably not meant. Nothing here depends on the day: a program must not fail, nor speak up, for
/// a date that has passed.
pub(super) fn warnings(resolved: &Resolved, lowered: Option<&Lowered>, problems: &mut Vec<Problem>) {
    for (at, provider) in resolved.providers.iter().enumerate() {
        for (number, operation) in provider.operations.iter().enumerate() {
            let mut found = Vec::new();
            if let Some(policy) = lowered.and_then(|lowered| lowered.policies.get(at)?.get(number)?.as_ref()) {
                found.extend(policy.warnings().iter().map(|warning| of_engine(operation, warning)));
            }
            problems.extend(found.into_iter().map(|problem| problem.about(&provider.name, &operation.name)));
        }
        undeclared(provider, problems);
        overlap::warn(provider, problems);
    }
}

/// What the engine warns of, at its place.
fn of_engine(operation: &Operation, warning: &str) -> Problem {
    let settings = &operation.settings;
    let message = format!("{}: {warning}", named(operation));
    if warning.contains("requests a call") {
        let place = settings.elsewhere.as_ref().map_or(operation.name.place, |elsewhere| elsewhere.place);
        let help = "switch all retries off but one: there is one retry to a path";
        return Problem::warning("S13", place, message).label("they multiply").help(help);
    }
    let place = settings.backoff.as_ref().map_or(operation.name.place, |backoff| backoff.place);
    let problem = Problem::warning("S8", place, message).label("these waits");
    let problem = problem.help("shorten the waits, make fewer attempts, or raise `total`");
    match settings.timeouts.as_ref().and_then(|timeouts| timeouts.total.as_ref()) {
        Some(total) => problem.other(total.place, "this total"),
        None => problem,
    }
}

/// Said once for a provider, however many of its operations do not say it.
fn undeclared(provider: &Provider, problems: &mut Vec<Problem>) {
    let silent = |operation: &Operation| operation.settings.elsewhere.is_none() && operation.settings.never.is_none();
    let Some(first) = provider.operations.iter().find(|operation| silent(operation)) else { return };
    let (place, whose) = match provider.settings.elsewhere {
        None => (provider.name.place, format!("the calls of `{}`", provider.name.value)),
        Some(_) => (first.name.place, named(first)),
    };
    let message = format!("it is not said whether anything else retries {whose}");
    let help =
        "write `elsewhere = []` where nothing does, or `elsewhere = [{ where = \"sdk\", by = \"…\", attempts = 3 }]`";
    let problem = Problem::warning("S13", place, message).label("`elsewhere` is missing").missing(["elsewhere"]);
    problems.push(problem.help(help).about(&provider.name, ""));
}

/// Takes away what is waived, until whenever. A waiver that is not whole is a problem; one for what cannot be built
/// waives nothing.
pub(super) fn waive(resolved: &Resolved, problems: &mut Vec<Problem>) {
    // What a waiver is for, and the number of the first that is for it.
    let mut whole: HashMap<(&str, Option<&str>, Option<&str>), usize> = HashMap::new();
    let mut used = vec![false; resolved.waivers.len()];
    let mut found = Vec::new();
    for (number, waiver) in resolved.waivers.iter().enumerate() {
        let (Some(rule), Some(_), Some(_)) = (&waiver.rule, &waiver.reason, &waiver.until) else {
            let problem = Problem::unreadable(waiver.place, "a waiver names its rule, its reason and its last day");
            let help = "write `rule = \"S6\"`, `reason = \"…\"` and `until = 2027-01-31`";
            found.push(problem.label("not whole").help(help));
            used[number] = true;
            continue;
        };
        let [provider, operation] =
            [&waiver.provider, &waiver.operation].map(|name| name.as_ref().map(|name| name.as_str()));
        whole.entry((rule.as_str(), provider, operation)).or_insert(number);
    }
    problems.retain(|problem| {
        let (Kind::Owed, Some(rule)) = (problem.kind, problem.rule) else { return true };
        let (provider, operation) = (problem.about.provider.as_str(), problem.about.operation.as_str());
        let wanted = [Some(provider), None]
            .into_iter()
            .flat_map(|provider| [Some(operation), None].into_iter().map(move |operation| (rule, provider, operation)));
        let waivers: Vec<usize> = wanted.filter_map(|wanted| whole.get(&wanted).copied()).collect();
        waivers.iter().for_each(|number| used[*number] = true);
        waivers.is_empty()
    });
    for (waiver, _) in resolved.waivers.iter().zip(used).filter(|(_, used)| !used) {
        let problem = Problem::warning("S18", waiver.place, "the waiver waives nothing").label("not needed");
        found.push(problem.help("leave it out: its rule is kept, or is one that cannot be waived"));
    }
    problems.extend(found);
}

/// What depends on the day: reviews that grow old, waivers that end.
#[cfg(feature = "cli")]
pub(crate) fn dates(resolved: &Resolved, today: jiff::civil::Date, max_age_days: i32) -> Vec<Problem> {
    let mut problems = Vec::new();
    let days_since = |day: jiff::civil::Date| day.until(today).map_or(0, |span| span.get_days());
    for provider in &resolved.providers {
        let reviewed = provider.source.as_ref().and_then(|source| source.reviewed.as_ref());
        let Some(reviewed) = reviewed else { continue };
        let age = days_since(reviewed.value.0);
        let problem = if age > max_age_days {
            let message = format!("the contract of `{}` was last reviewed {age} days ago", provider.name.value);
            let help = format!("read its source again and set `reviewed`: at most {max_age_days} days may pass");
            Problem::warning("S6", reviewed.place, message).label("too old").help(help)
        } else if age < 0 {
            let message = format!("the review of `{}` is in the future", provider.name.value);
            Problem::warning("S6", reviewed.place, message).label("not yet").help("set the day of the last review")
        } else {
            continue;
        };
        problems.push(problem.about(&provider.name, ""));
    }
    for waiver in &resolved.waivers {
        if let Some(until) = waiver.until.as_ref().filter(|until| until.value.0 < today) {
            let rule = waiver.rule.as_ref().map_or("", |rule| rule.value.as_str());
            let message = format!("the waiver of {rule} ended on {}", until.value.0);
            let problem = Problem::owed("S18", until.place, message);
            problems.push(problem.label("over").help("keep the rule now, or give the waiver a new day and its reason"));
        }
    }
    problems
}
