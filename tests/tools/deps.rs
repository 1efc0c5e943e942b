//! `redial deps`

use crate::command::{Folder, SHOP};

const LOCK: &str = r#"version = 4

[[package]]
name = "shop"
version = "0.1.0"
dependencies = ["hub", "reqwest 0.13.5", "serde"]

[[package]]
name = "hub"
version = "2.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
dependencies = ["octocrab", "reqwest 0.12.9 (registry+https://github.com/rust-lang/crates.io-index)"]

[[package]]
name = "octocrab"
version = "0.54.9"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "reqwest"
version = "0.12.9"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "reqwest"
version = "0.13.5"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "serde"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

fn folder(elsewhere: &str) -> Folder {
    let shop = SHOP.replace("elsewhere = []", &format!("elsewhere = [{elsewhere}]"));
    Folder::with(&[("Cargo.lock", LOCK), ("shop.toml", &shop)])
}

#[test]
fn what_retries_in_a_tree() {
    let ended = folder("").run(&["deps"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
}

#[test]
fn what_a_contract_declares() {
    let check = |elsewhere: &str, more: &[&str]| {
        folder(elsewhere).run(&[&["deps", "Cargo.lock", "--contract", "shop.toml"], more].concat())
    };
    let nothing = check("", &[]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.out.contains("octocrab 0.54.9: not declared (S13)"), "{}", nothing.out);
    assert!(nothing.out.ends_with("2 crates that retry by themselves: 2 not declared\n"), "{}", nothing.out);
    let off = r#"{ where = "sdk", by = "octocrab", attempts = 1 }"#;
    let half = check(off, &[]);
    assert!(half.code == 1 && half.out.contains("octocrab 0.54.9: switched off for shop"), "{}", half.out);
    assert_eq!(check(off, &["--except", "reqwest"]).code, 0);
    // By a word of what the contract says, and not by a part of one.
    let words = format!(r#"{off}, {{ where = "sdk", by = "the reqwest client, retry::never", attempts = 1 }}"#);
    assert_eq!(check(&words, &[]).code, 0);
    let part = format!(r#"{off}, {{ where = "sdk", by = "reqwest-middleware", attempts = 1 }}"#);
    assert_eq!(check(&part, &[]).code, 1);
}

#[test]
fn for_machines() {
    let ended = folder("").run(&["deps", "--contract", "shop.toml", "--format", "json"]);
    assert_eq!(ended.code, 1);
    let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert_eq!(found[0]["crate"], "octocrab");
    assert_eq!(found[0]["way"], serde_json::json!(["shop", "hub", "octocrab"]));
    assert_eq!((&found[0]["attempts"], &found[0]["state"]), (&4.into(), &"undeclared".into()));
    assert_eq!(found[1]["version"], "0.13.5", "older ones had no such retry");
}

#[test]
fn what_cannot_be_read() {
    let folder = folder("");
    folder.write("Cargo.toml", "[package]\nname = \"x\"\n");
    folder.write("empty.lock", "version = 4\n");
    folder.write("large.lock", vec![b'#'; 17 << 20]);
    folder.write("broken.toml", "format = 1\nx");
    for (arguments, code, words) in [
        (&["absent.lock"][..], 2, "absent.lock"),
        (&["Cargo.toml"], 2, "is no Cargo.lock"),
        (&["empty.lock"], 2, "it has no packages"),
        (&["shop.toml"], 2, "is no Cargo.lock"),
        (&["large.lock"], 2, "too large"),
        (&["Cargo.lock", "--contract", "absent.toml"], 2, "absent.toml"),
        (&["Cargo.lock", "--contract", "broken.toml"], 1, "this is not TOML"),
        (&["Cargo.lock", "--except", "octcrab"], 2, "--except octcrab: no crate that is known to retry"),
    ] {
        let ended = folder.run(&[&["deps"], arguments].concat());
        assert!(ended.code == code && ended.err.contains(words), "{arguments:?}: {} {}", ended.code, ended.err);
    }
    folder.write("Cargo.lock", "[[package]]\nname = \"x\"\nversion = \"1.0.0\"\n");
    let none = folder.run(&["deps", "--contract", "shop.toml"]);
    assert_eq!((none.code, none.out.as_str()), (0, "no crate in `Cargo.lock` is known to retry by itself\n"));
}

/// A cycle (tests of a crate may depend on what depends on it) and a package that nobody brings.
#[test]
fn a_tree_that_is_none() {
    let text = "[[package]]\nname = \"a\"\nversion = \"1\"\ndependencies = [\"b\"]\n\
                [[package]]\nname = \"b\"\nversion = \"1\"\nsource = \"x\"\ndependencies = [\"a\", \"backon\"]\n\
                [[package]]\nname = \"backon\"\nversion = \"1.6.0\"\nsource = \"x\"\ndependencies = [\"b\"]\n\
                [[package]]\nname = \"tryhard\"\nversion = \"x\"\nsource = \"x\"\n";
    let folder = Folder::with(&[("Cargo.lock", text)]);
    let ended = folder.run(&["deps"]);
    assert!(ended.code == 0 && ended.out.contains("by way of  a > b > backon\n"), "{}", ended.out);
    assert!(ended.out.contains("by way of  tryhard\n"), "{}", ended.out);
}
