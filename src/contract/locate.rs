//! Where in a file the rule is broken that the engine's builder refuses a policy for.
//!
//! The engine alone knows the rules; it names the value in its text, and how to mend it in the words of its builder.
//! Here the value is found in the file, and the words are those of the file.

use super::{
    place::Place,
    problem::Problem,
    resolve::Operation,
    settings::{Backoff, Failures},
};

/// The operation, in a sentence.
pub(super) fn named(operation: &Operation) -> String {
    if operation.is_rest { "the provider".to_owned() } else { format!("`{}`", operation.name.value) }
}

/// The engine's refusal, at its place.
pub(super) fn located(rule: &'static str, text: &str, operation: &Operation) -> Problem {
    let what = text.split_once(": ").map_or(text, |(what, _)| what);
    let (place, label, help) = match rule {
        _ if text.starts_with("the code ") => code(rule, text, operation),
        "S1" | "S5" => transient(text, operation),
        "S7" => (stated(operation), "why?", "say in words why a repeat is safe".to_owned()),
        "S8" => timeouts(text, operation),
        "S9" | "S10" | "S11" => backoff(rule, text, operation),
        "S12" => attempts(text, operation),
        "S20" => {
            let budget = operation.settings.budget.as_ref();
            let place = budget.map_or(operation.name.place, |budget| budget.place);
            (place, "bounded by what?", "write `reason = \"…\"`, or `setting = \"default\"`".to_owned())
        }
        _ => (operation.name.place, "here", "see the rule".to_owned()),
    };
    let unreasoned = matches!(rule, "S10" | "S12" | "S20") && text.contains("reason");
    Problem::broken(rule, place, what).label(label).missing(unreasoned.then_some("reason")).help(help)
}

type Found = (Place, &'static str, String);

fn stated(operation: &Operation) -> Place {
    operation.settings.idempotent.as_ref().map_or(operation.name.place, |idempotent| idempotent.place)
}

/// The first number of the text is the status.
fn transient(text: &str, operation: &Operation) -> Found {
    let Some(written) = &operation.settings.transient else {
        return (operation.name.place, "here", String::new());
    };
    let Failures { status, faults, .. } = &written.value;
    let number = text.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<u16>().ok());
    let listed = status.iter().flat_map(|list| &list.value).find(|status| Some(status.value.0) == number);
    if let Some(status) = listed {
        let code = status.value.0;
        let help = match code {
            400..500 => format!(
                "leave it out, or write a rule: `[[….answer]]` with `when = {{ status = {code} }}`, `means = \"transient\"` \
                 and `because = \"…\"`"
            ),
            _ => "leave it out".to_owned(),
        };
        return (status.place, "passes by itself?", help);
    }
    let unclassified = faults.iter().flat_map(|list| &list.value).find(|fault| fault.as_str() == "unclassified");
    let place = unclassified.map_or(written.place, |fault| fault.place);
    (place, "nobody knows what failed", "name what failed; what nobody knows is never repeated".to_owned())
}

/// The third word is the code.
fn code(rule: &str, text: &str, operation: &Operation) -> Found {
    let name = text.split(' ').nth(2).unwrap_or_default();
    let written = operation.settings.transient.as_ref();
    let mut listed = written.iter().flat_map(|list| list.grpc.iter()).flat_map(|list| &list.value);
    let place = listed.find(|code| code.name().as_str() == name).map(|code| code.place);
    let help = match rule {
        "S7" => "by its own meaning it may have been processed: list its name alone".to_owned(),
        _ => format!("leave it out, or write `{{ code = \"{name}\", because = \"…\" }}`"),
    };
    (place.unwrap_or(operation.name.place), "passes by itself?", help)
}

fn timeouts(text: &str, operation: &Operation) -> Found {
    let timeouts = operation.settings.timeouts.as_ref();
    let own = |total: bool| {
        let written =
            timeouts.and_then(|timeouts| if total { timeouts.total.as_ref() } else { timeouts.attempt.as_ref() });
        written.map(|written| written.place).or(timeouts.map(|timeouts| timeouts.place)).unwrap_or(operation.name.place)
    };
    let (total, help) = match text {
        text if text.contains("than the total") => (false, "lower it, or raise `total`: an attempt is one of several"),
        text if text.contains("at most a day") => (true, "at most a day; what takes longer belongs to a job"),
        text if text.contains("total timeout is zero") => {
            (true, "give the time that it may take; there is no \"unlimited\"")
        }
        _ => (false, "give the time that it may take; there is no \"unlimited\""),
    };
    (own(total), "not so", help.to_owned())
}

/// The first name in backticks is the value.
fn backoff(rule: &str, text: &str, operation: &Operation) -> Found {
    let Some(written) = &operation.settings.backoff else {
        return (operation.name.place, "here", String::new());
    };
    let Backoff { initial, multiplier, max, floor, jitter, reason: _ } = &written.value;
    let quoted = if rule == "S10" { "jitter" } else { text.split('`').nth(1).unwrap_or_default() };
    let place = match quoted {
        "initial" => initial.as_ref().map(|value| value.place),
        "multiplier" => multiplier.as_ref().map(|value| value.place),
        "max" => max.as_ref().map(|value| value.place),
        "floor" => floor.as_ref().map(|value| value.place),
        _ if text.contains("no room") => floor.as_ref().or(initial.as_ref()).map(|value| value.place),
        _ => jitter.as_ref().map(|value| value.place),
    };
    let help = match (rule, quoted) {
        ("S10", _) if text.contains("no room") => {
            "lower `floor` or raise `initial`, or write `jitter = \"none\"` with a `reason`"
        }
        ("S10", _) => "leave `jitter` out, or write `reason = \"…\"` beside it",
        (_, "floor") if text.contains("zero") || text.contains("timers") => {
            "state at least 1ms; 50ms and more spread better"
        }
        (_, "multiplier") => "state 1.0 or more; 2.0 doubles the wait each time",
        _ if text.contains("a day") => "at most a day; what takes longer belongs to a job",
        (_, "initial") if text.contains("zero") => "state a first wait above zero",
        (_, "initial") => "the order is `floor`, `initial`, `max`, from short to long",
        _ => "the order is `floor`, `initial`, `max`, from short to long",
    };
    (place.unwrap_or(written.place), "not so", help.to_owned())
}

fn attempts(text: &str, operation: &Operation) -> Found {
    let place = operation.settings.attempts.as_ref().map_or(operation.name.place, |attempts| attempts.place);
    if text.contains("requests a call") {
        let place = operation.settings.elsewhere.as_ref().map_or(place, |elsewhere| elsewhere.place);
        let help = "switch one of them off, or, for at most 9 in all, write `attempts = { max = 2, reason = \"…\" }`";
        return (place, "they multiply", help.to_owned());
    }
    if text.contains("= 0") {
        return (place, "none at all?", "the first try counts, so 1 means never repeated".to_owned());
    }
    if text.contains("without a reason") {
        let help = "2 or 3 are enough, or write `attempts = { max = 5, reason = \"…\" }`";
        return (place, "why so many?", help.to_owned());
    }
    (place, "too many", "at most 9; what needs more belongs to a job".to_owned())
}
