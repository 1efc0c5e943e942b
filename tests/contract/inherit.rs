//! What inherits from what, what is shared, and environments.

use http::{HeaderMap, Request, StatusCode};
use redial::{Class, Outcome, Plan, Policy, RequestHead, contract::Contract};

use crate::support::{SHOP, contract};

fn plan(contract: &Contract, method: &str, uri: &str) -> Plan {
    contract.plan(&RequestHead::of(&Request::builder().method(method).uri(uri).body(()).unwrap()))
}

fn class(contract: &Contract, plan: &Plan, status: u16) -> Class {
    contract.judge(plan, &Outcome::answer(StatusCode::from_u16(status).unwrap(), &HeaderMap::new())).class()
}

const DEFAULTS: &str = r#"
format = 1

[defaults]
timeouts  = { attempt = "1s", total = "9s" }
attempts  = 2
backoff   = { initial = "200ms", multiplier = 2.0, max = "2s" }
transient = { status = [503, 504], faults = ["connect"] }
elsewhere = []
fallback  = "none"

[[defaults.answer]]
when  = { status = 423 }
means = "business"

[provider.a]
hosts    = ["a.example"]
contract = { url = "https://a.example", reviewed = 2026-11-30, owner = "team" }

[provider.b]
hosts     = ["b.example:8443"]
contract  = { url = "https://b.example", reviewed = 2026-11-30, owner = "team" }
timeouts  = { attempt = "3s" }
transient = { status = [500] }

[[provider.b.answer]]
when  = { status = 409 }
means = "verify"

[[provider.b.operation]]
name     = "put"
match    = ["PUT /x/{id}", "PATCH /x/{id}"]
attempts = { max = 4, reason = "it settles within minutes" }
timeouts = { total = "20s" }

[[provider.b.operation.answer]]
when    = { status = 409 }
means   = "transient"
because = "the store settles"

[env.test.defaults]
attempts = 1

[env.test.provider.b]
hosts = ["b.test"]

[[env.test.provider.b.operation]]
name     = "put"
timeouts = { attempt = "7s" }
attempts = 3
"#;

#[test]
fn operation_over_provider_over_defaults() {
    let contract = contract(DEFAULTS);
    let a = plan(&contract, "GET", "http://a.example/");
    assert_eq!((a.max_attempts(), a.timeouts().attempt.as_secs(), a.timeouts().total.as_secs()), (2, 1, 9));
    assert_eq!((class(&contract, &a, 503), class(&contract, &a, 500)), (Class::Transient, Class::Permanent));

    let b = plan(&contract, "GET", "https://b.example:8443/");
    assert_eq!((b.max_attempts(), b.timeouts().attempt.as_secs(), b.timeouts().total.as_secs()), (2, 3, 9));
    // Lists replace.
    assert_eq!((class(&contract, &b, 503), class(&contract, &b, 500)), (Class::Permanent, Class::Transient));
    assert_eq!((class(&contract, &b, 409), class(&contract, &b, 423)), (Class::Verify, Class::Permanent));

    for method in ["PUT", "PATCH"] {
        let put = plan(&contract, method, "https://b.example:8443/x/1");
        assert_eq!((put.operation(), put.max_attempts()), ("put", 4));
        assert_eq!((put.timeouts().attempt.as_secs(), put.timeouts().total.as_secs()), (3, 20));
        // Its own rules first.
        assert_eq!(class(&contract, &put, 409), Class::Transient);
    }
    // Another port is another host.
    assert_eq!(plan(&contract, "GET", "https://b.example/").provider(), "unknown");
}

#[test]
fn an_environment_stands_over_each_level() {
    let contract = Contract::builder().text("env.toml", DEFAULTS).env("test").load().unwrap();
    assert_eq!(plan(&contract, "GET", "http://a.example/").max_attempts(), 1);
    let put = plan(&contract, "PUT", "https://b.test/x/1");
    assert_eq!((put.operation(), put.max_attempts()), ("put", 3));
    assert_eq!((put.timeouts().attempt.as_secs(), put.timeouts().total.as_secs()), (7, 20));
    assert_eq!(plan(&contract, "PUT", "https://b.example:8443/x/1").provider(), "unknown");

    let error = Contract::builder().text("env.toml", DEFAULTS).env("tset").load().unwrap_err();
    assert!(error.to_string().contains("no file has the environment `tset`"), "{error}");
    for (slip, words) in [
        ("[env.test.provider.c]\nattempts = 1", "no file has the provider `c` to override"),
        ("[[env.test.provider.a.operation]]\nname = \"x\"", "`a` has no operation `x` to override"),
    ] {
        let error = Contract::builder().text("env.toml", format!("{DEFAULTS}{slip}")).env("test").load().unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn what_is_never_repeated_needs_no_waits() {
    let text = SHOP.lines().filter(|line| !line.starts_with("backoff") && !line.starts_with("transient"));
    let text =
        text.collect::<Vec<_>>().join("\n").replace("attempts  = 3", "never = \"nobody knows what it does twice\"");
    let contract = contract(&text);
    assert_eq!(plan(&contract, "GET", "https://api.shop.example/").max_attempts(), 1);
}

#[test]
fn others_once_leaves_the_rest_unnamed() {
    let text = SHOP.replace("elsewhere = []", "elsewhere = []\nothers = \"once\"");
    let contract = contract(&format!("{text}[[provider.shop.operation]]\nname = \"a\"\nmatch = \"GET /a\"\n"));
    assert_eq!(plan(&contract, "GET", "https://api.shop.example/a").max_attempts(), 3);
    let rest = plan(&contract, "GET", "https://api.shop.example/b");
    assert_eq!((rest.provider(), rest.max_attempts(), rest.timeouts().total.as_secs()), ("unknown", 1, 60));
}

#[test]
fn evidence_is_what_the_contract_says() {
    let more = r#"
        [[provider.shop.operation]]
        name       = "delete"
        match      = "DELETE /cart/{position}"
        idempotent = { method = false }

        [[provider.shop.operation]]
        name       = "store"
        match      = "POST /store"
        idempotent = { headers = ["if-match"], query = ["generation"] }
        key        = { header = "x-shop-key" }
    "#;
    let contract = contract(&format!("{SHOP}{more}"));
    assert!(plan(&contract, "DELETE", "https://api.shop.example/cart/1").evidence().is_none());
    assert!(plan(&contract, "DELETE", "https://api.shop.example/other").evidence().is_some());
    assert!(plan(&contract, "POST", "https://api.shop.example/store").evidence().is_none());
    assert!(plan(&contract, "POST", "https://api.shop.example/store?generation=7").evidence().is_some());
    for (header, has) in [("if-match", true), ("x-shop-key", true), ("idempotency-key", false)] {
        let request = Request::post("https://api.shop.example/store").header(header, "1").body(()).unwrap();
        assert_eq!(contract.plan(&RequestHead::of(&request)).evidence().is_some(), has, "{header}");
    }
}

#[test]
fn waivers_put_off_what_can_be_put_off() {
    let text = SHOP.replace("fallback  = \"none\"\n", "");
    let waiver = "[[waiver]]\nrule = \"S19\"\nprovider = \"shop\"\nreason = \"being written\"\nuntil = 2026-01-01\n";
    // Whatever the day: a program does not stop for a date that has passed.
    assert!(contract(&format!("{text}{waiver}")).warnings().is_empty());
    // What cannot be built cannot be waived.
    let text = SHOP.replace("attempts  = 3", "attempts = 12");
    let error = Contract::parse("x", format!("{text}{}", waiver.replace("S19", "S12"))).unwrap_err();
    assert_eq!(error.findings().len(), 1, "{error}");
    let needless = contract(&format!("{SHOP}{waiver}"));
    assert_eq!(needless.warnings()[0].message(), "the waiver waives nothing");
}

#[test]
fn operations_of_a_group_share_a_budget() {
    let more = r#"
        [[provider.shop.operation]]
        name   = "a"
        match  = "GET /a"

        [[provider.shop.operation]]
        name   = "b"
        match  = "GET /b"
        budget = { capacity = 2.0 }
    "#;
    let contract = contract(&format!("{SHOP}{more}"));
    let budget = |operation| format!("{:?}", contract.policy("shop", operation).unwrap());
    assert_ne!(budget("a"), budget("b"));
    let clash = format!("{SHOP}{more}").replace("capacity = 2.0", "capacity = 2.0, group = \"g\"")
        + "[[provider.shop.operation]]\nname = \"c\"\nmatch = \"GET /c\"\nbudget = { capacity = 3.0, group = \"g\" }\n";
    let error = Contract::parse("x", clash).unwrap_err();
    assert!(error.to_string().contains("S20: one group has two budgets of different numbers"), "{error}");
}

#[test]
fn codes_of_grpc_are_judged_as_they_are_listed() {
    let grpc = "grpc = [\"UNAVAILABLE\", { code = \"RESOURCE_EXHAUSTED\", rejected = \"the guide\" }], faults = [";
    let contract = contract(
        &SHOP.replace("faults = [", grpc).replace("elsewhere = []", "elsewhere = []\nbusiness.grpc = [\"NOT_FOUND\"]"),
    );
    let plan = plan(&contract, "POST", "https://api.shop.example/shop.Orders/Get");
    for (code, class, rejected, listed) in [
        (14, Class::Transient, None, true),
        (8, Class::Transient, Some("the guide"), true),
        (5, Class::Permanent, None, true),
        (13, Class::Permanent, None, false),
        (0, Class::Success, None, true),
    ] {
        let headers = HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), code.into())]);
        let verdict = contract.judge(&plan, &Outcome::answer(StatusCode::OK, &headers).over_grpc());
        assert_eq!(
            (verdict.class(), verdict.rejected_because(), verdict.is_listed()),
            (class, rejected, listed),
            "{code}"
        );
    }
}
