//! What counts as evidence that a repeat is safe (S7): each header or parameter more makes more requests repeated.

use std::collections::BTreeSet;

use super::change::{Change, Way, change};
use crate::contract::{duration::shown, settings::Settings};

/// Preconditions that came or went. What the method or a statement changes, the outcomes show.
pub(super) fn changes(old: &Settings, new: &Settings) -> Vec<Change> {
    let (before, after) = (preconditions(old), preconditions(new));
    let come = after.difference(&before).map(|what| change(Way::LessSafe, format!("now evidence: {what}")));
    let gone = before.difference(&after).map(|what| change(Way::Safer, format!("no longer evidence: {what}")));
    let mut changes: Vec<Change> = come.chain(gone).collect();
    if let (Some(before), Some(after)) = (stated(old), stated(new)) {
        if before != after {
            changes.push(change(Way::Other, format!("why a repeat is safe: {after}; before: {before}")));
        }
    }
    changes
}

fn preconditions(settings: &Settings) -> BTreeSet<String> {
    let idempotent = settings.idempotent.as_ref();
    let headers = idempotent.and_then(|idempotent| idempotent.headers.as_ref()).into_iter().flat_map(|all| &all.value);
    let headers = headers.map(|header| format!("the header `{}`", header.value.0));
    let query = idempotent.and_then(|idempotent| idempotent.query.as_ref()).into_iter().flat_map(|all| &all.value);
    headers.chain(query.map(|name| format!("the query parameter `{}`", name.value))).collect()
}

fn stated(settings: &Settings) -> Option<&str> {
    Some(settings.idempotent.as_ref()?.stated.as_ref()?.value.as_str())
}

/// Requests that had no key may have one by another header. Where answers are replayed, what was answered is not
/// repeated.
pub(super) fn of_key(old: &Settings, new: &Settings) -> Way {
    if header(old) != header(new) { Way::LessSafe } else { Way::of(false, replayed(old), replayed(new)) }
}

pub(super) fn key(settings: &Settings) -> String {
    let valid_for = settings.key.as_ref().and_then(|key| key.valid_for.as_ref());
    let valid_for = valid_for.map_or(String::new(), |time| format!(", valid for {}", shown(time.value.0)));
    let replays = if replayed(settings) { ", replays answers" } else { "" };
    format!("`{}`{valid_for}{replays}", header(settings))
}

fn header(settings: &Settings) -> &str {
    let header = settings.key.as_ref().and_then(|key| key.header.as_ref());
    header.map_or("idempotency-key", |header| header.value.0.as_str())
}

fn replayed(settings: &Settings) -> bool {
    settings.key.as_ref().and_then(|key| key.replays.as_ref()).is_some_and(|replays| replays.value)
}
