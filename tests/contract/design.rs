//! The example of the format, run.

use http::{HeaderMap, Request, StatusCode};
use redial::{Class, Evidence, Outcome, Policy, RequestHead, contract::Contract};

use crate::support::DESIGN;

#[test]
fn the_example_loads_and_is_a_policy() {
    let contract = Contract::parse("design.toml", DESIGN).unwrap();
    // It leaves one thing unsaid: on what its second rule rests (S6).
    let warnings: Vec<_> = contract.warnings().iter().map(|found| (found.rule(), found.line())).collect();
    assert_eq!(warnings, [(Some("S6"), 28)], "{:?}", contract.warnings());

    let put = Request::put("https://API.GitHub.com:443/repos/o/r/contents/a/b%2Fc?x=1").body(()).unwrap();
    let plan = contract.plan(&RequestHead::of(&put));
    assert_eq!((plan.provider(), plan.operation(), plan.max_attempts()), ("github", "contents.put", 3));
    assert_eq!(plan.timeouts().attempt.as_secs(), 10);
    assert_eq!(plan.evidence(), Some(&Evidence::Method));

    let mut headers = HeaderMap::new();
    let judged = |headers: &HeaderMap, status, attempt, unknown| {
        contract.judge(&plan, &Outcome::answer(status, headers).of_attempt(attempt, unknown))
    };
    assert_eq!(judged(&headers, StatusCode::BAD_GATEWAY, 1, false).class(), Class::Transient);
    assert_eq!(judged(&headers, StatusCode::CONFLICT, 1, false).class(), Class::Permanent);
    assert_eq!(judged(&headers, StatusCode::CONFLICT, 2, true).class(), Class::Verify);
    assert_eq!(judged(&headers, StatusCode::FORBIDDEN, 1, false).class(), Class::Permanent);
    headers.insert("x-ratelimit-remaining", "0".parse().unwrap());
    let limited = judged(&headers, StatusCode::FORBIDDEN, 1, false);
    assert_eq!(limited.class(), Class::Transient);
    assert_eq!(limited.rejected_because(), Some("https://docs.github.com/rest"));
}

#[test]
fn what_no_operation_matches_is_the_providers() {
    let contract = Contract::parse("design.toml", DESIGN).unwrap();
    for (uri, operation) in [("/", "any"), ("/user", "any"), ("/repos/o/r/contents/x", "any")] {
        let request = Request::post(format!("https://api.github.com{uri}")).body(()).unwrap();
        let plan = contract.plan(&RequestHead::of(&request));
        assert_eq!((plan.provider(), plan.operation(), plan.evidence()), ("github", operation, None), "{uri}");
    }
    let elsewhere = Request::get("https://other.example/").body(()).unwrap();
    let plan = contract.plan(&RequestHead::of(&elsewhere));
    assert_eq!((plan.provider(), plan.max_attempts()), ("unknown", 1));
    assert_eq!(contract.unmatched(), 1);
}
