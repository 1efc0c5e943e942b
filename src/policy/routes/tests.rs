use std::time::Duration;

use http::Request;
use proptest::prelude::*;

use super::*;
use crate::{Timeouts, Transient};

fn policy(name: &str) -> StandardPolicy {
    let name = if name.is_empty() { "blank" } else { name };
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(9) };
    StandardPolicy::builder("test", timeouts, Transient::usual()).operation(name).build().unwrap()
}

fn default() -> StandardPolicy {
    StandardPolicy::unretried("default", Duration::from_secs(30)).unwrap()
}

/// Routes whose operations are named by their own text.
fn routes(texts: &[&str]) -> Result<Routes, RoutesError> {
    texts.iter().fold(Routes::builder(default()), |routes, text| routes.route(*text, policy(text))).build()
}

fn picked(routes: &Routes, method: &str, uri: &str) -> String {
    let request = Request::builder().method(method).uri(uri).body(()).unwrap();
    let plan = routes.plan(&RequestHead::of(&request));
    if plan.provider() == "default" { "default".to_owned() } else { plan.operation().to_owned() }
}

fn problems(texts: &[&str]) -> Vec<String> {
    routes(texts).unwrap_err().problems().map(str::to_owned).collect()
}

#[test]
fn the_most_specific_wins() {
    let all = [
        "api.example:8443 GET /a/{x}",
        "api.example GET /a/b",
        "api.example GET /a/{x}",
        "api.example GET /a/{x}:cancel",
        "api.example GET /a/{*rest}",
        "api.example /a/b",
        "api.example /a/{x}/c",
        "*.example GET /{*rest}",
        "*.api.example GET /{*rest}",
        "GET /{*rest}",
        "/health",
    ];
    let routes = routes(&all).unwrap();
    for (method, uri, expected) in [
        ("GET", "https://api.example/a/b", "api.example GET /a/b"),
        ("GET", "https://api.example/a/b?x=1", "api.example GET /a/b"),
        ("POST", "https://api.example/a/b", "api.example /a/b"),
        ("GET", "https://api.example/a/1", "api.example GET /a/{x}"),
        ("GET", "https://api.example/a/1:cancel", "api.example GET /a/{x}:cancel"),
        ("GET", "https://api.example/a/1/2", "api.example GET /a/{*rest}"),
        // A path outweighs a method.
        ("GET", "https://api.example/a/1/c", "api.example /a/{x}/c"),
        ("GET", "https://API.Example/a/b", "api.example GET /a/b"),
        ("GET", "https://api.example:443/a/b", "api.example GET /a/b"),
        // A port outweighs a path; what it does not have is looked for without it.
        ("GET", "https://api.example:8443/a/b", "api.example:8443 GET /a/{x}"),
        ("POST", "https://api.example:8443/a/b", "api.example /a/b"),
        // An exact host that has no such route leaves it to a suffix, the longest first.
        ("GET", "https://api.example/other", "*.example GET /{*rest}"),
        ("GET", "https://eu.api.example/a/b", "*.api.example GET /{*rest}"),
        ("GET", "https://www.example/a/b", "*.example GET /{*rest}"),
        ("GET", "https://example/a/b", "GET /{*rest}"),
        ("PUT", "https://api.example/health", "/health"),
        ("PUT", "/health", "/health"),
        ("PUT", "https://api.example/other", "default"),
        // Percent-encoding is no separator.
        ("GET", "https://api.example/a/x%2Fy", "api.example GET /a/{x}"),
    ] {
        assert_eq!(picked(&routes, method, uri), expected, "{method} {uri}");
    }
    assert_eq!(routes.unmatched(), 1);
}

#[test]
fn a_relative_target_is_routed_by_its_host_header() {
    let routes = routes(&["api.example GET /a", "GET /a"]).unwrap();
    let request = Request::get("/a").header("host", "API.example:8080").body(()).unwrap();
    assert_eq!(routes.plan(&RequestHead::of(&request)).operation(), "api.example GET /a");
    assert_eq!(picked(&routes, "GET", "/a"), "GET /a");
}

#[test]
fn an_unmatched_request_is_not_repeated_and_is_counted() {
    let routes = routes(&["api.example GET /a"]).unwrap();
    let request = Request::get("https://api.example/b").body(()).unwrap();
    let plan = routes.plan(&RequestHead::of(&request));
    assert_eq!((plan.provider(), plan.max_attempts()), ("default", 1));
    assert_eq!(plan.timeouts().total, Duration::from_secs(30));
    assert_eq!(routes.clone().unmatched(), 1);
}

#[test]
fn an_ipv6_host_is_a_host() {
    let routes = routes(&["[::1]:8080 GET /a", "[::1] GET /b"]).unwrap();
    assert_eq!(picked(&routes, "GET", "http://[::1]:8080/a"), "[::1]:8080 GET /a");
    assert_eq!(picked(&routes, "GET", "http://[::1]/b"), "[::1] GET /b");
}

#[test]
fn ties_are_refused_and_both_named() {
    let all = problems(&["a.example GET /x/{id}", "A.example GET /x/{name}", "a.example POST /x/{id}"]);
    assert_eq!(
        all,
        ["the route `A.example GET /x/{name}` ties with `a.example GET /x/{id}`: no request tells them apart, so \
          leave one of them out"]
    );
}

#[test]
fn every_route_at_fault_is_named() {
    let all = problems(&[
        "",
        "a.example GET",
        "a.example GET /x?y=1",
        "one two GET /x",
        "https://a.example /x",
        "*example GET /x",
        "*.*.example GET /x",
        "a.example GET /{a}{b}",
        "a.example GET /{*rest}/x",
        "a.example GET /{unclosed",
        &"/x".repeat(65),
    ]);
    assert_eq!(all.len(), 11, "{all:#?}");
}

#[test]
fn a_default_that_repeats_is_refused() {
    let error = Routes::builder(policy("any")).build().unwrap_err();
    assert!(error.to_string().contains("(S1)"), "{error}");
}

/// A pattern of a few segments from a small alphabet, so that many overlap.
fn pattern() -> impl Strategy<Value = String> {
    let segment = prop_oneof![Just("a"), Just("b"), Just("{x}"), Just("{x}:c"), Just("a:c")];
    (prop::collection::vec(segment, 1..4), any::<bool>()).prop_map(|(segments, rest)| {
        let path = segments.join("/");
        if rest { format!("/{path}/{{*rest}}") } else { format!("/{path}") }
    })
}

/// Whether a pattern matches, written as plainly as can be.
fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/').peekable(), path.split('/').peekable());
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some("{*rest}"), Some(rest)) => return !rest.is_empty() || path.peek().is_some(),
            (Some("{x}"), Some(segment)) if !segment.is_empty() => {}
            (Some("{x}:c"), Some(segment)) if segment.len() > 2 && segment.ends_with(":c") => {}
            (Some(literal), Some(segment)) if literal == segment => {}
            _ => return false,
        }
    }
}

fn weight(pattern: &str) -> Vec<u8> {
    let weigh = |segment: &str| match segment {
        "{*rest}" => 3,
        "{x}" => 2,
        "{x}:c" => 1,
        _ => 0,
    };
    pattern.split('/').map(weigh).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_most_specific_route_wins(
        patterns in prop::collection::btree_set(pattern(), 1..8),
        path in prop::collection::vec(prop::sample::select(vec!["a", "b", "z", "a:c", "z:c"]), 1..5),
    ) {
        let patterns: Vec<_> = patterns.iter().map(String::as_str).collect();
        let Ok(routes) = routes(&patterns) else { return Ok(()) };
        let path = format!("/{}", path.join("/"));
        let expected = patterns.iter().filter(|pattern| matches(pattern, &path)).min_by_key(|pattern| weight(pattern));
        let picked = picked(&routes, "GET", &format!("http://any.example{path}"));
        prop_assert_eq!(&picked, expected.unwrap_or(&"default"), "{} among {:?}", path, patterns);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}", path in "/\\PC{0,30}") {
        for text in [text.clone(), format!("host GET /{text}"), format!("{text} /x"), format!("*.{text}:8 /{{{text}}}")] {
            if let Ok(routes) = Routes::builder(default()).route(text, policy("any")).build() {
                if let Ok(request) = Request::get(&path).body(()) {
                    routes.plan(&RequestHead::of(&request));
                }
            }
        }
    }
}
