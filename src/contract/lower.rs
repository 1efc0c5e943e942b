//! From a resolved contract to the policies that run.

use std::{sync::Arc, time::Duration};

use super::{
    answers,
    budgets::Groups,
    locate,
    names::JitterName,
    place::{At, Place},
    problem::Problem,
    resolve::{Operation, Provider, Resolved},
    routing::Routing,
    settings::{Backoff, Elsewhere, Failures, Settings, WaitHeader},
};
use crate::{
    Routes, StandardPolicy, Timeouts, Transient,
    policy::{self, HoldScope, StandardPolicyBuilder},
};

/// What runs, and what stands beside each operation of the [`Resolved`] contract.
pub(super) struct Lowered {
    pub(super) routes: Routes,
    /// By provider and operation, in the order of the resolved contract; `None` where a policy could not be built.
    pub(super) policies: Vec<Vec<Option<StandardPolicy>>>,
    pub(super) groups: Groups,
}

/// Builds every policy and the routes to them. What cannot be built is a problem; the rest is built all the same, so
/// that its own problems are found too.
pub(super) fn lower(resolved: &Resolved, groups: Groups, problems: &mut Vec<Problem>) -> Option<Lowered> {
    let mut groups = groups;
    let mut routing = Routing::default();
    let mut policies = Vec::new();
    for provider in &resolved.providers {
        routing.hosts_of(provider, problems);
        let mut built = Vec::new();
        for operation in &provider.operations {
            let mut found = Vec::new();
            let policy = policy(provider, operation, &mut groups, &mut found);
            let about = |problem: Problem| problem.about(&provider.name, &operation.name);
            problems.extend(found.into_iter().map(about));
            routing.add(provider, operation, policy.clone(), problems);
            built.push(policy);
        }
        policies.push(built);
    }
    let routes = routing.build(resolved, problems)?;
    Some(Lowered { routes, policies, groups })
}

fn policy(
    provider: &Provider,
    operation: &Operation,
    groups: &mut Groups,
    problems: &mut Vec<Problem>,
) -> Option<StandardPolicy> {
    let before = problems.len();
    let shared = groups.of(provider, operation, problems);
    let builder = builder(provider, operation, problems);
    let scope = operation.settings.hold.as_ref().map_or(HoldScope::default(), |hold| hold.scope());
    let builder = match shared {
        Some((budget, hold)) => builder.budget(budget).hold(scope, hold),
        None => builder,
    };
    match builder.build() {
        Ok(policy) if problems.len() == before => Some(policy),
        Ok(_) => None,
        Err(refused) => {
            let located = refused.rules().zip(refused.problems());
            problems.extend(located.map(|(rule, text)| locate::located(rule, text, operation)));
            None
        }
    }
}

/// The policy of an operation, still to be given its budget and its hold. What the contract does not say although it has
/// to is a problem, and stands in as what no rule objects to.
pub(crate) fn builder(
    provider: &Provider,
    operation: &Operation,
    problems: &mut Vec<Problem>,
) -> StandardPolicyBuilder {
    let settings = &operation.settings;
    let attempts = attempts(operation, problems);
    let repeats = attempts.as_ref().is_none_or(|(attempts, _)| *attempts != 1);
    let transient = transient(operation, repeats, problems);
    let timeouts = timeouts(operation, problems);
    let mut builder = StandardPolicy::builder(provider.name.value.clone(), timeouts, transient)
        .operation(operation.name.value.clone());
    builder = match attempts {
        Some((attempts, Some(reason))) => builder.attempts_because(attempts, reason),
        Some((attempts, None)) => builder.attempts(attempts),
        None => builder,
    };
    if let Some(backoff) = backoff(operation, repeats, problems) {
        builder = builder.backoff(backoff);
    }
    if let Some(business) = &settings.business {
        builder = builder
            .business(listed(&business.status).map(|status| status.value.0))
            .business_codes(listed(&business.grpc).map(|code| code.name().code()));
    }
    for other in listed(&settings.elsewhere) {
        // One that is not whole is a problem already.
        if let Elsewhere { place: Some(place), by: Some(by), attempts: Some(attempts) } = &other.value {
            if attempts.value > 0 {
                builder = builder.elsewhere(place.place(), by.value.clone(), attempts.value);
            }
        }
    }
    for rule in settings.answer.iter().flat_map(|answers| &answers.value) {
        if let Some(rule) = answers::rule(rule, provider, problems) {
            builder = builder.answer(rule);
        }
    }
    evidence(server(builder, settings, problems), operation)
}

fn listed<T>(list: &Option<At<Vec<At<T>>>>) -> impl Iterator<Item = &At<T>> {
    list.iter().flat_map(|list| &list.value)
}

/// Where something is missing: the table that it belongs to, or the operation.
fn home<T>(table: &Option<At<T>>, operation: &Operation) -> Place {
    table.as_ref().map_or(operation.name.place, |table| table.place)
}

fn timeouts(operation: &Operation, problems: &mut Vec<Problem>) -> Timeouts {
    let written = operation.settings.timeouts.as_ref();
    let attempt = written.and_then(|timeouts| timeouts.attempt.as_ref());
    let total = written.and_then(|timeouts| timeouts.total.as_ref());
    let missing: Vec<_> = [("attempt", attempt), ("total", total)]
        .into_iter()
        .filter_map(|(name, found)| found.is_none().then_some(name))
        .collect();
    if !missing.is_empty() {
        let names = missing.join(" and no ");
        let place = home(&operation.settings.timeouts, operation);
        let problem = Problem::broken("S8", place, format!("{} has no {names} timeout", locate::named(operation)));
        problems.push(
            problem
                .label("never without")
                .missing(missing)
                .missing(["timeouts"])
                .help("write `timeouts = { attempt = \"2s\", total = \"10s\" }`"),
        );
    }
    let stand_in = policy::rules::LONGEST;
    let total = total.map_or(stand_in, |total| total.value.0);
    let attempt = attempt.map_or((total / 2).max(Duration::from_millis(1)), |attempt| attempt.value.0);
    Timeouts { attempt, total }
}

/// How many, and why so many. `None`: it is not said.
fn attempts(operation: &Operation, problems: &mut Vec<Problem>) -> Option<(u32, Option<String>)> {
    if let Some(never) = &operation.settings.never {
        // Whatever else retries on the path: this does not.
        return Some((1, Some(never.value.clone())));
    }
    let Some(written) = &operation.settings.attempts else {
        let message = format!("it is not said how many attempts {} has", locate::named(operation));
        let problem = Problem::broken("S12", operation.name.place, message);
        problems.push(
            problem
                .label("`attempts` is missing")
                .missing(["attempts"])
                .help("write `attempts = 3` (the first try counts), or `never = \"why\"`"),
        );
        return None;
    };
    Some((written.max().unwrap_or(1), written.reason().map(|reason| reason.value.clone())))
}

fn transient(operation: &Operation, repeats: bool, problems: &mut Vec<Problem>) -> Transient {
    let settings = &operation.settings;
    let Some(written) = &settings.transient else {
        let by_rule =
            settings.answer.as_ref().is_some_and(|answers| answers.iter().any(|answer| answers::passes(answer)));
        if repeats && !by_rule {
            let message = format!("nothing says which failures of {} pass by themselves", locate::named(operation));
            let problem = Problem::broken("S1", operation.name.place, message)
                .label("`transient` is missing")
                .missing(["transient"]);
            problems.push(
                problem.help("write `transient = { status = [502, 503, 504], faults = [\"connect\", \"timeout\"] }`"),
            );
        }
        return Transient::none();
    };
    let Failures { status, faults, grpc } = &written.value;
    let transient = listed(status).fold(Transient::none(), |transient, status| transient.status(status.value.0));
    let transient = listed(grpc).fold(transient, |transient, code| code.list(transient));
    listed(faults).fold(transient, |transient, fault| transient.fault(fault.kind()))
}

fn backoff(operation: &Operation, repeats: bool, problems: &mut Vec<Problem>) -> Option<policy::Backoff> {
    let written = operation.settings.backoff.as_ref();
    let none = Backoff::default();
    let Backoff { initial, multiplier, max, floor, jitter, reason } = written.map_or(&none, |written| &written.value);
    if !repeats && written.is_none() {
        return None;
    }
    let decorrelated = jitter.as_ref().is_some_and(|jitter| jitter.value == JitterName::Decorrelated);
    let missing: Vec<&str> = [
        ("`initial`", initial.is_none()),
        ("`multiplier`", multiplier.is_none() && !decorrelated),
        ("`max`", max.is_none()),
    ]
    .into_iter()
    .filter_map(|(name, missing)| missing.then_some(name))
    .collect();
    if !missing.is_empty() && repeats {
        let message = format!("the backoff of {} does not state {}", locate::named(operation), missing.join(", "));
        let problem = Problem::broken("S11", home(&operation.settings.backoff, operation), message);
        problems.push(
            problem
                .label("not bounded")
                .missing(["initial", "multiplier", "max", "backoff"])
                .help("write `backoff = { initial = \"500ms\", multiplier = 2.0, max = \"10s\" }`"),
        );
    }
    let (Some(initial), Some(max)) = (initial, max) else { return None };
    let mut backoff = policy::Backoff::exponential(initial.value.0).max(max.value.0);
    if let Some(multiplier) = multiplier {
        backoff = backoff.multiplier(multiplier.value);
    }
    if let Some(floor) = floor {
        backoff = backoff.floor(floor.value.0);
    }
    Some(match (jitter.as_ref().map(|jitter| jitter.value), reason) {
        (Some(JitterName::None), Some(reason)) => backoff.unjittered(reason.value.clone()),
        (Some(jitter), _) => backoff.jitter(jitter.jitter()),
        (None, _) => backoff,
    })
}

fn server(
    mut builder: StandardPolicyBuilder,
    settings: &Settings,
    problems: &mut Vec<Problem>,
) -> StandardPolicyBuilder {
    let Some(server) = &settings.server else { return builder };
    for written in listed(&server.wait) {
        if let Some((header, unit)) = wait_header(written, problems) {
            builder = builder.wait_header(header, unit);
        }
    }
    for written in listed(&server.reset) {
        if let Some((header, unit)) = wait_header(written, problems) {
            builder = builder.reset_header(header, unit);
        }
    }
    if let Some(header) = &server.should_retry {
        builder = builder.should_retry_header(header.value.0.clone());
    }
    match &server.longest_wait {
        Some(longest) => builder.longest_server_wait(longest.value.0),
        None => builder,
    }
}

fn wait_header(written: &At<WaitHeader>, problems: &mut Vec<Problem>) -> Option<(http::HeaderName, policy::Unit)> {
    let WaitHeader { header: Some(header), unit: Some(unit) } = &written.value else {
        let problem =
            Problem::broken("S17", written.place, "a header that says how long to wait needs its name and its unit");
        problems.push(
            problem
                .label("what does it count?")
                .missing(["header", "unit"])
                .help("write `{ header = \"x-reset\", unit = \"epoch-s\" }`"),
        );
        return None;
    };
    Some((header.value.0.clone(), unit.unit()))
}

fn evidence(mut builder: StandardPolicyBuilder, operation: &Operation) -> StandardPolicyBuilder {
    if let Some(key) = &operation.settings.key {
        if let Some(header) = &key.header {
            builder = builder.key_header(header.value.0.clone());
        }
        if key.replays.as_deref() == Some(&true) {
            builder = builder.key_replays();
        }
    }
    let Some(idempotent) = &operation.settings.idempotent else { return builder };
    for header in listed(&idempotent.headers) {
        builder = builder.precondition(header.value.0.clone());
    }
    for name in listed(&idempotent.query) {
        builder = builder.precondition_query(name.value.clone());
    }
    if let Some(stated) = &idempotent.stated {
        builder = builder.idempotent(Arc::<str>::from(stated.value.as_str()));
    }
    if idempotent.method.as_deref() == Some(&false) {
        builder = builder.no_method_is_idempotent();
    }
    builder
}
