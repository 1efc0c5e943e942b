//! Which operations share a budget and a hold: those of one group, which is the provider unless it is said otherwise.

use std::collections::HashMap;

use super::{
    names::BudgetName,
    place::{At, Place},
    problem::Problem,
    resolve::{Operation, Provider},
    settings::Budget as Written,
};
use crate::{
    Budget, Hold,
    policy::budget::{BudgetError, BudgetSetting},
};

/// Budgets and holds in force, by group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    now: Shared,
    /// Those of the contract before this one: read again, a contract forgets neither what was spent nor what was told.
    before: Shared,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    /// And where each was stated.
    budgets: HashMap<String, (Budget, Option<Place>)>,
    holds: HashMap<String, Hold>,
}

impl Groups {
    /// For a contract that is read again.
    pub(super) fn next(&self) -> Groups {
        Groups { now: Shared::default(), before: self.now.clone() }
    }

    /// The budget and the hold of an operation. `None`: it states one that cannot be built.
    pub(super) fn of(
        &mut self,
        provider: &Provider,
        operation: &Operation,
        problems: &mut Vec<Problem>,
    ) -> Option<(Budget, Hold)> {
        let written = operation.settings.budget.as_ref();
        let budget = match written {
            Some(written) => build(written, problems)?,
            None => Budget::usual(),
        };
        let provider_name = &provider.name.value;
        let group = written.and_then(|written| written.group.as_ref()).map(|group| format!("group {}", group.value));
        let of_provider = format!("provider {provider_name}");
        let held_by = group.clone().unwrap_or_else(|| of_provider.clone());
        let charged_to = match (group, written) {
            (Some(group), _) => group,
            // Numbers of its own without a group: a budget of its own. What it is told holds for its provider all the same.
            (None, Some(own)) if !is_providers(own, provider) => {
                format!("operation {provider_name} {}", operation.name.value)
            }
            _ => of_provider,
        };
        let hold = self.now.holds.entry(held_by.clone());
        let hold = hold.or_insert_with(|| self.before.holds.get(&held_by).cloned().unwrap_or_default()).clone();
        let place = written.map(|written| written.place);
        if let Some((shared, first)) = self.now.budgets.get(&charged_to) {
            if shared.setting() != budget.setting() {
                let place = place.unwrap_or(operation.name.place);
                let problem = Problem::broken("S20", place, "one group has two budgets of different numbers");
                let help = "state the numbers once, or give each its own `group`";
                let problem = problem.label("other numbers").help(help);
                problems.push(match first {
                    Some(first) => problem.other(*first, "the group's budget"),
                    None => problem,
                });
                return None;
            }
            return Some((shared.clone(), hold));
        }
        let before = self.before.budgets.get(&charged_to).filter(|(old, _)| old.setting() == budget.setting());
        let budget = before.map_or(budget, |(old, _)| old.clone());
        self.now.budgets.insert(charged_to, (budget.clone(), place));
        Some((budget, hold))
    }
}

/// Whether the operation's budget is the very one that its provider states.
fn is_providers(written: &At<Written>, provider: &Provider) -> bool {
    provider.settings.budget.as_ref().is_some_and(|own| own.place == written.place)
}

fn build(written: &At<Written>, problems: &mut Vec<Problem>) -> Option<Budget> {
    let budget = &written.value;
    let before = problems.len();
    foreign(written, problems);
    let number = |value: &Option<At<f64>>, default: f64| value.as_ref().map_or(default, |value| value.value);
    let built = match budget.setting.as_deref() {
        Some(BudgetName::Default) => Ok(Budget::usual()),
        Some(BudgetName::Aws) => Budget::custom(aws(number(&budget.capacity, 500.0))),
        Some(BudgetName::Grpc) => Budget::grpc(number(&budget.max_tokens, 10.0), number(&budget.token_ratio, 0.1)),
        Some(BudgetName::Finagle) => {
            let ttl = budget.ttl.as_ref().map_or(std::time::Duration::from_secs(10), |ttl| ttl.value.0);
            let reserve = budget.min_per_second.as_ref().map_or(10, |reserve| reserve.value);
            Budget::finagle(ttl, reserve, number(&budget.percent, 0.2))
        }
        Some(BudgetName::Unlimited) => {
            let reason = budget.reason.as_ref().map(|reason| reason.value.clone());
            // Without a reason, the builder of the policy refuses it.
            Ok(Budget::unlimited(reason.unwrap_or_default()))
        }
        // A group alone.
        None if numbers(written).is_empty() => Ok(Budget::usual()),
        None => Budget::custom(bucket(budget)),
    };
    match built {
        Ok(budget) if problems.len() == before => Some(budget),
        Ok(_) => None,
        Err(refused) => {
            refusals(written, &refused, problems);
            None
        }
    }
}

/// [`BudgetSetting::aws`] with a capacity that may be no whole number, so that the engine refuses what it refuses.
fn aws(capacity: f64) -> BudgetSetting {
    BudgetSetting::aws(500).capacity(capacity).initial(capacity)
}

fn bucket(written: &Written) -> BudgetSetting {
    let number = |value: &Option<At<f64>>, default: f64| value.as_ref().map_or(default, |value| value.value);
    let capacity = number(&written.capacity, 5.0);
    let cost = number(&written.cost, 1.0);
    let setting = BudgetSetting::bucket(capacity)
        .initial(number(&written.initial, capacity))
        .cost(cost)
        .throttled_cost(number(&written.throttled_cost, cost))
        .per_first_try(number(&written.per_first_try, 0.0))
        .per_first_success(number(&written.per_first_success, 0.0))
        .per_retry_success(number(&written.per_retry_success, 0.0))
        .per_failure(number(&written.per_failure, 0.0))
        .refund_on_success(written.refund_on_success.as_deref() == Some(&true))
        .refill_per_second(number(&written.refill_per_second, 0.0));
    match &written.open_above {
        Some(share) => setting.open_above(share.value),
        None => setting,
    }
}

/// Numbers that the named setting does not have.
fn foreign(written: &At<Written>, problems: &mut Vec<Problem>) {
    let setting = written.setting.as_deref().copied();
    let mut stated = numbers(written);
    let own: &[&str] = match setting {
        Some(BudgetName::Default | BudgetName::Unlimited) => &[],
        Some(BudgetName::Aws) => &["capacity"],
        Some(BudgetName::Grpc) => &["max_tokens", "token_ratio"],
        Some(BudgetName::Finagle) => &["ttl", "min_per_second", "percent"],
        None => BUCKET,
    };
    stated.retain(|(name, _)| !own.contains(name));
    for (name, place) in stated {
        let whose = setting
            .map_or("a budget of numbers alone".to_owned(), |setting| format!("the setting `{}`", setting.as_str()));
        let help = match own {
            [] => format!("leave `{name}` out, or leave `setting` out and state the numbers"),
            own => format!("it has {}", super::read::listed(own)),
        };
        let problem = Problem::broken("S20", place, format!("{whose} has no `{name}`")).label("says nothing here");
        problems.push(problem.help(help));
    }
}

const BUCKET: &[&str] = &[
    "capacity",
    "initial",
    "cost",
    "throttled_cost",
    "per_first_try",
    "per_first_success",
    "per_retry_success",
    "per_failure",
    "refund_on_success",
    "refill_per_second",
    "open_above",
];

/// The numbers that are stated, by name.
fn numbers(written: &Written) -> Vec<(&'static str, Place)> {
    fn place<T>(value: &Option<At<T>>) -> Option<Place> {
        value.as_ref().map(|value| value.place)
    }
    let w = written;
    let all = [
        ("capacity", place(&w.capacity)),
        ("initial", place(&w.initial)),
        ("cost", place(&w.cost)),
        ("throttled_cost", place(&w.throttled_cost)),
        ("per_first_try", place(&w.per_first_try)),
        ("per_first_success", place(&w.per_first_success)),
        ("per_retry_success", place(&w.per_retry_success)),
        ("per_failure", place(&w.per_failure)),
        ("refund_on_success", place(&w.refund_on_success)),
        ("refill_per_second", place(&w.refill_per_second)),
        ("open_above", place(&w.open_above)),
        ("max_tokens", place(&w.max_tokens)),
        ("token_ratio", place(&w.token_ratio)),
        ("ttl", place(&w.ttl)),
        ("min_per_second", place(&w.min_per_second)),
        ("percent", place(&w.percent)),
    ];
    all.into_iter().filter_map(|(name, place)| Some((name, place?))).collect()
}

fn refusals(written: &At<Written>, refused: &BudgetError, problems: &mut Vec<Problem>) {
    let numbers = numbers(written);
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    let stated = |text: &str| numbers.iter().any(|(name, _)| *name == quoted(text));
    let any_stated = refused.problems().any(stated);
    for text in refused.problems() {
        // What follows from a number that is stated is no problem of its own.
        if any_stated && !stated(text) {
            continue;
        }
        let quoted = quoted(text);
        let named = numbers.iter().find(|(name, _)| *name == quoted || text.contains(&format!("`{name}`")));
        let place = named.map_or(written.place, |(_, place)| *place);
        let (what, help) = text.split_once(": ").unwrap_or((text, ""));
        problems.push(Problem::broken("S20", place, what).label("not so").help(help));
    }
}
