//! The rules that a policy must keep to be built.

use std::{fmt, time::Duration};

use super::{AnswerRule, Backoff, elsewhere::worst_case, operation::Operation};

/// The longest that anything here may take or wait: a day. What takes longer belongs to a job, not to a call.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// One broken rule: its number in the standard, and which value breaks it and how to mend it.
pub(crate) type Broken = (&'static str, String);

/// A policy that breaks rules of the retry standard. Names every one of them, with its S-number, the value that
/// breaks it and how to mend it.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyError {
    policy: String,
    broken: Vec<Broken>,
}

impl PolicyError {
    pub(crate) fn new(operation: &Operation, broken: Vec<Broken>) -> Self {
        PolicyError { policy: format!("{} {}", operation.provider, operation.name), broken }
    }

    /// The rules for a backoff that goes into a layer, and not into a policy.
    pub(crate) fn check_backoff(layer: &str, backoff: &Backoff) -> Result<(), Self> {
        let broken = backoff.broken();
        if broken.is_empty() { Ok(()) } else { Err(PolicyError { policy: layer.to_owned(), broken }) }
    }

    /// What is broken, one text a rule.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.broken.iter().map(|(_, how)| how.as_str())
    }

    /// The broken rules' S-numbers, in the standard's order, each as often as it is broken.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.broken.iter().map(|(rule, _)| *rule)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.broken.len();
        write!(f, "the policy `{}` breaks {count} rule{}:", self.policy, if count == 1 { "" } else { "s" })?;
        self.broken.iter().try_for_each(|(rule, how)| write!(f, "\n  {rule}: {how}"))
    }
}

impl fmt::Debug for PolicyError {
    // As `Display`: it is what `unwrap` and `main` print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for PolicyError {}

/// Every rule that this operation breaks, in the standard's order.
pub(crate) fn broken(operation: &Operation, attempts_reason: Option<&str>) -> Vec<Broken> {
    let mut broken = Vec::new();
    broken.extend(operation.transient.broken());
    broken.extend(operation.answers.iter().flat_map(AnswerRule::broken));
    broken.extend(timeouts(operation).map(|how| ("S8", how)));
    if operation.stated.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
        broken.push(("S7", "idempotent for an empty reason: say why a repeat is safe".to_owned()));
    }
    if operation.query_preconditions.iter().any(|name| name.trim().is_empty()) {
        broken.push(("S7", "a precondition in the query without a name: name the parameter".to_owned()));
    }
    broken.extend(operation.backoff.broken());
    if operation.provider.trim().is_empty() || operation.name.trim().is_empty() {
        let how = "the provider or the operation has no name: events and errors could not say what failed";
        broken.push(("S15", how.to_owned()));
    }
    if operation.budget.reason().is_some_and(|reason| reason.trim().is_empty()) {
        broken.push(("S20", "the budget is unlimited for an empty reason: say why, or use `Budget::usual`".to_owned()));
    }
    let too_many = attempts(operation.max_attempts, attempts_reason);
    let too_many = too_many.or_else(|| requests(operation, attempts_reason));
    broken.extend(too_many.map(|how| ("S12", how)));
    broken.extend(elsewhere(operation).map(|how| ("S13", how)));
    broken.sort_by_key(|(rule, _)| rule.trim_start_matches('S').parse::<u32>().unwrap_or(u32::MAX));
    broken
}

fn timeouts(operation: &Operation) -> impl Iterator<Item = String> {
    let (attempt, total) = (operation.timeouts.attempt, operation.timeouts.total);
    let zero = |name, value: Duration| {
        value.is_zero().then(|| format!("the {name} timeout is zero: give the time that it may take"))
    };
    let too_long = (total > LONGEST)
        .then(|| format!("the total timeout is {total:?}: at most a day; what takes longer belongs to a job"));
    let not_shorter = match operation.max_attempts {
        // A total of zero is named already.
        _ if total.is_zero() => None,
        1 if attempt > total => Some("longer"),
        2.. if attempt >= total => Some("not shorter"),
        _ => None,
    }
    .map(|how| {
        format!("the attempt timeout {attempt:?} is {how} than the total {total:?}: lower it or raise the total")
    });
    [zero("attempt", attempt), zero("total", total), too_long, not_shorter].into_iter().flatten()
}

fn attempts(attempts: u32, reason: Option<&str>) -> Option<String> {
    match attempts {
        0 => Some("attempts = 0: the first try counts, so 1 means never repeated".to_owned()),
        1..=3 => None,
        4..=9 if reason.is_some_and(|reason| !reason.trim().is_empty()) => None,
        4..=9 => Some(format!("attempts = {attempts} without a reason: 2 or 3, or say why with `attempts_because`")),
        10.. => Some(format!("attempts = {attempts}: at most 9; what needs more belongs to a job")),
    }
}

/// The worst case of the whole path, where something else retries on it.
fn requests(operation: &Operation, reason: Option<&str>) -> Option<String> {
    let worst = worst_case(operation.max_attempts, &operation.elsewhere);
    let how = match worst {
        _ if worst <= operation.max_attempts => return None,
        ..=3 => return None,
        4..=9 if reason.is_some_and(|reason| !reason.trim().is_empty()) => return None,
        4..=9 => "switch one of them off, or say why with `attempts_because`",
        10.. => "at most 9: switch one of them off",
    };
    Some(format!("{}: {how}", on_the_path(operation, worst)))
}

/// Which retries multiply to what.
fn on_the_path(operation: &Operation, worst: u32) -> String {
    let others = operation.elsewhere.iter().map(|other| format!(" x {other}")).collect::<String>();
    format!("{worst} requests a call at worst ({} attempts here{others})", operation.max_attempts)
}

fn elsewhere(operation: &Operation) -> impl Iterator<Item = String> {
    operation.elsewhere.iter().filter_map(|other| match other {
        _ if other.by.trim().is_empty() => {
            Some(format!("a retry elsewhere (in the {}) without a name: say what retries", other.place))
        }
        _ if other.attempts == 0 => {
            Some(format!("0 attempts of the {} `{}`: the first counts, so 1 means switched off", other.place, other.by))
        }
        _ => None,
    })
}

/// What is allowed, but probably not meant.
pub(crate) fn warnings(operation: &Operation) -> Vec<String> {
    let worst = worst_case(operation.max_attempts, &operation.elsewhere);
    let multiplied = (worst > operation.max_attempts).then(|| on_the_path(operation, worst));
    never_started(operation).into_iter().chain(multiplied).collect()
}

fn never_started(operation: &Operation) -> Option<String> {
    let retries = operation.max_attempts - 1;
    let waits: Duration = (0..retries).map(|retry| operation.backoff.shortest(retry)).sum();
    let total = operation.timeouts.total;
    (retries > 0 && waits >= total).then(|| {
        let last = operation.max_attempts;
        format!(
            "attempt {last} can never start: the waits before it are {waits:?} at the least, the total is {total:?}"
        )
    })
}
