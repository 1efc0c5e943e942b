//! Rules on answers: from what a file says to what the engine runs.

use super::{
    names::{Basis, Means},
    place::At,
    problem::Problem,
    resolve::Provider,
    scalar::HeaderTest,
    settings::{Answer, BodyTest, Wait, When},
};
use crate::policy::AnswerRule;

/// Whether the rule lets an answer be repeated.
pub(super) fn passes(answer: &Answer) -> bool {
    matches!(answer.means.as_deref(), Some(Means::Transient | Means::Rejected))
}

/// The rule that the engine runs; `None` where it does not say enough to be one.
pub(super) fn rule(written: &At<Answer>, provider: &Provider, problems: &mut Vec<Problem>) -> Option<AnswerRule> {
    let Answer { when, means, wait, basis, because } = &written.value;
    let Some(means) = means else {
        let problem = Problem::broken("S6", written.place, "the rule does not say what the answer means");
        let help = "write `means = \"transient\"`, `\"rejected\"`, `\"business\"`, `\"success\"` or `\"verify\"`";
        problems.push(problem.label("`means` is missing").missing(["means"]).help(help));
        return None;
    };
    let source = provider.source.as_ref().and_then(|source| source.url.as_ref());
    let official = basis.as_deref() == Some(&Basis::Official);
    let because = because.as_ref().map(|because| because.value.clone());
    let because = because.or_else(|| source.filter(|_| official).map(|url| url.value.clone()));
    let mut rule = match means.value {
        Means::Transient => AnswerRule::transient(),
        Means::Rejected => AnswerRule::rejected(because.clone().unwrap_or_default()),
        Means::Business => AnswerRule::business(),
        Means::Success => AnswerRule::success(),
        Means::Verify => AnswerRule::verify(),
    };
    if let Some(because) = because {
        rule = rule.because(because);
    }
    if let Some(when) = when {
        rule = conditions(rule, &when.value, problems);
    }
    if let Some(wait) = wait {
        rule = waits(rule, wait, problems);
    }
    let broken = rule.broken();
    for (number, text) in &broken {
        let what = text.split_once(": ").map_or(text.as_str(), |(what, _)| what);
        let (place, missing, label, help) = match *number {
            "S7" => (
                means.place,
                "because",
                "documented where?",
                "write `because = \"where it is documented\"`, or `basis = \"official\"` with the provider's `contract.url`",
            ),
            "S5" => (
                status_place(written),
                "because",
                "passes by itself?",
                "write `because = \"why it passes by itself\"`, or another meaning",
            ),
            "S11" => (
                wait.as_ref().map_or(written.place, |wait| wait.place),
                "wait",
                "too long",
                "at most a day; what takes longer belongs to a job",
            ),
            _ => (written.place, "status", "which answers?", "write `when = { status = [403, 429] }`"),
        };
        problems.push(Problem::broken(number, place, what).label(label).missing([missing]).help(help));
    }
    // The builder of the policy would refuse it once more.
    broken.is_empty().then_some(rule)
}

fn status_place(written: &At<Answer>) -> super::place::Place {
    let when = written.when.as_ref();
    when.and_then(|when| when.status.as_ref()).map_or(written.place, |status| status.place)
}

fn conditions(mut rule: AnswerRule, when: &When, problems: &mut Vec<Problem>) -> AnswerRule {
    let When { status, header, body, after } = when;
    if let Some(status) = status {
        rule = rule.status(status.iter().map(|status| status.value.0));
    }
    for (name, test) in header.iter().flat_map(|named| &named.value.0) {
        let Ok(header) = http::HeaderName::from_bytes(name.as_bytes()) else {
            let problem = Problem::unreadable(name.place, "this is not the name of a header").label("not a header");
            problems.push(problem.help("letters, digits and `-`, as in \"retry-after\""));
            continue;
        };
        rule = match &test.value {
            HeaderTest::Text(text) => rule.header(header, text.as_str()),
            HeaderTest::Present(_) => rule.header_present(header),
        };
    }
    if let Some(body) = body {
        rule = in_body(rule, body, problems);
    }
    if after.is_some() { rule.after_unknown() } else { rule }
}

fn in_body(mut rule: AnswerRule, body: &At<BodyTest>, problems: &mut Vec<Problem>) -> AnswerRule {
    let BodyTest { json, contains, equals } = &body.value;
    let pointer = json.as_ref().filter(|json| json.starts_with('/'));
    let (Some(pointer), true) = (pointer, contains.is_some() || equals.is_some()) else {
        let place = json.as_ref().map_or(body.place, |json| json.place);
        let problem =
            Problem::broken("S6", place, "a look into a body needs a JSON pointer, and what is to be found there");
        let help = "write `body = { json = \"/error/code\", equals = \"slow_down\" }`, or `contains`";
        problems.push(problem.label("where, and what?").missing(["json", "contains", "equals"]).help(help));
        return rule;
    };
    if let Some(text) = contains {
        rule = rule.json_contains(pointer.as_str(), text.as_str());
    }
    match equals {
        Some(value) => rule.json_equals(pointer.as_str(), value.value.0.as_str()),
        None => rule,
    }
}

fn waits(mut rule: AnswerRule, wait: &At<Wait>, problems: &mut Vec<Problem>) -> AnswerRule {
    let Wait { header, unit, at_least, otherwise } = &wait.value;
    match (header, unit) {
        (Some(header), Some(unit)) => rule = rule.wait_header(header.value.0.clone(), unit.unit()),
        (None, None) if at_least.is_some() && otherwise.is_none() => {}
        _ => {
            let problem = Problem::broken("S17", wait.place, "a wait needs a header with its unit, or a least time");
            let help = "write `wait = { header = \"x-reset\", unit = \"epoch-s\" }` or `wait = { at_least = \"60s\" }`";
            problems.push(problem.label("how long?").missing(["header", "unit", "at_least"]).help(help));
        }
    }
    if let Some(otherwise) = otherwise {
        rule = rule.otherwise(otherwise.value.0);
    }
    match at_least {
        Some(least) => rule.at_least(least.value.0),
        None => rule,
    }
}
