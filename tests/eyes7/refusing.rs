//! What `check` lets pass.

use redial::contract::Contract;

use crate::support::*;

/// S6: "for each rule its basis (official, practice, project)".
#[test]
fn a_rule_without_a_basis() {
    let text =
        with("[[provider.shop.answer]]\nwhen = { status = 503, header = { x = \"1\" } }\nmeans = \"transient\"\n");
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert!(ended.out.contains("S6"), "no word about the basis: {}", ended.all());
}

/// S7: one statement cannot say of every operation that a repeat is safe: refused for a provider, and so for its override.
#[test]
fn a_statement_for_all_by_way_of_an_environment() {
    let text = with("[env.prod.provider.shop]\nidempotent = { stated = \"all of them\" }\n");
    let ended = fed(&text, &["check", "-", "--quiet", "--env", "prod"]);
    assert!(ended.code == Some(1) && ended.out.contains("S7"), "{}", ended.all());
}

/// What `check` of CI does not look at is what production runs.
#[test]
fn an_environment_that_nobody_chose() {
    let text = with(
        "[env.prod.provider.shop]\nattempts = 50\nbudget = { setting = \"unlimited\" }\ntimeouts = { attempt = \"0s\" }\n",
    );
    assert!(Contract::builder().text("x", text.as_str()).env("prod").load().is_err());
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert_eq!(ended.code, Some(1), "the file has broken rules in it: {}", ended.all());
}

/// S7: "a method can also be declared *not* idempotent for an operation".
#[test]
fn not_idempotent_covers_every_pattern_of_the_operation() {
    let text = operation("match = [\"DELETE /a\", \"/b/{position}\"]\nidempotent = { method = false }");
    for url in ["https://api.shop.example/a", "https://api.shop.example/b/1"] {
        let ended = fed(&text, &["explain", "-", "DELETE", url, "--status", "503"]);
        assert!(ended.out.contains("(no-evidence)"), "DELETE {url}: {}", ended.all());
    }
    let ended = fed(&text, &["explain", "-", "PUT", "https://api.shop.example/b/1", "--status", "503"]);
    assert!(ended.out.contains("(no-evidence)"), "PUT: {}", ended.all());
}

#[test]
fn not_idempotent_covers_every_method() {
    let text = operation("match = \"/b\"\nidempotent = { method = false }");
    for method in ["GET", "PUT", "DELETE", "QUERY"] {
        let ended = fed(&text, &["explain", "-", method, "https://api.shop.example/b", "--status", "503"]);
        assert!(ended.out.contains("(no-evidence)"), "{method}: {}", ended.all());
    }
}

/// A waiver in one team's file does not speak for another team's.
#[test]
fn a_waiver_is_its_files_own() {
    let folder = Folder::new();
    let waived = with("[[waiver]]\nrule = \"S19\"\nreason = \"being written\"\nuntil = 2027-01-01\n")
        .replace("fallback  = \"none\"\n", "");
    folder.write("a.toml", &waived);
    folder.write("b.toml", &SHOP.replace("shop", "bank").replace("fallback  = \"none\"\n", ""));
    let ended = run_in(folder.path(), &["check", "--quiet", "a.toml", "b.toml", "--as-of", "2026-12-01"]);
    assert!(ended.code == Some(1) && ended.out.contains("b.toml"), "{}", ended.all());
}

/// The settings of the provider's other requests and those of an operation that is called `any` are told apart.
#[test]
fn an_operation_called_any() {
    let text = with("[[provider.shop.operation]]\nname = \"any\"\nmatch = \"GET /a\"\nnever = \"money\"\n");
    let check = fed(&text, &["check", "-", "--quiet"]);
    let explained = fed(&text, &["explain", "-", "GET", "https://api.shop.example/zzz", "--status", "503"]);
    assert!(
        check.code == Some(1) || !explained.out.contains("1 of 3: money"),
        "neither refused nor told apart: {}",
        explained.all()
    );
}

/// A repeat that can never be made is warned of (the issue: "warns where the worst case does not fit").
#[test]
fn a_wait_that_cannot_fit() {
    let text = operation(
        "match = \"GET /a\"\n[[provider.shop.operation.answer]]\nwhen = { status = 429 }\nmeans = \"rejected\"\nbasis = \"official\"\nwait = { at_least = \"11s\" }",
    );
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert!(ended.out.contains("1 warning"), "11 s do not fit into 10 s: {}", ended.all());
}

/// What is given once to a baseline is still known on the next day.
#[test]
fn a_baseline_outlives_its_day() {
    let folder = Folder::new();
    folder.write("shop.toml", SHOP);
    let at = |day: &str, more: &[&str]| {
        run_in(
            folder.path(),
            &[&["check", "--quiet", "--deny", "warnings", "--as-of", day, "shop.toml"], more].concat(),
        )
    };
    assert_eq!(at("2028-01-01", &["--write-baseline", "debts.json"]).code, Some(0));
    assert_eq!(at("2028-01-01", &["--baseline", "debts.json"]).code, Some(0));
    let next = at("2028-01-02", &["--baseline", "debts.json"]);
    assert_eq!(next.code, Some(0), "{}", next.all());
}

/// However the same file is named.
#[test]
fn a_baseline_knows_its_file() {
    let folder = Folder::new();
    folder.write("contracts/shop.toml", &SHOP.replace("fallback  = \"none\"\n", ""));
    assert_eq!(run_in(folder.path(), &["check", "contracts/", "--write-baseline", "debts.json"]).code, Some(0));
    for path in ["contracts", "./contracts", "contracts/shop.toml", "contracts/*.toml"] {
        let ended = run_in(folder.path(), &["check", "--quiet", path, "--baseline", "debts.json"]);
        assert_eq!(ended.code, Some(0), "{path}: {}", ended.all());
    }
}

/// One known debt is one, not as many of its kind as anybody adds.
#[test]
fn a_baseline_counts() {
    let folder = Folder::new();
    let debts = |count: usize| {
        with("").replace("elsewhere = []", &format!("elsewhere = [{}]", vec!["{ by = \"x\" }"; count].join(", ")))
    };
    folder.write("shop.toml", &debts(1));
    assert_eq!(run_in(folder.path(), &["check", "shop.toml", "--write-baseline", "debts.json"]).code, Some(0));
    folder.write("shop.toml", &debts(3));
    let ended = run_in(folder.path(), &["check", "--quiet", "shop.toml", "--baseline", "debts.json"]);
    assert_eq!(ended.code, Some(1), "two more of them: {}", ended.all());
}

/// What is misspelt is said once, and not also as missing.
#[test]
fn a_misspelt_meaning_is_one_problem() {
    let text = with("[[provider.shop.answer]]\nwhen = { status = 404 }\nmeans = \"busines\"\nbasis = \"project\"\n");
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert!(ended.out.contains("1 error,"), "{}", ended.out);
    let text = operation(
        "match = \"GET /a\"\n[[provider.shop.operation.answer]]\nwhen = { status = 429 }\nmeans = \"rejected\"\nbasis = \"official\"\nwait = { header = \"x\", unit = \"fortnights\" }",
    );
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert!(ended.out.contains("1 error,"), "{}", ended.out);
}

/// "Once more": and where was the first? It is in the other file.
#[test]
fn the_first_of_two_is_named_by_its_file() {
    let folder = Folder::new();
    folder.write("first.toml", SHOP);
    folder.write("second.toml", SHOP);
    let ended = run_in(folder.path(), &["check", "--quiet", "first.toml", "second.toml"]);
    assert!(ended.code == Some(1) && ended.out.contains("first.toml:3"), "{}", ended.out);
    folder.write("second.toml", &SHOP.replace("provider.shop", "provider.bank"));
    let ended = run_in(folder.path(), &["check", "--quiet", "first.toml", "second.toml"]);
    assert!(ended.code == Some(1) && ended.out.contains("first.toml:4"), "{}", ended.out);
}

/// A contract of nobody: the first line of a file that was cut, say. It checks, and is in force.
#[test]
fn a_contract_without_a_provider() {
    let ended = fed("format = 1\n", &["check", "-", "--quiet", "--deny", "warnings"]);
    assert_eq!(ended.code, Some(1), "{}", ended.all());
}

/// A wait on an answer that is final is never waited, and a status of success is not final for being listed.
#[test]
fn what_says_nothing_is_said() {
    let wait = operation(
        "match = \"GET /a\"\n[[provider.shop.operation.answer]]\nwhen = { status = 404 }\nmeans = \"business\"\nbasis = \"official\"\nwait = { at_least = \"1s\" }",
    );
    let listed = with("").replace("elsewhere = []", "elsewhere = []\nbusiness = { status = [200] }");
    for text in [wait, listed] {
        let ended = fed(&text, &["check", "-", "--quiet", "--deny", "warnings"]);
        assert_eq!(ended.code, Some(1), "{}", ended.all());
    }
}

/// S16: "One ERROR per call, for a final failure of what should have worked": a 500 that Stripe has saved is one.
#[tokio::test(start_paused = true)]
async fn a_saved_failure_is_an_error() {
    use crate::capture::Capture;
    use redial::testing::{self, Reply};
    use tower::{Layer, ServiceExt};
    for key in [false, true] {
        let (capture, _guard) = Capture::start();
        let contract = Contract::preset("stripe").unwrap();
        let service = testing::service([500; 4].map(Reply::status));
        let request = http::Request::post("https://api.stripe.com/v1/charges");
        let request = if key { request.header("idempotency-key", "1") } else { request };
        let request = request.body(http_body_util::Full::<bytes::Bytes>::default()).unwrap();
        let _ = redial::RetryLayer::new(contract).layer(service.clone()).oneshot(request).await;
        assert_eq!(capture.at(tracing::Level::ERROR).len(), 1, "with a key: {key}");
    }
}

/// The page of `Contract::preset`: "or load both with an `[env.NAME]` of yours".
#[test]
fn a_preset_and_an_environment_of_ones_own() {
    let own = "format = 1\n[env.prod.provider.github]\nattempts = 2\n";
    let github = Contract::preset_text("github").unwrap();
    let loaded = Contract::builder().text("github.toml", github).text("own.toml", own).env("prod").load();
    assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
}

/// Two files that say how long a request to an unknown host may take say it differently.
#[test]
fn two_files_disagree_about_unknown_hosts() {
    let one = with("[defaults]\nunknown_hosts = \"5s\"\n");
    let other = SHOP.replace("shop", "bank") + "[defaults]\nunknown_hosts = \"50s\"\n";
    let folder = Folder::new();
    folder.write("a.toml", &one);
    folder.write("b.toml", &other);
    let ended = run_in(folder.path(), &["check", "--quiet", "--deny", "warnings", "a.toml", "b.toml"]);
    assert_eq!(ended.code, Some(1), "the second is not heard, and nobody says so: {}", ended.all());
}

/// S6: the source is where a reader finds it.
#[test]
fn a_source_is_an_address() {
    for url in ["not a url", "TODO", "https://", "https:ann:hunter2@shop.example"] {
        let ended =
            fed(&SHOP.replace("https://shop.example/docs", url), &["check", "-", "--quiet", "--deny", "warnings"]);
        assert_eq!(ended.code, Some(1), "{url}: {}", ended.all());
    }
}

/// The folder that ships.
#[test]
fn the_folder_of_presets() {
    let ended = fed("", &["check", "contracts/", "--quiet", "--as-of", "2026-12-01"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
}

/// Rules are joined, says the page; an environment's silently take the place of the operation's own, here of the one
/// that made a 429 final.
#[test]
fn rules_of_an_environment_are_joined() {
    let text = operation(
        "match = \"GET /a\"\n[[provider.shop.operation.answer]]\nwhen = { status = 429, header = { quota = \"0\" } }\nmeans = \"business\"\nbasis = \"official\"\n[[provider.shop.answer]]\nwhen = { status = 429 }\nmeans = \"rejected\"\nbasis = \"official\"\n[[env.prod.provider.shop.operation]]\nname = \"o\"\n[[env.prod.provider.shop.operation.answer]]\nwhen = { status = 404 }\nmeans = \"success\"\nbasis = \"project\"",
    );
    let ask = |env: &[&str]| {
        let arguments =
            ["explain", "-", "GET", "https://api.shop.example/a", "--status", "429", "--answer-header", "quota: 0"];
        fed(&text, &[&arguments[..], env].concat())
    };
    assert!(ask(&[]).out.contains("not repeated"));
    let ended = ask(&["--env", "prod"]);
    assert!(ended.out.contains("not repeated"), "{}", ended.all());
}

/// An operation's `idempotent = { key = true }` says that a key is always sent; the engine asks for it all the same.
#[test]
fn a_checklist_does_not_promise_what_the_engine_asks_for() {
    let text =
        operation("match = \"POST /a\"\nkey = { header = \"k\", valid_for = \"24h\" }\nidempotent = { key = true }");
    assert!(fed(&text, &["check", "-"]).out.contains("an idempotency key is always sent"));
    let ended = fed(&text, &["explain", "-", "POST", "https://api.shop.example/a", "--status", "503"]);
    assert!(ended.out.contains("(no-evidence)"), "{}", ended.out);
}
