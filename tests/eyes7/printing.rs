//! What reaches a terminal, a log of CI, a page.

use crate::support::*;

fn clean(what: &str, text: &str) {
    let found = text.chars().find(|c| c.is_control() && *c != '\n');
    assert!(found.is_none(), "{what} prints {found:?}: {text:?}");
}

const ESCAPES: &str =
    "match = \"GET /a\"\nnever = \"\\u001b[2J\\u001b]0;title\\u0007\"\nfallback = \"\\u001b[8mhidden\"";

/// TOML can write any control character; nothing of a file moves the reader's cursor.
#[test]
fn control_characters_of_a_file_are_not_printed() {
    let text = operation(ESCAPES);
    for arguments in [
        &["check", "-"][..],
        &["matrix", "-"],
        &["doc", "-"],
        &["explain", "-", "GET", "https://api.shop.example/a", "--status", "503"],
    ] {
        let ended = fed(&text, arguments);
        clean(arguments[0], &ended.out);
    }
}

#[test]
fn control_characters_of_a_name_are_not_printed() {
    let text = operation("match = \"GET /a\"").replace("name = \"o\"", "name = \"\\u001b[31mred\"");
    for command in ["check", "matrix", "doc"] {
        clean(command, &fed(&text, &[command, "-"]).out);
    }
}

/// A raw one is no TOML: the line that is shown is not to do what it says.
#[test]
fn a_line_that_is_shown_is_not_obeyed() {
    clean("check", &fed("format = 1 # \u{1b}[2J\u{1b}[1A all is well\n", &["check", "-", "--quiet"]).out);
}

/// GitHub reads commands at the beginnings of lines, and a carriage return ends one.
#[test]
fn no_commands_for_github_out_of_a_file() {
    let text = "format = 1\n[provider.\"a\\r::error file=x::pwn\"]\nhosts = [\"a.example\"]\n";
    let ended = fed(text, &["check", "-", "--format", "github"]);
    let lines = ended.out.split(['\n', '\r']);
    let made: Vec<&str> = lines.filter(|line| line.starts_with("::error file=x")).collect();
    assert!(made.is_empty(), "{made:?} in {}", ended.out);
}

/// What could not be written is no success: `redial doc … > PAGE` on a full disk.
#[test]
fn a_full_disk_is_told() {
    let folder = Folder::new();
    folder.write("shop.toml", SHOP);
    for command in ["doc shop.toml", "matrix shop.toml", "schema", "init", "check --format sarif shop.toml"] {
        let ended = shell(folder.path(), &format!("$R {command} > /dev/full"));
        assert_ne!(ended.code, Some(0), "{command}");
    }
}

/// A diagnostic shows the line that it is about: the numbers of a budget are no secrets.
#[test]
fn a_number_is_no_secret() {
    let text = SHOP.replace(
        "elsewhere = []",
        "elsewhere = []\nbudget = { setting = \"grpc\", max_tokens = -7.0, token_ratio = 0.1 }",
    );
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert!(ended.out.contains("max_tokens = -7.0"), "{}", ended.out);
}

/// A table row is one, whatever an operation is called.
#[test]
fn a_matrix_has_its_columns() {
    let text = operation("match = \"GET /a\"").replace("name = \"o\"", "name = \"a|b\"");
    let ended = fed(&text, &["matrix", "-"]);
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let rows: Vec<usize> = ended.out.lines().filter(|line| line.starts_with('|')).map(columns).collect();
    assert!(rows.windows(2).all(|two| two[0] == two[1]), "{rows:?}\n{}", ended.out);
}

/// The finding that says "a secret?" shows it, as soon as the URL has a query with `token=`.
#[test]
fn a_password_is_covered_whatever_follows_it() {
    for url in ["https://ann:hunter2@shop.example/docs?token=abc", "https://ann:hunter2@shop.example/?api_key=abc"] {
        let text = SHOP.replace("https://shop.example/docs", url);
        for arguments in [&["check", "-", "--quiet"][..], &["doc", "-"], &["matrix", "-"]] {
            let shown = fed(&text, arguments).all();
            assert!(!shown.contains("hunter2"), "{url}: {shown}");
        }
        let error = redial::contract::Contract::parse("shop.toml", text.as_str()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error}");
    }
}

/// A value of more than one line is one.
#[test]
fn a_secret_of_two_lines_is_covered() {
    let text = with(
        "[[provider.shop.answer]]\nwhen = { status = 403, header = { authorization = \"\"\"\nBearer s3cret\"\"\" } }\nmeans = \"busines\"\n",
    );
    let shown = fed(&text, &["check", "-", "--quiet"]).all();
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn control_characters_of_a_scenario_and_a_lock_are_not_printed() {
    let folder = Folder::new();
    folder.write("shop.toml", SHOP);
    folder.write(
        "scenario.toml",
        "name = \"\\u001b[31mred\"\nclients = 1\nlength = \"10s\"\n[trouble]\nkind = \"silence\"\nfrom = \"1s\"\nuntil = \"5s\"\n",
    );
    folder.write("Cargo.lock", "version = 4\n[[package]]\nname = \"octocrab\"\nversion = \"0.40.0\\u001b[2J\"\n");
    clean("simulate", &run_in(folder.path(), &["simulate", "shop.toml", "--scenario", "scenario.toml"]).out);
    clean("deps", &run_in(folder.path(), &["deps", "Cargo.lock"]).out);
}

/// One place has one column, whoever prints it: characters, and an editor's mark of UTF-8 is none of them.
#[test]
fn a_column_is_the_same_everywhere() {
    let wide = SHOP.replace("\"platform\"", "\"plätförm日本\", ownr = 3");
    let marked = format!("\u{feff}{}", SHOP.replace("format = 1", "formt = 1"));
    for (text, words, line, column) in [(wide, "`ownr`", 5, 95), (marked, "`formt`", 1, 1)] {
        let json: serde_json::Value =
            serde_json::from_str(&fed(&text, &["check", "-", "--format", "json"]).out).unwrap();
        let findings = json["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["message"].as_str().unwrap().contains(words)).unwrap();
        let human = fed(&text, &["check", "-", "--quiet"]).out;
        let shown = human.contains(&format!("<stdin>:{line}:{column}]"));
        assert!(
            finding["column"] == column && shown,
            "{words}: wanted {column}, JSON says {}\n{}",
            finding["column"],
            human.lines().filter(|line| line.contains("<stdin>")).collect::<Vec<_>>().join("\n")
        );
    }
}

/// A device has no length, and half a day is not "0 days".
#[test]
fn what_is_said_of_a_length_is_so() {
    let ended = fed("", &["check", "/dev/zero", "--quiet"]);
    assert!(ended.code == Some(2) && !ended.all().contains(": 0 bytes"), "{}", ended.all());
    let ended = fed(SHOP, &["check", "-", "--quiet", "--as-of", "2026-11-30", "--max-age", "12h"]);
    assert!(ended.code == Some(2) && ended.err.contains("whole days"), "{}", ended.all());
    let ended = fed(SHOP, &["check", "-", "--quiet", "--as-of", "2026-11-30", "--max-age", "1d"]);
    assert_eq!(ended.code, Some(0), "{}", ended.all());
}

/// Whoever has one endless line, or a hundred findings on it, is not sent a copy of it for each.
#[test]
fn an_endless_line_is_cut() {
    let others = "{ by = \"x\" }, ".repeat(3000);
    let text = SHOP.replace("elsewhere = []", &format!("elsewhere = [{others}]"));
    let ended = fed(&text, &["check", "-", "--quiet"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.len() < 20 * text.len(), "{} bytes of {}", ended.out.len(), text.len());
    assert!(ended.out.contains("and 2800 more"), "{}", &ended.out[ended.out.len() - 300..]);
}

/// What a contract cannot show it cannot have: names and reasons go to terminals, logs and pages.
#[test]
fn hidden_characters_are_refused() {
    for hidden in ["\\u001b[8m", "\\u0085", "\\u202e", "\\r"] {
        let text = operation(&format!("match = \"GET /a\"\nnever = \"it{hidden} is\""));
        let ended = fed(&text, &["check", "-", "--quiet"]);
        assert!(ended.code == Some(1) && ended.out.contains("nobody sees"), "{hidden}: {}", ended.all());
    }
    let lines = operation("match = \"GET /a\"\nnever = \"\"\"it is\r\n\tnot\"\"\"");
    assert_eq!(fed(&lines, &["check", "-", "--quiet", "--as-of", "2026-11-30"]).code, Some(0));
}
