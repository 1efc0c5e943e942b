//! The eight questions that a reviewer of an external call asks, answered from the contract.

use super::{
    answers,
    duration::shown,
    names::JitterName,
    place::{At, Place},
    resolve::{Operation, Provider},
    routing,
};
use crate::policy::Evidence;

/// How a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// It does not arise: nothing is repeated.
    NotAsked,
    No,
}

/// A question, its answer, and the place in the contract that says so.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) question: &'static str,
    pub(crate) answer: Answer,
    pub(crate) why: String,
    pub(crate) place: Option<Place>,
}

/// The eight, in the order of the standard.
pub(crate) fn checklist(provider: &Provider, operation: &Operation) -> Vec<Item> {
    let mut items = vec![
        transient(operation),
        safe(operation),
        timeout(operation),
        explicit(provider, operation),
        backoff(operation),
        attempts(operation),
        one_retry(operation),
        observed(provider, operation),
    ];
    if let Some(never) = never(operation) {
        // What is never repeated raises none of the questions about repeating.
        for at in [0, 1, 3, 4] {
            items[at].answer = Answer::NotAsked;
            items[at].why = format!("never repeated: {}", never.value);
            items[at].place = Some(never.place);
        }
    }
    items
}

fn never(operation: &Operation) -> Option<At<String>> {
    let settings = &operation.settings;
    let once = settings.attempts.as_ref().filter(|attempts| attempts.max() == Some(1));
    settings.never.clone().or(once.map(|once| once.map(|_| "one attempt".to_owned())))
}

fn item(question: &'static str, found: Option<(String, Place)>, missing: &str) -> Item {
    match found {
        Some((why, place)) => Item { question, answer: Answer::Yes, why, place: Some(place) },
        None => Item { question, answer: Answer::No, why: missing.to_owned(), place: None },
    }
}

fn transient(operation: &Operation) -> Item {
    let written = operation.settings.transient.as_ref();
    let by_rule =
        operation.settings.answer.iter().flat_map(|answers| &answers.value).find(|answer| answers::passes(answer));
    let found = written.map(|written| {
        let statuses = written.status.iter().flat_map(|list| &list.value).map(|status| status.value.0.to_string());
        let faults = written.faults.iter().flat_map(|list| &list.value).map(|fault| fault.as_str().to_owned());
        let codes = written.grpc.iter().flat_map(|list| &list.value).map(|code| code.name().as_str().to_owned());
        (statuses.chain(faults).chain(codes).collect::<Vec<_>>().join(", "), written.place)
    });
    let found = found.or_else(|| by_rule.map(|rule| ("by rules on answers".to_owned(), rule.place)));
    item("Is this failure really transient?", found, "nothing is listed as transient")
}

fn safe(operation: &Operation) -> Item {
    let settings = &operation.settings;
    let idempotent = settings.idempotent.as_ref();
    let methods = routing::methods(operation);
    let by_method = idempotent.and_then(|idempotent| idempotent.method.as_ref()).is_none_or(|method| method.value);
    let stated = idempotent.and_then(|idempotent| idempotent.stated.as_ref());
    let key = idempotent.and_then(|idempotent| idempotent.key.as_ref()).filter(|key| key.value);
    let condition = idempotent.filter(|idempotent| idempotent.headers.is_some() || idempotent.query.is_some());
    let matched = operation.matches.first().map_or(operation.name.place, |text| text.place);
    let safe = methods.as_ref().filter(|methods| by_method && methods.iter().all(Evidence::by_method));
    let found = if let Some(safe) = safe {
        let names = safe.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ");
        (format!("{names}: idempotent by RFC 9110, 9.2.2"), matched)
    } else if let Some(stated) = stated {
        (format!("stated: {}", stated.value), stated.place)
    } else if let Some(key) = key {
        ("an idempotency key is always sent".to_owned(), key.place)
    } else if let Some(condition) = condition {
        ("repeated only where the request has its precondition".to_owned(), condition.place)
    } else {
        let when = match by_method {
            true if methods.is_none() => "with an idempotent method or a key",
            _ => "with a key",
        };
        (format!("repeated only {when}, or where the request was provably not processed"), matched)
    };
    item("Is repeating safe, idempotent above all?", Some(found), "")
}

fn timeout(operation: &Operation) -> Item {
    let timeouts = operation.settings.timeouts.as_ref();
    let found = timeouts.and_then(|timeouts| {
        let (attempt, total) = (timeouts.attempt.as_ref()?, timeouts.total.as_ref()?);
        Some((format!("{} an attempt, {} in all", shown(attempt.value.0), shown(total.value.0)), attempt.place))
    });
    item("Is the timeout defined first?", found, "no timeout")
}

fn explicit(provider: &Provider, operation: &Operation) -> Item {
    let settings = &operation.settings;
    let rules = settings.answer.as_ref().map_or(0, |answers| answers.value.len());
    let place = settings.transient.as_ref().map(|transient| transient.place);
    let place = place.or(settings.answer.as_ref().and_then(|answers| answers.value.first()).map(|first| first.place));
    let source = provider.source.as_ref().and_then(|source| source.url.as_ref());
    let from = source.map_or(String::new(), |url| format!(", from {}", crate::redact::Redacted(url)));
    let rules = match rules {
        0 => "by lists".to_owned(),
        1 => "by lists and 1 rule".to_owned(),
        rules => format!("by lists and {rules} rules"),
    };
    item(
        "Are the retryable statuses and errors explicit?",
        place.map(|place| (format!("{rules}{from}"), place)),
        "nothing is listed",
    )
}

fn backoff(operation: &Operation) -> Item {
    let found = operation.settings.backoff.as_ref().and_then(|backoff| {
        let (initial, max) = (backoff.initial.as_ref()?, backoff.max.as_ref()?);
        let jitter = backoff.jitter.as_deref().copied().unwrap_or(JitterName::Full);
        let why = format!("{} to {}, jitter {}", shown(initial.value.0), shown(max.value.0), jitter.as_str());
        Some((why, backoff.place))
    });
    item("Are there backoff and jitter?", found, "no backoff is stated")
}

fn attempts(operation: &Operation) -> Item {
    let question = "Are the attempts few?";
    if let Some(never) = &operation.settings.never {
        return item(question, Some((format!("1: {}", never.value), never.place)), "");
    }
    let found = operation.settings.attempts.as_ref().and_then(|attempts| {
        let reason = attempts.reason().map_or(String::new(), |reason| format!(": {}", reason.value));
        Some((format!("{}{reason}", attempts.max()?), attempts.place))
    });
    item(question, found, "it is not said how many")
}

fn one_retry(operation: &Operation) -> Item {
    let question = "Is there no second retry above or below?";
    let Some(elsewhere) = &operation.settings.elsewhere else {
        return item(question, None, "it is not said what else retries");
    };
    let worst = worst_case(operation);
    if worst > 1 {
        let why = format!("others make {worst} requests of each");
        return Item { question, answer: Answer::No, why, place: Some(elsewhere.place) };
    }
    let why = if elsewhere.value.is_empty() { "nothing else retries" } else { "what else could is switched off" };
    item(question, Some((why.to_owned(), elsewhere.place)), "")
}

/// How many requests what else retries makes of one.
fn worst_case(operation: &Operation) -> u64 {
    let others = operation.settings.elsewhere.iter().flat_map(|list| &list.value);
    let others = others.filter_map(|other| other.attempts.as_ref()).map(|attempts| u64::from(attempts.value.max(1)));
    others.fold(1, u64::saturating_mul)
}

fn observed(provider: &Provider, operation: &Operation) -> Item {
    let why = format!("events and metrics name it `{} {}`", provider.name.value, operation.name.value);
    item("Can attempts and the final result be observed?", Some((why, operation.name.place)), "")
}
