//! `redial diff`

use crate::command::{Ended, Folder, SHOP};

/// SHOP, with these texts replaced.
fn changed(replaced: &[(&str, &str)]) -> Ended {
    let new = replaced.iter().fold(SHOP.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    let folder = Folder::with(&[("old.toml", SHOP), ("new.toml", &new)]);
    folder.run(&["diff", "old.toml", "new.toml"])
}

#[test]
fn a_change_of_no_meaning() {
    for replaced in
        [("format = 1\n", "format = 1\n# why\n"), ("[502, 503, 504]", "[504, 503, 502]"), ("\"10s\"", "\"10000ms\"")]
    {
        let ended = changed(&[replaced]);
        assert_eq!((ended.code, ended.out.as_str()), (0, "no change in meaning\n"), "{replaced:?} {}", ended.err);
    }
}

#[test]
fn what_became_less_safe() {
    const KEY: &str = "idempotent = { stated = \"order numbers are unique\" }\n\n[[provider.shop.operation]]\nname  = \"orders.cancel\"";
    const CANCEL: &str = "[[provider.shop.operation]]\nname  = \"orders.cancel\"";
    for (replaced, words) in [
        (
            (CANCEL, KEY),
            "POST /orders of shop (api.shop.example)\n  less safe  now repeated without a key or another evidence after 502, 503, 504, reset, timeout\n",
        ),
        (
            ("never = \"a second cancellation is an error there\"\n", ""),
            "POST /orders/{id}/cancel of shop (api.shop.example)\n  less safe  attempts: 3; before: 1\n",
        ),
        (("[502, 503, 504]", "[500, 502, 503, 504]"), "less safe  now repeated after 500\n"),
        (("attempts  = 3", "attempts  = { max = 4, reason = \"x\" }"), "less safe  attempts: 4; before: 3\n"),
        (("initial = \"500ms\"", "initial = \"200ms\""), "less safe  waits: up to 200ms"),
        (("max = \"5s\" }", "max = \"5s\", jitter = \"none\", reason = \"x\" }"), "less safe  waits:"),
        (
            ("fallback ", "budget = { setting = \"unlimited\", reason = \"x\" }\nfallback "),
            "less safe  budget: none: x; before: default",
        ),
        (("fallback ", "budget = { setting = \"aws\" }\nfallback "), "less safe  budget: aws; before: default"),
        (("fallback ", "hold = \"none\"\nfallback "), "less safe  when told to wait: each call for itself"),
        (("elsewhere = []\n", ""), "less safe  what else retries: not stated; before: nothing"),
        (
            (
                "[[provider.shop.operation]]\nname  = \"orders.create\"",
                "[[provider.shop.answer]]\nwhen = { status = 403, header = { x-limit = \"0\" } }\nmeans = \"rejected\"\nbecause = \"x\"\n\n[[provider.shop.operation]]\nname  = \"orders.create\"",
            ),
            "less safe  a new rule on answers: 403, with `x-limit: 0`: rejected",
        ),
    ] {
        let ended = changed(&[replaced]);
        assert!(
            ended.code == 1 && ended.out.contains(words),
            "{replaced:?}: {} {} {}",
            ended.code,
            ended.out,
            ended.err
        );
    }
}

/// And the other way round it is safer.
#[test]
fn what_became_safer() {
    let loose = SHOP
        .replace("[502, 503, 504]", "[500, 502, 503, 504]")
        .replace(
            "attempts  = 3",
            "attempts  = { max = 4, reason = \"x\" }\nserver = { should_retry = \"x-should-retry\" }",
        )
        .replace(
            "elsewhere = []\n",
            "elsewhere = []\nbudget = { setting = \"unlimited\", reason = \"x\" }\nhold = \"none\"\n",
        );
    let folder = Folder::with(&[("old.toml", &loose), ("new.toml", SHOP)]);
    let ended = folder.run(&["diff", "old.toml", "new.toml"]);
    // A header that is no longer heeded is the only exception.
    assert_eq!(ended.code, 1, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
    folder.write(
        "new.toml",
        SHOP.replace("elsewhere = []", "elsewhere = []\nserver = { should_retry = \"x-should-retry\" }"),
    );
    assert_eq!(folder.run(&["diff", "old.toml", "new.toml"]).code, 0);
}

#[test]
fn providers_hosts_and_operations_come_and_go() {
    let new = SHOP
        .replace("hosts     = [\"api.shop.example\"]", "hosts     = [\"api.shop.example\", \"eu.shop.example\"]")
        .replace("POST /orders\"", "POST /v2/orders\"")
        .replace("reviewed = 2026-11-30", "reviewed = 2026-12-01")
        + &SHOP.replace("format = 1", "").replace("shop", "mail");
    let folder = Folder::with(&[("old.toml", SHOP), ("new.toml", &new)]);
    let ended = folder.fed(SHOP, &["diff", "-", "new.toml"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
    // A preset and itself, with patterns of every kind.
    for name in redial::contract::Contract::presets() {
        folder.write("preset.toml", redial::contract::Contract::preset_text(name).unwrap());
        let same = folder.run(&["diff", "preset.toml", "preset.toml"]);
        assert_eq!((same.code, same.out.as_str()), (0, "no change in meaning\n"), "{name}: {}", same.err);
    }
}

#[test]
fn for_machines() {
    let folder = Folder::with(&[("old.toml", SHOP), ("new.toml", &SHOP.replace("[502, 503, 504]", "[503, 504]"))]);
    let ended = folder.run(&["diff", "old.toml", "new.toml", "--format", "json"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let changes: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let all: Vec<_> =
        changes.as_array().unwrap().iter().flat_map(|block| block["changes"].as_array().unwrap()).collect();
    assert!(all.iter().all(|change| change["way"] == "safer"), "{all:?}");
    assert!(all.iter().any(|change| change["text"] == "no longer repeated after 502"), "{all:?}");
}

#[test]
fn what_cannot_be_compared() {
    let folder = Folder::with(&[("old.toml", SHOP), ("broken.toml", &SHOP.replace("\"2s\"", "\"2w\""))]);
    assert_eq!(folder.run(&["diff", "old.toml", "broken.toml"]).code, 1);
    assert_eq!(folder.run(&["diff", "absent.toml", "broken.toml"]).code, 2);
    assert_eq!(folder.run(&["diff", "old.toml"]).code, 2);
}
