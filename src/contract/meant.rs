//! What a contract says without effect: allowed, but probably not meant.

use super::{
    answers,
    duration::shown,
    problem::Problem,
    resolve::{Operation, Provider},
};

pub(super) fn warn(provider: &Provider, problems: &mut Vec<Problem>) {
    for operation in &provider.operations {
        let mut found = Vec::new();
        basis(operation, &mut found);
        waits(operation, &mut found);
        successes(operation, &mut found);
        problems.extend(found.into_iter().map(|problem| problem.about(&provider.name, &operation.name)));
    }
}

/// S6: each rule says on what it rests; one that does not is taken for the project's own.
fn basis(operation: &Operation, problems: &mut Vec<Problem>) {
    for answer in operation.settings.answer.iter().flat_map(|answers| &answers.value) {
        if answer.basis.is_none() {
            let message = "the rule does not say on what it rests: nobody knows whether the provider documents it";
            let problem = Problem::warning("S6", answer.place, message).label("`basis` is missing").missing(["basis"]);
            let help =
                "write `basis = \"official\"` (documented), `\"practice\"` (seen) or `\"project\"` (decided here)";
            problems.push(problem.help(help));
        }
    }
}

/// A wait is for what is repeated, and within the time of the call.
fn waits(operation: &Operation, problems: &mut Vec<Problem>) {
    let total = operation.settings.timeouts.as_ref().and_then(|timeouts| timeouts.total.as_ref());
    for answer in operation.settings.answer.iter().flat_map(|answers| &answers.value) {
        let Some(wait) = &answer.wait else { continue };
        if answer.means.is_some() && !answers::passes(answer) {
            let problem = Problem::warning("S17", wait.place, "the answer is final, so that nothing waits after it");
            problems.push(problem.label("never waited").help("leave `wait` out, or say that the answer passes"));
            continue;
        }
        if let (Some(least), Some(total)) = (&wait.at_least, total) {
            if least.value > total.value {
                let (least_place, total_place) = (least.place, total.place);
                let (least, total) = (shown(least.value.0), shown(total.value.0));
                let message = format!("a wait of {least} does not fit into a call of {total}");
                let problem = Problem::warning("S8", least_place, message).label("so it is never repeated");
                let help = "raise `total`, or say that the answer is final";
                problems.push(problem.other(total_place, "this total").help(help));
            }
        }
    }
}

/// S5: what succeeds is not final for being listed.
fn successes(operation: &Operation, problems: &mut Vec<Problem>) {
    let business = operation.settings.business.as_ref().and_then(|business| business.status.as_ref());
    for status in business.into_iter().flat_map(|list| &list.value).filter(|status| status.value.0 < 400) {
        let message = format!("{} is no failure: listing it as business says nothing", status.value.0);
        let problem = Problem::warning("S5", status.place, message).label("a success");
        problems.push(problem.help("leave it out: only a rule on answers speaks of what succeeds"));
    }
}
