//! Every case has its test, and `README.md` beside this says which.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// How many there are: one that is lost from the list is lost from the tests too.
const CASES: usize = 131;

/// Set, the list is written anew.
const WRITE: &str = "REDIAL_WRITE_LIST";

/// By id, each test with its file.
type Held = BTreeMap<String, Vec<(String, String)>>;

#[test]
fn each_case_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("tests/cases/README.md");
    let text = fs::read_to_string(&page).unwrap();
    let mut files = Vec::new();
    for folder in ["src", "tests", "jobs/src", "jobs/tests"] {
        read(&root.join(folder), root, &mut files);
    }
    let mut held = Held::new();
    for (file, text) in &files {
        for (id, test) in tests(text, &files) {
            held.entry(id).or_default().push((file.clone(), test));
        }
    }

    let (mut cases, mut without) = (0, Vec::new());
    let lines = text.lines().map(|line| {
        let Some((id, rest)) = line.strip_prefix("| C").and_then(|row| row.split_once(" | ")) else {
            return line.to_owned();
        };
        cases += 1;
        let tests = held.remove(id).unwrap_or_else(|| {
            without.push(id.to_owned());
            Vec::new()
        });
        let tests: Vec<_> = tests.iter().map(|(file, test)| format!("`{file}`: `{test}`")).collect();
        let (about, reported) = rest.split_once(" | ").unwrap();
        let reported = reported.split(" |").next().unwrap();
        format!("| C{id} | {about} | {reported} | {} |", tests.join("; "))
    });
    let listed = lines.collect::<Vec<_>>().join("\n") + "\n";
    assert!(without.is_empty(), "cases without a test: {without:?}");
    assert!(held.is_empty(), "tests of cases that are not listed: {held:?}");
    assert_eq!(cases, CASES);
    if listed != text {
        assert!(std::env::var_os(WRITE).is_some(), "{} is stale: {WRITE}=1 writes it anew", page.display());
        fs::write(&page, listed).unwrap();
    }
}

/// Every source file below a folder, and its text.
fn read(folder: &Path, root: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            read(&entry, root, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let file = entry.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            files.push((file, fs::read_to_string(&entry).unwrap()));
        }
    }
}

/// The tests of a file that bear a case's id: functions, and what a macro makes tests of.
fn tests(text: &str, files: &[(String, String)]) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = |at: usize| {
        let line = lines[at].trim_start_matches("pub ").trim_start_matches("async ");
        let (name, function) = match line.strip_prefix("fn ") {
            Some(rest) => (rest.split_once('(')?.0, true),
            // An entry of a table.
            None => (line.split_once(": ")?.0, false),
        };
        let id = name.strip_prefix('c')?.get(..3).filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))?;
        name.get(4..)?.strip_prefix('_')?;
        let above = || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let is_test = above().any(|line| line.contains("test")) && !above().any(|line| line.contains("ignore"));
        // Or a macro runs it, which names it again.
        let is_run = || files.iter().map(|(_, text)| text.matches(name).count()).sum::<usize>() > 1;
        (!function || is_test || is_run()).then(|| (id.to_owned(), name.to_owned()))
    };
    (0..lines.len()).filter_map(named).collect()
}
