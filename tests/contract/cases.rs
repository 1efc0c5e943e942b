//! The cases of other projects' configurations, by their numbers.

use http::Request;
use redial::{Policy, RequestHead, contract::Contract};

use crate::{
    command,
    support::{SHOP, contract, refused, the_problem},
};

/// Waits of next to nothing, and no jitter.
#[test]
fn c148_an_empty_range_of_jitter() {
    for initial in ["0s", "1ms", "49ms"] {
        let problem = the_problem(&SHOP.replace("\"500ms\"", &format!("\"{initial}\"")));
        assert!(problem.contains("S9: backoff `initial`"), "{problem}");
    }
    let text = SHOP.replace("\"5s\" }", "\"5s\", jitter = \"none\", reason = \"one client in the world\" }");
    contract(&text);
    let arguments = ["explain", "-", "GET", "https://api.shop.example/", "--status", "503"];
    let said = command::fed(&text, &arguments).out;
    assert!(said.contains("500ms to 500ms"), "no jitter is the same wait each time: {said}");
}

/// Values that other libraries swap, clamp or overflow with.
#[test]
fn c149_nothing_is_silently_swapped() {
    for (instead_of, this, key) in [
        ("\"500ms\", multiplier = 2.0, max = \"5s\"", "\"100ms\", multiplier = 2.0, max = \"30ms\"", "`max`"),
        ("multiplier = 2.0", "multiplier = 0.5", "`multiplier`"),
        ("multiplier = 2.0", "multiplier = -2.0", "`multiplier`"),
        ("multiplier = 2.0", "multiplier = nan", "number"),
        ("multiplier = 2.0", "multiplier = 2.0, jitter = 1.5", "jitter"),
        ("attempts  = 3", "attempts = 18446744073709551615", "number"),
        ("attempts  = 3", "attempts = -3", "number"),
        ("\"10s\"", "\"-10s\"", "sign"),
    ] {
        let error = refused(&SHOP.replace(instead_of, this));
        for finding in error.findings() {
            assert_eq!(finding.file(), "shop.toml");
            assert!((6..=8).contains(&finding.line()), "{this}: {finding:?}");
        }
        let text = error.to_string();
        assert!(text.contains(key) && text.contains("shop.toml:"), "{this}: {text}");
    }
}

/// There is always a total, and zero is no word for "unlimited".
#[test]
fn c150_a_total_of_zero_or_none() {
    let zero = the_problem(&SHOP.replace("\"10s\"", "\"0s\""));
    assert!(zero.contains("S8: the total timeout is zero"), "{zero}");
    let none = the_problem(&SHOP.replace(", total = \"10s\"", ""));
    assert!(none.contains("S8: the provider has no total timeout"), "{none}");
}

#[test]
fn c152_durations() {
    for (written, millis) in [("\"3s\"", 3_000), ("\"1500ms\"", 1_500), ("\"1m30s\"", 90_000)] {
        let text = SHOP.replace("attempt = \"2s\", total = \"10s\"", &format!("attempt = {written}, total = \"2m\""));
        let policy = contract(&text).policy("shop", "any").unwrap();
        let plan = policy.plan(&RequestHead::of(&Request::new(())));
        assert_eq!(plan.timeouts().attempt.as_millis(), millis, "{written}");
    }
    for (written, words) in [
        ("30", "which unit? \"30s\" are seconds, \"30ms\" milliseconds"),
        ("\"30\"", "which unit? \"30s\" are seconds, \"30ms\" milliseconds"),
        ("\"\"", "the duration is empty"),
        ("1.5", "a duration such as \"2s\" is wanted here"),
    ] {
        let problem = the_problem(&SHOP.replace("attempt = \"2s\"", &format!("attempt = {written}")));
        assert!(problem.starts_with("6:25:") && problem.contains(words), "{written}: {problem}");
    }
}

#[test]
fn c153_which_route_and_what_it_inherits() {
    let more = r#"
        [[provider.shop.operation]]
        name  = "v1"
        match = "/v1/{*rest}"

        [[provider.shop.operation]]
        name     = "uploads"
        match    = "/v1/uploads/{*rest}"
        timeouts = { attempt = "8s" }
    "#;
    let contract = contract(&format!("{SHOP}{more}"));
    for (uri, operation, attempt) in [
        ("https://API.Shop.Example:443/v1/uploads/a%2Fb?x=1", "uploads", 8),
        ("https://api.shop.example/v1/uploads", "v1", 2),
        ("http://api.shop.example:80/v1/x?y", "v1", 2),
        ("https://api.shop.example/v1%2Fuploads/x", "any", 2),
    ] {
        let request = Request::get(uri).body(()).unwrap();
        let plan = contract.plan(&RequestHead::of(&request));
        assert_eq!((plan.operation(), plan.timeouts().attempt.as_secs()), (operation, attempt), "{uri}");
        assert_eq!(plan.timeouts().total.as_secs(), 10, "unset keys are inherited");
    }
    let other = Request::get("https://api.shop.example.evil/v1/x").body(()).unwrap();
    assert_eq!(contract.plan(&RequestHead::of(&other)).max_attempts(), 1);

    let tie = more.replace("/v1/uploads/{*rest}", "/v1/{*other}");
    let error = Contract::parse("tie.toml", format!("{SHOP}{tie}")).unwrap_err();
    assert!(error.findings()[0].to_string().contains("`uploads` matches the same requests as `v1`"), "{error}");
}
