//! Rules on answers that came, went or changed places.

use super::change::{Change, Way, change};
use crate::{
    cli::words,
    contract::{
        names::Means,
        settings::{Answer, Settings},
    },
};

/// What by its status alone a rule changes, the outcomes show as well.
pub(super) fn changes(old: &Settings, new: &Settings) -> Vec<Change> {
    let (before, after) = (Rule::all(old), Rule::all(new));
    let absent = |rule: &Rule<'_>, from: &[Rule<'_>]| !from.iter().any(|other| other.text == rule.text);
    let come = after.iter().filter(|rule| absent(rule, &before)).map(|rule| {
        let way = if rule.passes { Way::LessSafe } else { Way::Safer };
        change(way, format!("a new rule on answers: {}", rule.text))
    });
    let gone = before.iter().filter(|rule| absent(rule, &after)).map(|rule| {
        // What was final is so no longer, or a wait is not heeded.
        let way = if !rule.passes || rule.answer.wait.is_some() { Way::LessSafe } else { Way::Safer };
        change(way, format!("a rule on answers is gone: {}", rule.text))
    });
    come.chain(gone).chain(order(&before, &after)).collect()
}

struct Rule<'a> {
    text: String,
    /// Whether what it matches may be repeated.
    passes: bool,
    answer: &'a Answer,
}

impl<'a> Rule<'a> {
    fn all(settings: &'a Settings) -> Vec<Self> {
        let rules = settings.answer.iter().flat_map(|answers| &answers.value);
        let passes = |answer: &Answer| matches!(answer.means.as_deref(), Some(Means::Transient | Means::Rejected));
        rules.map(|rule| Rule { text: words::rule(rule), passes: passes(rule), answer: rule }).collect()
    }

    /// Whether some status is both rules'; one that names none is for every one.
    fn meets(&self, other: &Rule<'_>) -> bool {
        let (own, others) = (statuses(self.answer), statuses(other.answer));
        own.is_empty() || others.is_empty() || own.iter().any(|status| others.contains(status))
    }

    /// Whether `self`, tried first, hides what makes `other` the more careful: that it is final, or waits.
    fn hides(&self, other: &Rule<'_>) -> bool {
        self.passes && (!other.passes || other.answer.wait.is_some()) && self.meets(other)
    }
}

fn statuses(rule: &Answer) -> Vec<u16> {
    let statuses = rule.when.as_ref().and_then(|when| when.status.as_ref());
    statuses.iter().flat_map(|all| all.iter()).map(|status| status.value.0).collect()
}

/// How many pairs are compared: enough for any contract that people read.
const PAIRS: usize = 100_000;

/// The first match wins: what stands behind another now is not asked where that one matches.
fn order(before: &[Rule<'_>], after: &[Rule<'_>]) -> Vec<Change> {
    let place = |rule: &Rule<'_>| before.iter().position(|other| other.text == rule.text);
    let kept: Vec<(usize, &Rule<'_>)> = after.iter().filter_map(|rule| Some((place(rule)?, rule))).collect();
    if kept.is_sorted_by_key(|(place, _)| *place) {
        return Vec::new();
    }
    let pairs = kept.iter().enumerate().flat_map(|(at, first)| kept[at + 1..].iter().map(move |then| (first, then)));
    let turned = pairs.take(PAIRS).filter(|((first, _), (then, _))| first > then);
    let hidden = turned.filter(|((_, first), (_, then))| first.hides(then));
    let mut changes: Vec<Change> = hidden
        .map(|((_, first), (_, then))| change(Way::LessSafe, format!("{} is tried before {}", first.text, then.text)))
        .collect();
    if changes.is_empty() {
        changes.push(change(Way::Other, "rules on answers are tried in another order"));
    }
    changes
}
