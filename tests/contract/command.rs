//! The command itself, run.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::support::{DESIGN, SHOP};

pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs it in a folder, with this for its standard input.
fn run_in(folder: Option<&Path>, input: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("GITHUB_STEP_SUMMARY");
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn().unwrap();
    // It may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

pub fn fed(input: &str, arguments: &[&str]) -> Ended {
    run_in(None, input, arguments)
}

/// A folder of a test's own, gone with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("contract-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn check_answers_the_eight_questions() {
    let checked = fed(DESIGN, &["check", "-"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    insta::assert_snapshot!(checked.out);
}

#[test]
fn check_of_ten_mistakes_ends_with_one() {
    let checked = fed(include_str!("ten.toml"), &["check", "-", "--quiet"]);
    assert_eq!(checked.code, 1);
    assert!(checked.out.ends_with("2 operations in 1 provider, 1 file: 17 errors, 1 warning\n"), "{}", checked.out);
    assert!(!checked.out.contains('\x1b'), "no colours but on a terminal");
    assert!(fed(SHOP, &["check", "-", "--color", "always"]).out.contains('\x1b'));
}

#[test]
fn what_cannot_be_read_ends_with_two() {
    let folder = Folder::new();
    for arguments in
        [&["check", "absent.toml"][..], &["check", "no/*.toml"], &["check"], &["check", "-", "--as-of", "x"]]
    {
        let ended = run_in(Some(&folder.path("")), SHOP, arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {} {}", ended.out, ended.err);
    }
    assert_eq!(fed("", &["--help"]).code, 0);
    assert!(fed("", &["--help"]).out.contains("redial explain contracts/github.toml GET"));
}

#[test]
fn dates_count_by_the_day_that_is_given() {
    for (arguments, code, words) in [
        (&["--as-of", "2027-11-30"][..], 0, "0 warnings"),
        (&["--as-of", "2027-12-01"], 0, "S6: the contract of `shop` was last reviewed on 2026-11-30"),
        (&["--as-of", "2027-12-01", "--deny", "warnings"], 1, "366 days ago"),
        (&["--as-of", "2026-12-31", "--max-age", "30d", "--deny", "warnings"], 1, "31 days ago"),
        (&["--as-of", "2026-11-01"], 0, "the review of `shop` is in the future"),
    ] {
        let ended = fed(SHOP, &[&["check", "-", "--quiet"], arguments].concat());
        assert!(ended.code == code && ended.out.contains(words), "{arguments:?}: {} {}", ended.code, ended.out);
    }
    let waived = SHOP.replace("fallback  = \"none\"\n", "")
        + "[[waiver]]\nrule = \"S19\"\nreason = \"being written\"\nuntil = 2026-12-31\n";
    assert_eq!(fed(&waived, &["check", "-", "--as-of", "2026-12-31"]).code, 0);
    let over = fed(&waived, &["check", "-", "--as-of", "2027-01-01", "--quiet"]);
    assert!(over.code == 1 && over.out.contains("the waiver of S19 ended on 2026-12-31"), "{}", over.out);
}

#[test]
fn a_baseline_keeps_old_debts_and_finds_new_ones() {
    let folder = Folder::new();
    let here = folder.path("");
    let check = |arguments: &[&str]| run_in(Some(&here), "", &[&["check", "shop.toml", "--quiet"], arguments].concat());
    let owing = SHOP.replace("fallback  = \"none\"\n", "");
    folder.write("shop.toml", owing.as_bytes());
    assert_eq!(check(&[]).code, 1);
    assert_eq!(check(&["--write-baseline", "debts.json"]).code, 0);
    let known = check(&["--baseline", "debts.json"]);
    assert!(known.code == 0 && known.out.contains("1 known from the baseline"), "{}", known.out);
    // A line moves, and the debt is the same.
    folder.write("shop.toml", format!("# moved\n{owing}").as_bytes());
    assert_eq!(check(&["--baseline", "debts.json"]).code, 0);
    folder.write("shop.toml", owing.replace("owner = \"platform\"", "").replace(", }", " }").as_bytes());
    let new = check(&["--baseline", "debts.json"]);
    assert!(new.code == 1 && new.out.contains("lacks `owner`") && !new.out.contains("S19"), "{}", new.out);
    assert_eq!(check(&["--baseline", "absent.json"]).code, 2);
}

#[test]
fn findings_for_machines() {
    let folder = Folder::new();
    folder.write("ten.toml", include_bytes!("ten.toml"));
    let run = |format| run_in(Some(&folder.path("")), "", &["check", "./ten.toml", "--format", format]);

    let json: serde_json::Value = serde_json::from_str(&run("json").out).unwrap();
    let first = &json["findings"][1];
    assert_eq!(
        (first["line"].as_u64(), first["column"].as_u64(), first["file"].as_str()),
        (Some(4), Some(14), Some("./ten.toml"))
    );
    assert_eq!(json["operations"][0]["checklist"].as_array().unwrap().len(), 8);

    let sarif: serde_json::Value = serde_json::from_str(&run("sarif").out).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run_of = &sarif["runs"][0];
    let (rules, results) =
        (run_of["tool"]["driver"]["rules"].as_array().unwrap(), run_of["results"].as_array().unwrap());
    assert_eq!(results.len(), 18);
    let mut prints = std::collections::BTreeSet::new();
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(rules[index]["helpUri"].as_str().unwrap().starts_with("https://"));
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "ten.toml");
        assert!(location["region"]["startLine"].as_u64() >= Some(1));
        prints.insert(result["partialFingerprints"]["redial/v1"].as_str().unwrap().to_owned());
    }
    assert_eq!(prints.len(), 18, "each finding has a fingerprint of its own");

    let github = run("github").out;
    assert_eq!(github.lines().filter(|line| line.starts_with("::error ")).count(), 10);
    assert!(
        github.contains("::error file=ten.toml,line=4,endLine=4,col=14,endColumn=43,title=contract::`https://"),
        "{github}"
    );
    assert!(github.contains("### Contracts: 17 errors, 1 warning"), "{github}");
    assert_eq!(github.lines().filter(|line| line.starts_with("| error |")).count(), 17);
}

/// A 429 with `Retry-After: 30` for a GET, for a POST with a key, and for one without.
#[test]
fn explain_a_429() {
    let text = SHOP.replace("[502, 503, 504]", "[429, 502, 503, 504]").replace("\"10s\"", "\"60s\"")
        + "key = { header = \"Idempotency-Key\" }\n\n[[provider.shop.operation]]\nname = \"orders.create\"\nmatch = \"POST /orders\"\n";
    let mut out = String::new();
    for request in [
        &["GET", "https://api.shop.example/orders/7"][..],
        &["POST", "https://api.shop.example/orders"],
        &["POST", "https://api.shop.example/orders", "--header", "idempotency-key: 1"],
        &["GET", "https://api.shop.example/orders/7", "--elapsed", "40s"],
    ] {
        let arguments =
            [&["explain", "-"], request, &["--status", "429", "--answer-header", "retry-after: 30"]].concat();
        let ended = fed(&text, &arguments);
        assert_eq!(ended.code, 0, "{}", ended.err);
        out += &format!("$ redial {}\n{}\n", arguments.join(" "), ended.out);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn explain_what_else_may_happen() {
    let explained = |more: &[&str]| {
        let ended = fed(DESIGN, &[&["explain", "-"], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.out
    };
    const PUT: &str = "https://api.github.com/repos/o/r/contents/x";
    for (arguments, last) in [
        (&["PUT", PUT, "--status", "409"][..], "=> not repeated: a repeat would not help (permanent)"),
        (
            &["PUT", PUT, "--status", "409", "--after-unknown", "--attempt", "2"],
            "=> not repeated: an earlier attempt may have worked (verify)",
        ),
        (&["PUT", PUT, "--status", "200"], "=> the answer goes to the caller"),
        (&["PUT", PUT, "--status", "503", "--attempt", "3"], "=> not repeated: all attempts made (attempts)"),
        (
            &["POST", "https://api.github.com/x", "--fault", "reset"],
            "=> not repeated: nothing says that a repeat is safe (no-evidence)",
        ),
        (&["POST", "https://api.github.com/x", "--fault", "connect"], "=> repeated: attempt 2 follows the wait"),
        (
            &["GET", "https://api.github.com/x", "--status", "503", "--elapsed", "60s"],
            "=> not repeated: no time left (deadline)",
        ),
        (&["GET", "https://other.example/x", "--status", "503"], "=> not repeated: nothing names it (S1)"),
    ] {
        let out = explained(arguments);
        assert_eq!(out.lines().last(), Some(last), "{out}");
    }
    let limited = explained(&["POST", "https://api.github.com/x", "--status", "403", "-A", "x-ratelimit-remaining: 0"]);
    assert!(limited.contains("needs no evidence: the provider documents that it was not processed"), "{limited}");
    assert!(limited.contains("(<stdin>:16, provider)"), "{limited}");
    assert_eq!(fed(DESIGN, &["explain", "-", "GET", "/x", "--status", "503"]).code, 2, "no host");
    assert_eq!(fed(DESIGN, &["explain", "-", "GET", "https://x/", "--fault", "conect"]).code, 2);
}

#[test]
fn codes_of_grpc_are_explained() {
    let text = SHOP.replace(
        "faults = [",
        "grpc = [\"UNAVAILABLE\", { code = \"ABORTED\", rejected = \"the guide\" }], faults = [",
    );
    for (code, verdict, last) in [
        (
            "14",
            "transient\n              (<stdin>:9, provider)",
            "=> not repeated: nothing says that a repeat is safe (no-evidence)",
        ),
        (
            "10",
            "rejected before it was processed (the guide)\n              (<stdin>:9, provider)",
            "=> repeated: attempt 2 follows the wait",
        ),
        (
            "13",
            "final: nobody listed it (S1)\n              (built in)",
            "=> not repeated: a repeat would not help (permanent)",
        ),
    ] {
        let (kind, status) = ("content-type: application/grpc+proto", format!("grpc-status: {code}"));
        let url = "https://api.shop.example/shop.Orders/Get";
        let said = fed(&text, &["explain", "-", "POST", url, "-H", kind, "--status", "200", "-A", &status]).out;
        assert!(said.contains(&format!("gRPC code {code}: {verdict}")), "{said}");
        assert_eq!(said.lines().last(), Some(last), "{said}");
    }
    let table = fed(&text, &["matrix", "-"]).out;
    assert!(table.lines().next().is_some_and(|head| head.ends_with("| goaway | ABORTED | UNAVAILABLE |")), "{table}");
    assert!(table.lines().any(|row| row.contains("| POST |") && row.ends_with("| yes | evidence |")), "{table}");
}

#[test]
fn matrix() {
    let table = fed(DESIGN, &["matrix", "-"]);
    assert_eq!(table.code, 0, "{}", table.err);
    insta::assert_snapshot!(table.out);
    let json: serde_json::Value = serde_json::from_str(&fed(DESIGN, &["matrix", "-", "--format", "json"]).out).unwrap();
    let row = json.as_array().unwrap().iter().find(|row| row["method"] == "POST").unwrap();
    assert_eq!(row["after"]["503"]["repeated"], "evidence");
    assert_eq!((&row["after"]["403"]["repeated"], &row["after"]["403"]["unless_a_rule"]), (&"no".into(), &true.into()));
    assert_eq!(fed(include_str!("ten.toml"), &["matrix", "-"]).code, 1);
}

#[test]
fn init_draws_up_a_contract_that_is_kept() {
    let drawn = fed("", &["init", "bank", "--host", "*.bank.example"]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    assert!(drawn.out.contains("[[provider.bank.operation]]"));
    let checked = fed(&drawn.out, &["check", "-", "--deny", "warnings"]);
    assert_eq!(checked.code, 0, "{}", checked.out);
    assert!(drawn.out.contains("url = \"https://bank.example/docs\""), "{}", drawn.out);
    assert_eq!(fed("", &["init", "--host", "https://x"]).code, 2);
    assert_eq!(fed("", &["init", "two words"]).code, 2);
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ended = fed("", &["completions", shell]);
        assert!(ended.code == 0 && ended.out.contains("redial"), "{shell}");
    }
}
