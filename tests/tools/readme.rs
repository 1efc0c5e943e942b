//! The commands that README shows and that `--help` gives as examples, run.

use std::{fs, path::Path};

use crate::command::{Folder, SHOP};

/// A line of a shell, as far as it is used here: words, and what stands in single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            // What follows is the shell's, or a comment.
            '>' | '#' | '|' | '&' if !quoted => break,
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn commands(text: &str) -> Vec<Vec<String>> {
    // What something is piped into is a command as well.
    let lines = text.lines().map(|line| line.split_once(" | ").map_or(line, |(_, piped)| piped).trim_start());
    // A manifest's line names the crate as well.
    let is_command = |line: &&str| line.starts_with("redial ") && !line.starts_with("redial =");
    lines.filter(is_command).map(|line| words(line).split_off(1)).collect()
}

/// A folder that has what the commands name.
fn folder() -> Folder {
    let openapi = "openapi: 3.1.0\npaths: { /user: { get: {} } }\n";
    let scenario = "name = \"mine\"\nclients = 10\nlength = \"20s\"\n\
                    trouble = { kind = \"outage\", from = \"5s\", until = \"10s\" }\n";
    let baseline = "[]";
    let files = [
        ("shop.toml", SHOP),
        ("old/shop.toml", SHOP),
        ("contracts/shop.toml", SHOP),
        ("openapi.yaml", openapi),
        ("openapi.json", "{\"openapi\": \"3.1.0\", \"paths\": {\"/orders\": {\"post\": {}}}}"),
        ("my-outage.toml", scenario),
        ("debts.json", baseline),
        ("Cargo.lock", include_str!("../../Cargo.lock")),
        ("docs/retries.md", ""),
    ];
    let folder = Folder::with(&[]);
    for (name, text) in files {
        fs::create_dir_all(folder.path(name).parent().unwrap()).unwrap();
        folder.write(name, text);
    }
    folder
}

#[test]
fn of_the_readme() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in fs::read_dir(root.join("contracts")).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        folder.write(&format!("contracts/{}", path.file_name().unwrap().to_str().unwrap()), fs::read(&path).unwrap());
    }
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let commands = commands(&readme);
    let mut seen: Vec<&str> = commands.iter().map(|words| words[0].as_str()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, ["check", "coverage", "deps", "diff", "doc", "explain", "matrix", "simulate"]);
    for words in &commands {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words[0] == "simulate" {
            // The same with fewer clients takes as much less time.
            words.extend(["--clients", "50"]);
        }
        let ended = folder.fed(&folder.read("contracts/github.toml"), &words);
        // These two find something in what they are shown.
        let found = ["coverage", "deps"].contains(&words[0]);
        assert_eq!(ended.code, i32::from(found), "{words:?}: {}{}", ended.out, ended.err);
        assert!(!ended.out.is_empty() && ended.err.is_empty(), "{words:?}: {}", ended.err);
    }
    assert!(folder.read("brown-out.svg").contains("github"));
}

#[test]
fn of_the_help() {
    let folder = folder();
    for command in ["check", "explain", "matrix", "simulate", "doc", "deps", "diff", "coverage", "init"] {
        let help = folder.run(&[command, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""), "{command}");
        let examples = commands(help.out.split_once("Examples:").unwrap_or_else(|| panic!("{command}: examples")).1);
        assert!(!examples.is_empty(), "{command}");
        for words in examples {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            if words[0] == "simulate" {
                words.extend(["--clients", "10"]);
            }
            let ended = folder.fed(SHOP, &words);
            // Whatever they find in what they are shown, they can read it.
            assert!(ended.code < 2 && !ended.out.is_empty(), "{words:?}: {}{}", ended.out, ended.err);
        }
    }
}
