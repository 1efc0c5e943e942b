//! What changes for one request, and whether it became less safe.

use std::collections::BTreeMap;

use super::{Side, evidence, rules};
use crate::{
    cli::{
        matrix::{Cell, Column},
        words,
    },
    contract::{duration::shown, names::HoldName, settings::Settings},
    policy::{Backoff, Jitter, budget::BudgetSetting},
};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// It may be sent more often, sooner, or on weaker grounds.
    LessSafe,
    Safer,
    Other,
}

impl Way {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Way::LessSafe => "less safe",
            Way::Safer => "safer",
            Way::Other => "changed",
        }
    }

    pub(super) fn of<T: PartialOrd>(more_is_less_safe: bool, old: T, new: T) -> Self {
        if old == new {
            Way::Other
        } else if (new > old) == more_is_less_safe {
            Way::LessSafe
        } else {
            Way::Safer
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) way: Way,
    pub(super) text: String,
}

pub(super) fn change(way: Way, text: impl Into<String>) -> Change {
    Change { way, text: text.into() }
}

/// What became of which outcomes.
pub(super) fn of_cells(columns: &[Column], old: &[Cell], new: &[Cell]) -> Vec<Change> {
    let mut moved: BTreeMap<(Cell, Cell), Vec<String>> = BTreeMap::new();
    for ((column, old), new) in columns.iter().zip(old).zip(new).filter(|((_, old), new)| old != new) {
        moved.entry((*old, *new)).or_default().push(column.name());
    }
    let moved = moved.into_iter().map(|((old, new), columns)| {
        let (way, text) = in_words(old, new);
        change(way, format!("{text} after {}", columns.join(", ")))
    });
    moved.collect()
}

fn in_words(old: Cell, new: Cell) -> (Way, &'static str) {
    use Cell::{No, Repeated, Success, Verify, WithEvidence};
    match (old, new) {
        (No | Success, Repeated) => (Way::LessSafe, "now repeated"),
        (No | Success, WithEvidence) => (Way::LessSafe, "now repeated with a key or another evidence"),
        (WithEvidence, Repeated) => (Way::LessSafe, "now repeated without a key or another evidence"),
        (Verify, Repeated | WithEvidence) => (Way::LessSafe, "now repeated, and no longer to be verified,"),
        (Verify, No | Success) => (Way::LessSafe, "no longer to be verified"),
        (No | Success, Verify) => (Way::Safer, "now to be verified"),
        (Repeated, WithEvidence) => (Way::Safer, "now repeated only with a key or another evidence"),
        (Repeated | WithEvidence, No) => (Way::Safer, "no longer repeated"),
        (Repeated | WithEvidence, Verify) => (Way::Safer, "no longer repeated, but to be verified,"),
        (Repeated | WithEvidence | No, Success) => (Way::Other, "now a success"),
        (Success, No) => (Way::Other, "no longer a success"),
        // Only what differs is asked.
        (No, No) | (Repeated, Repeated) | (WithEvidence, WithEvidence) | (Verify, Verify) | (Success, Success) => {
            (Way::Other, "the same")
        }
    }
}

/// What else differs between two sets of settings.
pub(super) fn of_settings(old: &Side<'_>, new: &Side<'_>) -> Vec<Change> {
    let (before, after) = (old.settings, new.settings);
    let mut changes = Vec::new();
    let mut differs = |way: Way, what: &str, old: String, new: String| {
        if old != new {
            changes.push(change(way, format!("{what}: {new}; before: {old}")));
        }
    };
    let number = |settings| (words::attempts(settings), words::requests(settings));
    let ((own, all), (new_own, new_all)) = (number(before), number(after));
    differs(Way::of(true, own, new_own), "attempts", own.to_string(), new_own.to_string());
    // Where only the attempts differ, that was said.
    if all.checked_div(u64::from(own)) != new_all.checked_div(u64::from(new_own)) {
        let way = Way::of(true, all, new_all);
        differs(way, "requests at most, with what else retries", all.to_string(), new_all.to_string());
    }
    let forgotten = before.elsewhere.is_some() && after.elsewhere.is_none();
    let way = if forgotten { Way::LessSafe } else { Way::Other };
    differs(way, "what else retries", words::elsewhere(before), words::elsewhere(after));
    differs(Way::Other, "timeouts", timeouts(before), timeouts(after));
    differs(Way::Other, "instead", instead(before), instead(after));
    // How it is repeated matters where it is.
    let retries = own.max(new_own).saturating_sub(1);
    if retries == 0 {
        return changes;
    }
    let way = sooner(old.backoff, new.backoff, retries);
    differs(way, "waits", words::backoff(before), words::backoff(after));
    let way = looser(old.budget, new.budget);
    differs(way, "budget", words::budget(before), words::budget(after));
    let rank = |settings: &Settings| match settings.hold.as_deref() {
        Some(HoldName::None) => 0,
        None | Some(HoldName::Retries) => 1,
        Some(HoldName::All) => 2,
    };
    let way = Way::of(false, rank(before), rank(after));
    differs(way, "when told to wait", words::hold(before).to_owned(), words::hold(after).to_owned());
    differs(heard(before, after), "the provider's word", words::server(before), words::server(after));
    differs(evidence::of_key(before, after), "key", evidence::key(before), evidence::key(after));
    changes.extend(evidence::changes(before, after));
    changes.extend(rules::changes(before, after));
    changes
}

fn instead(settings: &Settings) -> String {
    settings.fallback.as_ref().map_or("not stated".to_owned(), |fallback| fallback.value.clone())
}

fn timeouts(settings: &Settings) -> String {
    let timeouts = settings.timeouts.as_ref();
    let time = |time: Option<&crate::contract::place::At<crate::contract::scalar::Time>>| {
        time.map_or("?".to_owned(), |time| shown(time.value.0))
    };
    let attempt = time(timeouts.and_then(|timeouts| timeouts.attempt.as_ref()));
    let total = time(timeouts.and_then(|timeouts| timeouts.total.as_ref()));
    format!("{attempt} an attempt, {total} in all")
}

/// Whether any wait became shorter, or is no longer spread.
fn sooner(old: &Backoff, new: &Backoff, retries: u32) -> Way {
    let waits = |backoff: &Backoff| {
        (0..retries.max(1)).flat_map(|retry| [backoff.shortest(retry), backoff.longest(retry)]).collect::<Vec<_>>()
    };
    let (before, after) = (waits(old), waits(new));
    let unspread = new.get_jitter() == Jitter::None && old.get_jitter() != Jitter::None;
    if unspread || before.iter().zip(&after).any(|(old, new)| new < old) {
        Way::LessSafe
    } else if before == after {
        Way::Other
    } else {
        Way::Safer
    }
}

/// Whether a budget allows more in any respect. `None` is unlimited.
fn looser(old: Option<&BudgetSetting>, new: Option<&BudgetSetting>) -> Way {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(_), None) => return Way::LessSafe,
        (None, Some(_)) => return Way::Safer,
        (None, None) => return Way::Other,
    };
    // What brings more, and what costs less.
    let brings = |setting: &BudgetSetting| {
        [
            setting.capacity,
            setting.initial,
            setting.per_first_try,
            setting.per_first_success,
            setting.per_retry_success,
            setting.refill_per_second,
            setting.reserve_per_second,
            f64::from(u8::from(setting.refund_on_success)),
        ]
    };
    let costs = |setting: &BudgetSetting| {
        [setting.cost, setting.throttled_cost, setting.per_failure, setting.open_above.unwrap_or(0.0)]
    };
    let more = brings(old).iter().zip(&brings(new)).any(|(old, new)| new > old);
    let less = costs(old).iter().zip(&costs(new)).any(|(old, new)| new < old);
    if old == new {
        Way::Other
    } else if more || less {
        Way::LessSafe
    } else {
        Way::Safer
    }
}

/// Whether a header of the server is no longer heeded: another unit is another header. A shorter `longest_wait` ends calls
/// and repeats nothing.
fn heard(old: &Settings, new: &Settings) -> Way {
    let (old, new) = (words::heeded(old), words::heeded(new));
    if old.iter().any(|header| !new.contains(header)) { Way::LessSafe } else { Way::of(false, old.len(), new.len()) }
}
