//! What is said of mistakes, as a reader sees it.

use redial::contract::Contract;

use crate::support::{SHOP, contract, refused, the_problem};

#[test]
fn ten_mistakes_in_one_file_are_all_found_at_once() {
    let error = Contract::parse("ten.toml", include_str!("ten.toml")).unwrap_err();
    assert!(error.findings().len() >= 10, "{error}");
    println!("{error}");
    insta::assert_snapshot!(error);
}

/// What was written, and the one problem that is found in it, which breaks this rule (none: it cannot be read).
#[track_caller]
fn held(written: &str, rule: &str, text: &str) -> String {
    let problem = the_problem(text);
    let found = problem.split(": ").nth(1).filter(|found| found.starts_with('S') && found.len() < 4);
    assert_eq!(found.unwrap_or_default(), rule, "{written}: {problem}");
    format!("{written}\n  -> {problem}\n")
}

/// Each line put into, or in the place of, one of a contract that is kept; the rule, and what it is to say.
#[test]
fn each_rule_refuses_what_breaks_it() {
    let cases = [
        // (instead of, this, the problem)
        ("format = 1", "", ""),
        ("format = 1", "format = 2", ""),
        ("attempts  = 3", "atempts  = 3", ""),
        ("attempts  = 3", "attempts = 0", "S12"),
        ("attempts  = 3", "attempts = 10", "S12"),
        ("attempts  = 3", "attempts = 4", "S12"),
        ("attempts  = 3", "attempts = -1", ""),
        ("attempts  = 3", "attempts = 18446744073709551615", ""),
        ("\"10s\"", "\"2s\"", "S8"),
        ("\"10s\"", "\"0s\"", "S8"),
        ("\"10s\"", "\"25h\"", "S8"),
        (", total = \"10s\"", "", "S8"),
        ("\"500ms\"", "\"1ms\"", "S9"),
        ("\"5s\"", "\"400ms\"", "S11"),
        ("\"5s\" }", "\"5s\", floor = \"0s\" }", "S9"),
        ("\"5s\" }", "\"5s\", jitter = \"none\" }", "S10"),
        (", max = \"5s\"", "", "S11"),
        ("2.0", "0.9", "S11"),
        ("2.0", "nan", ""),
        ("[502,", "[404,", "S5"),
        ("[502,", "[200,", "S5"),
        ("[502,", "[42,", "S5"),
        ("\"connect\"", "\"unclassified\"", "S1"),
        ("reviewed = 2026-11-30", "reviewed = \"2026-11-30\"", ""),
        ("reviewed = 2026-11-30", "reviewed = 2026-02-30", ""),
        (", owner = \"platform\"", "", "S6"),
        ("fallback  = \"none\"", "", "S19"),
        ("fallback  = \"none\"", "fallback = \" \"", ""),
        ("elsewhere = []", "elsewhere = [{ by = \"octocrab\" }]", "S13"),
        ("elsewhere = []", "elsewhere = [{ where = \"sdk\", by = \"octocrab\", attempts = 4 }]", "S12"),
        ("faults = [", "grpc = [\"ABORTED\"], faults = [", "S5"),
        ("faults = [", "grpc = [{ code = \"DEADLINE_EXCEEDED\", rejected = \"the guide\" }], faults = [", "S7"),
        ("faults = [", "grpc = [{ because = \"the guide\" }], faults = [", ""),
        ("elsewhere = []", "elsewhere = []\nbudget = { setting = \"unlimited\" }", "S20"),
        ("elsewhere = []", "elsewhere = []\nbudget = { setting = \"aws\", ttl = \"5s\" }", "S20"),
        ("elsewhere = []", "elsewhere = []\nbudget = { capacity = 0.0001 }", "S20"),
        ("elsewhere = []", "elsewhere = []\nidempotent = { stated = \"all are safe\" }", "S7"),
        ("elsewhere = []", "elsewhere = []\nidempotent = { key = true }", "S7"),
        ("elsewhere = []", "elsewhere = []\nkey = { valid_for = \"5s\" }", "S7"),
        ("elsewhere = []", "elsewhere = []\nbusiness = { status = [503] }", "S5"),
        ("elsewhere = []", "elsewhere = []\nserver = { wait = [{ header = \"x-reset\" }] }", "S17"),
        ("elsewhere = []", "elsewhere = []\nserver = { should_retry = \"no header\" }", ""),
        ("elsewhere = []", "elsewhere = []\ntransient.grpc = [\"UNAVAILABEL\"]", ""),
        ("[\"api.shop.example\"]", "[\"https://api.shop.example\"]", ""),
        ("[\"api.shop.example\"]", "[\"api.shop.example\", \"API.shop.example\"]", "S18"),
        ("hosts     = [\"api.shop.example\"]", "", "S18"),
    ];
    let mut shown = String::new();
    for (instead_of, this, rule) in cases {
        assert!(SHOP.contains(instead_of), "{instead_of}");
        let text = SHOP.replacen(instead_of, this, 1);
        // A key of a table that is there already.
        let text = if this.contains("transient.grpc") { text.replacen("transient = {", "#", 1) } else { text };
        shown += &held(this, rule, &text);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn each_rule_on_answers_and_operations() {
    let cases = [
        ("[[provider.shop.answer]]\nmeans = \"business\"", "S6"),
        ("[[provider.shop.answer]]\nwhen = { status = 429 }", "S6"),
        ("[[provider.shop.answer]]\nwhen = { status = 429 }\nmeans = \"rejected\"", "S7"),
        ("[[provider.shop.answer]]\nwhen = { status = 409 }\nmeans = \"transient\"", "S5"),
        ("[[provider.shop.answer]]\nwhen = { status = 429, body = { contains = \"x\" } }\nmeans = \"business\"", "S6"),
        (
            "[[provider.shop.answer]]\nwhen = { status = 429 }\nmeans = \"transient\"\nwait = { header = \"x-reset\" }",
            "S17",
        ),
        (
            "[[provider.shop.answer]]\nwhen = { status = 429 }\nmeans = \"transient\"\nwait = { at_least = \"30h\" }",
            "S11",
        ),
        ("[[provider.shop.operation]]\nmatch = \"GET /a\"", "S15"),
        ("[[provider.shop.operation]]\nname = \"a\"", "S18"),
        ("[[provider.shop.operation]]\nname = \"a\"\nmatch = \"/a/{*x}/{*y}\"", ""),
        ("[[provider.shop.operation]]\nname = \"a\"\nmatch = \"get /a\"", ""),
        ("[[provider.shop.operation]]\nname = \"a\"\nmatch = \"GET /a?x=1\"", ""),
        ("[[provider.shop.operation]]\nname = \"a\"\nmatch = [\"GET /{x}\", \"GET /{y}\"]", "S18"),
        ("[[waiver]]\nrule = \"S6\"", ""),
    ];
    let mut shown = String::new();
    for (more, rule) in cases {
        shown += &held(more, rule, &format!("{SHOP}{more}\n"));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_slip_that_many_operations_inherit_is_one_problem() {
    let mut text = SHOP.replace("503", "404");
    for number in 0..20 {
        text += &format!("[[provider.shop.operation]]\nname = \"o{number}\"\nmatch = \"GET /o{number}\"\n");
    }
    assert_eq!(refused(&text).findings().len(), 1);
}

#[test]
fn what_is_allowed_but_not_meant_is_a_warning() {
    let text = SHOP.replace("elsewhere = []\n", "");
    let warnings: Vec<_> = contract(&text).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["S13: it is not said whether anything else retries the calls of `shop`"]);

    let text = SHOP
        .replace("elsewhere = []", "elsewhere = [{ where = \"sdk\", by = \"octocrab\", attempts = 2 }]")
        .replace("attempts  = 3", "attempts = { max = 3, reason = \"until octocrab's are off\" }");
    let warnings: Vec<_> = contract(&text).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["S13: the provider: 6 requests a call at worst (3 attempts here x 2 by the sdk `octocrab`)"]);

    let text = SHOP.replace("\"5s\" }", "\"6s\", floor = \"6s\", jitter = \"none\", reason = \"one client\" }");
    let text = text.replace("\"500ms\"", "\"6s\"");
    let warnings: Vec<_> = contract(&text).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["S8: the provider: attempt 3 can never start: the waits before it are 12s at the least, the total is 10s"]
    );

    let two = "[[provider.shop.operation]]\nname = \"a\"\nmatch = \"GET /a/{x}\"\n\
               [[provider.shop.operation]]\nname = \"b\"\nmatch = \"GET /{y}/b\"\n";
    let warnings: Vec<_> = contract(&format!("{SHOP}{two}")).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["S18: `GET /a/{x}` and `GET /{y}/b` match some of the same requests"]);
    // One within the other is what patterns are for.
    let two = two.replace("/{y}/b", "/a/b");
    assert!(contract(&format!("{SHOP}{two}")).warnings().is_empty());
}

#[test]
fn nothing_of_a_secret_is_shown() {
    let text = SHOP
        .replace("https://shop.example/docs", "https://ann:s3cret@shop.example/docs?key=K123")
        .replace("[502,", "[404,");
    let text = format!(
        "{text}[[provider.shop.answer]]\nwhen = {{ status = 4, header = {{ authorization = \"Bearer t0ken\" }} }}\n"
    );
    let error = refused(&text);
    assert_eq!(error.findings().len(), 4, "{error}");
    let shown = format!("{error} {error:?} {:?}", error.findings());
    for secret in ["s3cret", "ann:", "K123", "t0ken"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}
