//! What must not compile, and what the compiler then says.
//!
//! Every case in `tests/ui` is met in four ways, each a function of its own: `oneshot`, `ready().call`, `impl Service`
//! and a boxed service. On every compiler each case has to fail, and the reason has to be ours wherever people meet
//! it. What else is printed depends on the compiler and is compared on one version only.
//!
//! Record anew: `TRYBUILD=overwrite cargo test --all-features --test ui`.

use std::{
    env, fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler that the messages in `tests/ui/*.stderr` were recorded with.
const RECORDED_WITH: &str = "1.95";

/// Set for the child process that records messages anew: the folder of the cases.
const FRESH: &str = "REDIAL_UI_FRESH";

const TWO: &str = "two `RetryLayer`s on one path: requests would multiply";
const OWN_BODY: &str = "`MyBody` cannot enter a `RetryLayer`: nothing says how to send it again";

/// The ways in which each case is met.
const MET: [&str; 4] = ["oneshot", "ready_call", "returned", "boxed"];

#[test]
fn every_case_fails_and_says_why() {
    if let Some(cases) = env::var_os(FRESH) {
        return trybuild::TestCases::new().compile_fail(Path::new(&cases).join("*.rs"));
    }
    let cases = copied();
    record(&cases);
    let mut names = Vec::new();
    for case in rust_files(&cases) {
        let name = case.file_stem().and_then(|name| name.to_str()).expect("a case's name").to_owned();
        let source = fs::read_to_string(&case).expect("a case");
        let printed = fs::read_to_string(case.with_extension("stderr")).expect("what the compiler said");
        let ours = if name.starts_with("two_") { TWO } else { OWN_BODY };
        for met in MET {
            let lines = lines_of(&source, met);
            assert!(
                errors(&printed).any(|(line, error)| lines.contains(&line) && error.contains(ours)),
                "{name}: `{met}` does not say: {ours}\n\n{printed}"
            );
        }
        // Nothing else is wrong with the case.
        let others: Vec<_> = errors(&printed).filter(|(_, error)| !error.contains(ours)).collect();
        assert!(others.is_empty(), "{name}: errors of another kind: {others:#?}");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["own_body", "two_buffer", "two_decompression", "two_direct", "two_set_header", "two_trace"]);
}

/// Only the stacks: for a body the compiler lists other bodies, and which there are depends on the enabled features. So
/// does how much of a type's path is printed, such as that of one of several `Client`s: recorded with all features.
#[test]
fn messages_are_as_recorded() {
    let version = compiler();
    if cfg!(not(feature = "reqwest")) {
        println!("recorded with all features: not compared; the other test reads what is said");
    } else if version.starts_with(&format!("{RECORDED_WITH}.")) {
        trybuild::TestCases::new().compile_fail("tests/ui/two_*.rs");
    } else {
        println!(
            "recorded with {RECORDED_WITH}, and this is {version}: not compared; the other test reads what it says"
        );
    }
}

/// The cases, in a folder of their own without the recorded messages.
fn copied() -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui");
    // A recording of an earlier run must not be taken for one of this run.
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&to).expect("a folder for the cases");
    for case in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")) {
        fs::copy(&case, to.join(case.file_name().expect("a file"))).expect("a copy");
    }
    to
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Has trybuild write what the compiler says beside each case. Fails where a case compiles.
fn record(cases: &Path) {
    // trybuild reads its mode from the environment, which only a new process can be given safely.
    let child = Command::new(env::current_exe().expect("this test"))
        .args(["every_case_fails_and_says_why", "--exact", "--nocapture"])
        .env(FRESH, cases)
        .env("TRYBUILD", "overwrite")
        .output()
        .expect("this test, run again");
    assert!(
        child.status.success(),
        "a case compiles, or could not be tried:\n{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
}

/// Such as `1.95.0`.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc");
    let said = String::from_utf8(output.stdout).expect("a version");
    said.split(' ').nth(1).expect("a version").to_owned()
}

/// The lines of a function, from its head to the brace that closes it, counted from 1.
fn lines_of(source: &str, function: &str) -> RangeInclusive<usize> {
    let mut lines = source.lines().zip(1..);
    let (_, from) = lines.find(|(line, _)| line.contains(&format!("fn {function}("))).expect("a function");
    let (_, to) = lines.find(|(line, _)| *line == "}").expect("its end");
    from..=to
}

/// Each error that the compiler printed, and the line it points at first.
fn errors(printed: &str) -> impl Iterator<Item = (usize, &str)> {
    printed.split("\n\n").filter(|part| part.starts_with("error[")).map(|error| {
        let place = error.lines().find_map(|line| line.trim_start().strip_prefix("--> ")).expect("a place");
        let line = place.rsplit(':').nth(1).and_then(|line| line.parse().ok()).expect("a line");
        (line, error)
    })
}
