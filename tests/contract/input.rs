//! Bad input: a clear word in under a second, and never a panic.

use std::{
    fs,
    time::{Duration, Instant},
};

use redial::contract::{Contract, ContractError};

use crate::{
    command::Folder,
    support::{SHOP, refused, the_problem},
};

/// In under a second, on a machine that does other things as well.
#[track_caller]
fn quickly<T>(what: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = what();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    out
}

fn load(path: &std::path::Path) -> Result<Contract, ContractError> {
    quickly(|| Contract::load([path]))
}

#[track_caller]
fn says(loaded: Result<Contract, ContractError>, words: &str) {
    let error = loaded.expect_err(words);
    // Not the text of them all, in which lines are broken.
    assert!(error.findings().iter().any(|finding| finding.to_string().contains(words)), "{words}: {error}");
}

#[test]
fn files_that_are_none() {
    let folder = Folder::new();
    says(load(&folder.path("absent.toml")), "cannot be read");
    says(load(&folder.path("")), "has no `*.toml` in it");
    says(quickly(|| Contract::load(Vec::<String>::new())), "there is no file to read");
    for (name, bytes, words) in [
        ("empty.toml", &b""[..], "does not say which format"),
        ("blank.toml", &b"\n \n"[..], "does not say which format"),
        ("latin.toml", &b"format = 1\n# caf\xe9\n"[..], "not UTF-8: the first byte that is none is on line 2"),
        ("binary.toml", &b"\x00\x01\x02\xff"[..], "not UTF-8"),
        ("zero.toml", &b"\x00\x01\x02"[..], "this is not TOML"),
    ] {
        says(load(&folder.write(name, bytes)), words);
    }
    let large = vec![b'#'; 10 * 1024 * 1024];
    says(load(&folder.write("large.toml", &large)), "too large for a contract: 10485760 bytes");
    says(quickly(|| Contract::parse("text", "#".repeat(10 * 1024 * 1024))), "too large for a contract");
    // A folder that is named like a file.
    fs::create_dir(folder.path("folder.toml")).unwrap();
    says(load(&folder.path("folder.toml")), "has no `*.toml` in it");
}

#[test]
fn a_file_with_a_mark_of_its_encoding_is_read() {
    Contract::parse("bom.toml", format!("\u{feff}{SHOP}")).unwrap();
    Contract::parse("crlf.toml", SHOP.replace('\n', "\r\n")).unwrap();
    assert!(the_problem(&format!("\u{feff}{}", SHOP.replace("attempts  = 3", "attempts = 0"))).starts_with("7:12"));
}

#[test]
fn ten_thousand_operations() {
    let operations: String = (0..10_000)
        .map(|number| {
            format!(
                "[[provider.shop.operation]]\nname = \"o{number}\"\nmatch = \"GET /v{}/o{number}/{{id}}\"\n",
                number % 7
            )
        })
        .collect();
    let text = format!("{SHOP}{operations}");
    // Debug builds are some ten times slower than what anybody runs.
    let start = Instant::now();
    let contract = Contract::parse("many.toml", text.as_str()).unwrap();
    println!("10 000 operations, {} KiB: {:?}", text.len() / 1024, start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 }));
    assert!(contract.policy("shop", "o9999").is_some());

    // Each of them wrong: as many findings, and a text that ends.
    let error = refused(&text.replace("GET /", "get /"));
    assert_eq!(error.findings().len(), 10_000);
    let shown = error.to_string();
    assert!(shown.contains("and 9950 more") && shown.len() < 100_000, "{}", shown.len());
}

#[test]
fn depth_is_bounded() {
    for text in ["[".repeat(100_000), format!("x = {}", "[".repeat(100_000)), format!("x = {}", "{a=".repeat(50_000))] {
        quickly(|| Contract::parse("deep.toml", text)).unwrap_err();
    }
    let deep = format!("{SHOP}[[provider.shop.operation]]\nname = \"a\"\nmatch = \"GET {}\"\n", "/a".repeat(100));
    assert!(the_problem(&deep).contains("more than 64 segments"));
}

#[test]
fn durations_beyond_all_bounds() {
    for (written, words) in
        [("-1s", "sign"), ("1e9h", "not known"), ("99999999999999999999d", "400 days"), ("1d1h1m1s1ms1us", "not known")]
    {
        let problem = the_problem(&SHOP.replace("\"10s\"", &format!("\"{written}\"")));
        assert!(problem.contains(words), "{written}: {problem}");
    }
}

#[test]
fn syntax_errors_are_located_and_all_of_them_are_found() {
    let error = refused("format = 1\n[provider.shop\nhosts = [\"a\"\nattempts == 3\n");
    assert!(error.findings().len() > 1, "{error}");
    assert!(error.findings().iter().all(|finding| finding.message().starts_with("this is not TOML")), "{error}");
    assert_eq!((error.findings()[0].line(), error.findings()[0].rule()), (2, None));
}

#[test]
fn the_same_host_in_two_providers() {
    let folder = Folder::new();
    let one = folder.write("a.toml", SHOP.as_bytes());
    let two = folder.write("b.toml", SHOP.replace("provider.shop", "provider.store").as_bytes());
    let error = Contract::load([one, two]).unwrap_err();
    let [finding] = error.findings() else { panic!("{error}") };
    assert!(finding.file().ends_with("b.toml") && finding.line() == 4, "{finding:?}");
    assert!(error.to_string().contains("the provider `shop` has the host `api.shop.example` already"), "{error}");
    // And the same provider twice.
    folder.write("b.toml", SHOP.as_bytes());
    says(load(&folder.path("")), "the provider `shop` is there twice");
}

#[test]
fn a_folder_is_joined() {
    let folder = Folder::new();
    folder.write("a.toml", SHOP.as_bytes());
    let other = SHOP.replace("provider.shop", "provider.bank").replace("api.shop.example", "*.bank.example");
    folder.write("b.toml", other.as_bytes());
    folder.write("c.txt", b"no contract");
    let contract = load(&folder.path("")).unwrap();
    assert!(contract.policy("shop", "any").is_some() && contract.policy("bank", "any").is_some());
}
