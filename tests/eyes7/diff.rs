//! Less safe changes, each of which `diff` has to name, and to end with 1 for.

use crate::support::*;

fn less_safe(what: &str, old: &str, new: &str) {
    let folder = Folder::new();
    folder.write("old.toml", old);
    folder.write("new.toml", new);
    let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
    assert!(ended.code == Some(1) && ended.out.contains("less safe"), "{what}: {}", ended.all());
}

/// Any header of a request may be made its evidence, and no word is said.
#[test]
fn a_header_becomes_evidence() {
    let old = operation("match = \"PUT /a\"\nidempotent = { method = false }");
    let new = operation("match = \"PUT /a\"\nidempotent = { method = false, headers = [\"user-agent\"] }");
    less_safe("user-agent as a precondition", &old, &new);
}

#[test]
fn a_query_becomes_evidence() {
    let old = operation("match = \"POST /a\"");
    let new = operation("match = \"POST /a\"\nidempotent = { query = [\"page\"] }");
    less_safe("?page as a precondition", &old, &new);
}

/// What every request has is its key from now on.
#[test]
fn another_header_becomes_the_key() {
    let old = operation("match = \"POST /a\"");
    let new = operation("match = \"POST /a\"\nkey = { header = \"user-agent\" }");
    less_safe("user-agent as a key", &old, &new);
}

/// `DELETE /a` was never repeated; now it is, by its provider's settings.
#[test]
fn methods_that_an_operation_loses() {
    let old = operation("match = \"/a\"\nnever = \"money\"");
    let new = operation("match = [\"GET /a\", \"POST /a\"]\nnever = \"money\"");
    less_safe("DELETE and PUT are repeated", &old, &new);
}

/// The rule that made a 429 final stands behind one that repeats it: it is never reached.
#[test]
fn a_final_rule_is_hidden_by_order() {
    let last = "[[provider.shop.operation.answer]]\nwhen = { status = 429, header = { quota = \"0\" } }\nmeans = \"business\"\nbasis = \"official\"\n";
    let any =
        "[[provider.shop.operation.answer]]\nwhen = { status = 429 }\nmeans = \"rejected\"\nbasis = \"official\"\n";
    let old = operation(&format!("match = \"POST /a\"\n{last}{any}"));
    let new = operation(&format!("match = \"POST /a\"\n{any}{last}"));
    less_safe("order", &old, &new);
}

/// The provider's own header is read no longer, or in a unit a thousand times smaller.
#[test]
fn the_server_is_heard_less() {
    let server =
        |text: &str| with("").replace("elsewhere = []", &format!("elsewhere = []\nserver = {{ wait = [{text}] }}"));
    let old = server("{ header = \"x-wait\", unit = \"seconds\" }");
    less_safe("seconds become ms", &old, &server("{ header = \"x-wait\", unit = \"ms\" }"));
    less_safe("another header", &old, &server("{ header = \"x-other\", unit = \"seconds\" }"));
}

/// The contract that runs in production gets 9 attempts and no budget; `diff` says that nothing changed.
#[test]
fn an_environment() {
    let old = with("[env.prod.defaults]\nhold = \"retries\"\n");
    let new = with(
        "[env.prod.provider.shop]\nattempts = { max = 9, reason = \"x\" }\nbudget = { setting = \"unlimited\", reason = \"x\" }\n",
    );
    let folder = Folder::new();
    folder.write("old.toml", &old);
    folder.write("new.toml", &new);
    let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
    assert!(!ended.out.contains("no change in meaning"), "{}", ended.all());
}

/// What holds in one environment alone is said of it alone; what holds in all of them is said once.
#[test]
fn an_environment_by_its_name() {
    let staging = "[env.staging.provider.shop]\nbackoff = { initial = \"400ms\" }\n";
    let old = with(&format!("{staging}[env.prod.provider.shop]\nattempts = 2\n"));
    let folder = Folder::new();
    folder.write("old.toml", &old);
    folder.write("new.toml", &old.replace("attempts = 2", "attempts = 3"));
    let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
    assert!(ended.code == Some(1) && ended.out.contains("in `prod`: GET every other request"), "{}", ended.all());
    assert!(!ended.out.contains("staging"), "{}", ended.out);
    assert_eq!(run_in(folder.path(), &["diff", "old.toml", "new.toml", "--env", "staging"]).code, Some(0));
    folder.write("new.toml", &old.replace("502, 503", "500, 502, 503"));
    let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
    assert!(ended.code == Some(1) && !ended.out.contains("in `"), "{}", ended.all());
    folder.write("new.toml", &old.replace(staging, ""));
    let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
    assert!(ended.code == Some(0) && ended.out.contains("the environment is gone"), "{}", ended.all());
}

/// The other way round, nothing of it is less safe.
#[test]
fn and_back_again() {
    for (old, new) in [
        ("idempotent = { headers = [\"if-match\"] }", ""),
        ("idempotent = { query = [\"page\"] }", ""),
        ("", "never = \"money\""),
    ] {
        let operation = |more: &str| operation(&format!("match = \"POST /a\"\n{more}"));
        let folder = Folder::new();
        folder.write("old.toml", &operation(old));
        folder.write("new.toml", &operation(new));
        let ended = run_in(folder.path(), &["diff", "old.toml", "new.toml"]);
        assert!(ended.code == Some(0) && ended.out.contains("safer"), "{old} {new}: {}", ended.all());
    }
}
