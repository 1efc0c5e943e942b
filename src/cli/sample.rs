//! Requests that stand for all that a pattern matches.

use http::{Method, Request, Uri};

use crate::contract::{
    resolve::{Operation, Provider},
    routing::Matcher,
};
use crate::policy::routes::pattern::Segment;

/// What stands for a parameter: nothing that a contract has for a literal.
pub(super) const ANY: &str = "x-any-x";

/// What no operation of a provider matches, as far as that can be known.
pub(super) const REST: &str = "/x-any-x/of-the-rest/x";

/// A path that this pattern matches.
pub(super) fn path(segments: &[Segment]) -> String {
    let mut out = String::new();
    for segment in segments {
        out.push('/');
        match segment {
            Segment::Literal(literal) => out.push_str(literal),
            Segment::Partly { prefix, suffix } => out.extend([prefix.as_str(), ANY, suffix.as_str()]),
            Segment::Parameter => out.push_str(ANY),
            Segment::Rest => out.extend([ANY, "/", ANY]),
        }
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

/// A host that a contract's stands for.
pub(super) fn host(written: &str) -> String {
    written.strip_prefix("*.").map_or_else(|| written.to_owned(), |suffix| format!("{ANY}.{suffix}"))
}

/// A request without headers; `None` where a contract's text makes none.
pub(super) fn request(host: &str, method: &Method, path: &str) -> Option<Request<()>> {
    let uri: Uri = format!("https://{}{path}", self::host(host)).parse().ok()?;
    Request::builder().method(method).uri(uri).body(()).ok()
}

/// Each pattern of an operation: its own method, or none; a path that it matches; and how it is written.
pub(super) fn patterns(operation: &Operation) -> Vec<(Option<Method>, String, String)> {
    if operation.is_rest {
        return vec![(None, REST.to_owned(), "every other request".to_owned())];
    }
    let read = operation.matches.iter().filter_map(|text| {
        let matcher = Matcher::parse(text).ok()?;
        let shown = text.value.split_whitespace().last().unwrap_or_default().to_owned();
        Some((matcher.method, path(&matcher.path), shown))
    });
    read.collect()
}

/// The hosts that tell two versions of a provider apart: one that both have, and all that only one has.
pub(super) fn telling_hosts<'a>(one: &'a Provider, other: Option<&'a Provider>) -> Vec<&'a str> {
    let others = || other.into_iter().flat_map(|other| &other.hosts);
    let mut shared = one.hosts.iter().filter(|host| others().any(|other| other.value == host.value));
    let first = shared.next().map(|host| host.value.as_str());
    let only = one.hosts.iter().filter(|host| !others().any(|other| other.value == host.value));
    first.into_iter().chain(only.map(|host| host.value.as_str())).collect()
}
