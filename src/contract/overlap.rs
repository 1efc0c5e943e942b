//! Operations that match the same request although neither is the more specific.

use std::collections::HashMap;

use super::{place::Place, problem::Problem, resolve::Provider, routing::Matcher};
use crate::policy::routes::pattern::Segment;

/// How many pairs of one provider are looked at: enough for any contract that people read.
const PAIRS: usize = 200_000;

struct One<'a> {
    operation: &'a str,
    text: &'a str,
    place: Place,
    matcher: Matcher,
}

/// Warns of each pair. The more specific one wins where one is, which is what such pairs are written for; where each is
/// the more specific in another segment, the leftmost decides, which few readers know.
pub(super) fn warn(provider: &Provider, problems: &mut Vec<Problem>) {
    let mut by_first: HashMap<Option<String>, Vec<One<'_>>> = HashMap::new();
    for operation in &provider.operations {
        for text in &operation.matches {
            let Ok(matcher) = Matcher::parse(text) else { continue };
            let first = match matcher.path.first() {
                Some(Segment::Literal(literal)) => Some(literal.clone()),
                _ => None,
            };
            let one = One { operation: &operation.name, text: &text.value, place: text.place, matcher };
            by_first.entry(first).or_default().push(one);
        }
    }
    let mut left = PAIRS;
    let open = by_first.remove(&None).unwrap_or_default();
    let groups = by_first.values();
    for group in groups {
        for (at, one) in group.iter().enumerate() {
            for other in group[at + 1..].iter().chain(&open) {
                look(provider, one, other, &mut left, problems);
            }
        }
    }
    for (at, one) in open.iter().enumerate() {
        for other in &open[at + 1..] {
            look(provider, one, other, &mut left, problems);
        }
    }
}

fn look(provider: &Provider, one: &One<'_>, other: &One<'_>, left: &mut usize, problems: &mut Vec<Problem>) {
    if *left == 0 || one.operation == other.operation {
        return;
    }
    *left -= 1;
    let methods = match (&one.matcher.method, &other.matcher.method) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    if !methods || !meet(&one.matcher.path, &other.matcher.path) {
        return;
    }
    let within = |a: &One<'_>, b: &One<'_>| {
        (b.matcher.method.is_none() || a.matcher.method == b.matcher.method) && within(&a.matcher.path, &b.matcher.path)
    };
    if within(one, other) || within(other, one) {
        return;
    }
    let (first, second) = if one.place.start <= other.place.start { (one, other) } else { (other, one) };
    let message = format!("`{}` and `{}` match some of the same requests", first.text, second.text);
    let problem = Problem::warning("S18", second.place, message).label("and here").other(first.place, "here");
    let help =
        "segments are compared from the left, and the more specific one wins: say what is meant by a third pattern";
    problems.push(problem.help(help).about(&provider.name, second.operation));
}

/// Whether some path matches both.
fn meet(one: &[Segment], other: &[Segment]) -> bool {
    match (one, other) {
        ([Segment::Rest], [_, ..]) | ([_, ..], [Segment::Rest]) => true,
        ([one, ones @ ..], [other, others @ ..]) => segments_meet(one, other) && meet(ones, others),
        ([], []) => true,
        _ => false,
    }
}

fn segments_meet(one: &Segment, other: &Segment) -> bool {
    match (one, other) {
        (Segment::Literal(one), Segment::Literal(other)) => one == other,
        (Segment::Literal(literal), partly @ Segment::Partly { .. })
        | (partly @ Segment::Partly { .. }, Segment::Literal(literal)) => fits(literal, partly),
        (Segment::Literal(literal), _) | (_, Segment::Literal(literal)) => !literal.is_empty(),
        (Segment::Partly { prefix: a, suffix: b }, Segment::Partly { prefix: c, suffix: d }) => {
            (a.starts_with(c.as_str()) || c.starts_with(a.as_str()))
                && (b.ends_with(d.as_str()) || d.ends_with(b.as_str()))
        }
        _ => true,
    }
}

/// Whether every path of the first is one of the second.
fn within(one: &[Segment], other: &[Segment]) -> bool {
    match (one, other) {
        // The rest is at least one character.
        ([first, ..], [Segment::Rest]) => *first != Segment::Literal(String::new()) || one.len() > 1,
        ([Segment::Rest, ..], _) => false,
        ([one, ones @ ..], [other, others @ ..]) => segment_within(one, other) && within(ones, others),
        ([], []) => true,
        _ => false,
    }
}

fn segment_within(one: &Segment, other: &Segment) -> bool {
    match (one, other) {
        (Segment::Literal(literal), partly @ Segment::Partly { .. }) => fits(literal, partly),
        (Segment::Literal(literal), Segment::Parameter) => !literal.is_empty(),
        (Segment::Partly { prefix, suffix }, Segment::Partly { prefix: p, suffix: s }) => {
            prefix.starts_with(p.as_str()) && suffix.ends_with(s.as_str())
        }
        (Segment::Partly { .. }, Segment::Parameter) => true,
        (one, other) => one == other,
    }
}

fn fits(literal: &str, partly: &Segment) -> bool {
    let Segment::Partly { prefix, suffix } = partly else { return false };
    literal.len() > prefix.len() + suffix.len()
        && literal.starts_with(prefix.as_str())
        && literal.ends_with(suffix.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<Segment> {
        Matcher::parse(text).unwrap().path
    }

    #[test]
    fn what_meets_and_what_lies_within() {
        for (one, other, meets, inside) in [
            ("/a/{x}", "/{y}/b", true, false),
            ("/a/b", "/a/{x}", true, true),
            ("/v1/uploads/{*rest}", "/v1/{*rest}", true, true),
            ("/a/{x}:cancel", "/a/{x}", true, true),
            ("/a/{x}:cancel", "/a/{x}:start", false, false),
            ("/a/b", "/a/c", false, false),
            ("/a", "/a/b", false, false),
            ("/a/{*rest}", "/a/{x}", true, false),
        ] {
            let (one_path, other_path) = (path(one), path(other));
            assert_eq!(meet(&one_path, &other_path), meets, "{one} {other}");
            assert_eq!(within(&one_path, &other_path), inside, "{one} {other}");
        }
    }
}
