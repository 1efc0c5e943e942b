//! What a contract says, in words: for the page, and for what changes.

use crate::contract::{
    duration::shown,
    names::{BudgetName, HoldName, JitterName},
    place::At,
    resolve::{Operation, Provider},
    scalar::HeaderTest,
    settings::{Answer, BodyTest, Failures, Settings, Wait, WaitHeader, When},
};

/// A text within a table: one line, and no end of its column.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(|c: char| c.is_control(), " ")
}

/// A list of failures: statuses, faults, codes of gRPC.
pub(super) fn failures(list: &Failures) -> String {
    let statuses = list.status.iter().flat_map(|list| &list.value).map(|status| status.value.0.to_string());
    let faults = list.faults.iter().flat_map(|list| &list.value).map(|fault| fault.as_str().to_owned());
    let codes = list.grpc.iter().flat_map(|list| &list.value).map(|code| code.name().as_str().to_owned());
    statuses.chain(faults).chain(codes).collect::<Vec<_>>().join(", ")
}

/// A rule on answers: which, what they mean, and how long to wait.
pub(super) fn rule(rule: &Answer) -> String {
    let means = rule.means.as_ref().map_or("", |means| means.as_str());
    let when = rule.when.as_ref().map_or_else(|| "any answer".to_owned(), |when| conditions(&when.value));
    let wait = rule.wait.as_ref().map_or_else(String::new, |wait| format!(", {}", waits(&wait.value)));
    format!("{when}: {means}{wait}")
}

fn conditions(when: &When) -> String {
    let statuses = when.status.iter().flat_map(|statuses| statuses.iter()).map(|status| status.value.0.to_string());
    let statuses = statuses.collect::<Vec<_>>().join(" or ");
    let mut all = vec![if statuses.is_empty() { "any status".to_owned() } else { statuses }];
    for (name, test) in when.header.iter().flat_map(|named| &named.value.0) {
        all.push(match &test.value {
            HeaderTest::Text(text) => format!("with `{}: {text}`", name.value),
            HeaderTest::Present(true) => format!("with `{}`", name.value),
            HeaderTest::Present(false) => format!("without `{}`", name.value),
        });
    }
    all.extend(when.body.iter().map(|test| body(&test.value)));
    all.extend(when.after.iter().map(|_| "after an attempt of unknown effect".to_owned()));
    all.join(", ")
}

fn body(test: &BodyTest) -> String {
    let at = test.json.as_ref().map_or("", |json| json.value.as_str());
    match (&test.contains, &test.equals) {
        (Some(text), _) => format!("whose `{at}` contains `{}`", text.value),
        (None, Some(value)) => format!("whose `{at}` is `{}`", value.value.0),
        (None, None) => format!("with `{at}`"),
    }
}

fn waits(wait: &Wait) -> String {
    let header = wait.header.as_ref().map(|header| {
        let unit = wait.unit.as_ref().map_or(String::new(), |unit| format!(" ({})", unit.as_str()));
        format!("as `{}` says{unit}", header.value.0)
    });
    let least = wait.at_least.as_ref().map(|least| format!("at least {}", shown(least.value.0)));
    format!("wait {}", header.into_iter().chain(least).collect::<Vec<_>>().join(", "))
}

/// The waits between attempts.
pub(super) fn backoff(settings: &Settings) -> String {
    let Some(backoff) = &settings.backoff else { return "none is stated".to_owned() };
    let time = |time: &Option<At<crate::contract::scalar::Time>>| {
        time.as_ref().map_or("?".to_owned(), |time| shown(time.value.0))
    };
    let multiplier = backoff.multiplier.as_ref().map_or(2.0, |multiplier| multiplier.value);
    let jitter = backoff.jitter.as_deref().copied().unwrap_or(JitterName::Full);
    let floor = backoff.floor.as_ref().map_or("50ms".to_owned(), |floor| shown(floor.value.0));
    format!(
        "up to {}, times {multiplier}, up to {}; never less than {floor}; jitter {}",
        time(&backoff.initial),
        time(&backoff.max),
        jitter.as_str()
    )
}

/// The headers by which the server says when to come back.
pub(super) fn server(settings: &Settings) -> String {
    let server = settings.server.as_ref();
    let mut all = server.map_or_else(Vec::new, |server| headers(&server.wait));
    all.push("`retry-after`".to_owned());
    all.extend(server.into_iter().flat_map(|server| headers(&server.reset)));
    let mut text = all.join(", ");
    if let Some(header) = server.and_then(|server| server.should_retry.as_ref()) {
        text.push_str(&format!("; whether at all: `{}`", header.value.0));
    }
    if let Some(longest) = server.and_then(|server| server.longest_wait.as_ref()) {
        text.push_str(&format!("; longer than {} ends the call", shown(longest.value.0)));
    }
    text
}

/// Each with its unit.
fn headers(list: &Option<At<Vec<At<WaitHeader>>>>) -> Vec<String> {
    let list = list.iter().flat_map(|list| &list.value);
    let header = |one: &At<WaitHeader>| {
        let unit = one.unit.as_ref().map_or(String::new(), |unit| format!(" ({})", unit.as_str()));
        one.header.as_ref().map(|header| format!("`{}`{unit}", header.value.0))
    };
    list.filter_map(header).collect()
}

/// Every header of the server that is heeded beside `retry-after`, and for what.
pub(super) fn heeded(settings: &Settings) -> Vec<String> {
    let Some(server) = settings.server.as_ref() else { return Vec::new() };
    let named = |what: &str, headers: Vec<String>| {
        headers.into_iter().map(move |header| format!("{what} {header}")).collect::<Vec<_>>()
    };
    let should_retry = server.should_retry.iter().map(|header| format!("whether {}", header.value.0));
    let waits = named("wait", headers(&server.wait)).into_iter().chain(named("reset", headers(&server.reset)));
    waits.chain(should_retry).collect()
}

/// The budget, by name or by numbers.
pub(super) fn budget(settings: &Settings) -> String {
    let Some(budget) = &settings.budget else { return "default".to_owned() };
    let name = budget.setting.as_ref().map(|name| match name.value {
        BudgetName::Unlimited => {
            let reason = budget.reason.as_ref().map_or("", |reason| reason.value.as_str());
            format!("none: {reason}")
        }
        name => name.as_str().to_owned(),
    });
    let numbers = [
        ("capacity", &budget.capacity),
        ("initial", &budget.initial),
        ("cost", &budget.cost),
        ("throttled_cost", &budget.throttled_cost),
        ("per_first_try", &budget.per_first_try),
        ("per_first_success", &budget.per_first_success),
        ("per_retry_success", &budget.per_retry_success),
        ("per_failure", &budget.per_failure),
        ("refill_per_second", &budget.refill_per_second),
        ("open_above", &budget.open_above),
        ("max_tokens", &budget.max_tokens),
        ("token_ratio", &budget.token_ratio),
        ("percent", &budget.percent),
    ];
    let numbers = numbers.iter().filter_map(|(name, number)| Some(format!("{name} {}", number.as_ref()?.value)));
    let others = [
        budget.refund_on_success.as_ref().filter(|refund| refund.value).map(|_| "refund_on_success".to_owned()),
        budget.ttl.as_ref().map(|ttl| format!("ttl {}", shown(ttl.value.0))),
        budget.min_per_second.as_ref().map(|least| format!("min_per_second {}", least.value)),
        budget.group.as_ref().map(|group| format!("shared as `{}`", group.value)),
    ];
    name.into_iter().chain(numbers).chain(others.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

pub(super) fn hold(settings: &Settings) -> &'static str {
    match settings.hold.as_deref().copied().unwrap_or(HoldName::Retries) {
        HoldName::Retries => "the retries of all calls wait, first tries go out",
        HoldName::All => "all calls wait",
        HoldName::None => "each call for itself",
    }
}

/// What else retries on the path.
pub(super) fn elsewhere(settings: &Settings) -> String {
    let Some(elsewhere) = &settings.elsewhere else { return "not stated".to_owned() };
    let others = elsewhere.value.iter().map(|other| {
        let place = other.value.place.as_ref().map_or("", |place| place.as_str());
        let by = other.by.as_ref().map_or("", |by| by.value.as_str());
        match other.attempts.as_ref().map_or(0, |attempts| attempts.value) {
            1 => format!("{by} ({place}): switched off"),
            attempts => format!("{by} ({place}): {attempts} attempts"),
        }
    });
    let others = others.collect::<Vec<_>>();
    if others.is_empty() { "nothing".to_owned() } else { others.join("; ") }
}

/// Attempts in all; 1 where it is never repeated.
pub(super) fn attempts(settings: &Settings) -> u32 {
    let stated = settings.attempts.as_ref().and_then(|attempts| attempts.max());
    if settings.never.is_some() { 1 } else { stated.unwrap_or(1) }
}

/// How many requests one call can become, with what else retries.
pub(super) fn requests(settings: &Settings) -> u64 {
    let others = settings.elsewhere.iter().flat_map(|list| &list.value);
    let others = others.filter_map(|other| other.attempts.as_ref()).map(|attempts| u64::from(attempts.value.max(1)));
    others.fold(u64::from(attempts(settings)), u64::saturating_mul)
}

/// Which requests it is for.
pub(super) fn matched(provider: &Provider, operation: &Operation) -> Vec<String> {
    if operation.is_rest {
        return vec![format!("every other request to {}", provider.name.value)];
    }
    operation.matches.iter().map(|text| text.value.clone()).collect()
}
