//! The command `redial-jobs`, run as a person and as a script would run it. On SQLite always; on PostgreSQL where
//! `REDIAL_TEST_POSTGRES` is the URL of a server.

#[path = "../store/place.rs"]
#[allow(dead_code)]
mod place;
#[cfg(unix)]
mod tls;

use std::{
    process::{Command, Output},
    time::Duration,
};

use redial_jobs::{AttemptRecord, Failure, FailureClass, JobId, JobStore, NewJob, Recovery, Scope};
use serde_json::Value;

use place::{Database, LEASE, Place, claim_one, enqueue, recovery};

/// What the command says about this table.
fn ask(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial-jobs"));
    match &place.database {
        Database::Sqlite(pool) => {
            let file = pool.connect_options().get_filename().display().to_string();
            command.args(["--url", &format!("sqlite:{file}")]);
        }
        Database::Postgres(_) => {
            // As a script names it.
            command.env("REDIAL_JOBS_URL", std::env::var("REDIAL_TEST_POSTGRES").unwrap());
            command.args(["--schema", &place.name]);
        }
    }
    command.args(arguments).env("TZ", "UTC").env_remove("NO_COLOR").output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn said(place: &Place, arguments: &[&str]) -> String {
    let output = ask(place, arguments);
    assert!(output.status.success(), "{arguments:?}: {}{}", out(&output), err(&output));
    out(&output)
}

fn lines(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--format", "json"]);
    let output = ask(place, &arguments);
    out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exhausted() -> Failure {
    let attempt = |number, outcome: &str, wait_ms| AttemptRecord {
        number,
        started_ms: u64::from(number) * 1500,
        took_ms: 40,
        outcome: outcome.to_owned(),
        unknown: outcome == "timeout",
        wait_ms,
    };
    Failure::new(FailureClass::Exhausted, "no answer from\u{1b}[31m https://hub.example/?token=s3cret")
        .attempts([attempt(1, "503", Some(200)), attempt(2, "timeout", None)])
        .unknown(true)
}

/// Mail to ada failed twice and is repaired, mail to bob is DEAD, mail to cyd waits. Returns the first and the last of ada's
/// chain, and bob's.
async fn a_day(place: &Place) -> (JobId, JobId, JobId) {
    let mail = NewJob::raw("mail", "ada", r#"{"to":"ada@s3cret.example"}"#).unwrap().provider("hub").unwrap();
    enqueue(&place.store, mail).await;
    let first = claim_one(&place.store).await.lease;
    let _ = place.store.fail(first, &exhausted(), &recovery()).await.unwrap();
    let later = place.later(Duration::from_secs(3 * 3600));
    place::sweep(&later).await;
    let second = claim_one(&place.later(Duration::from_secs(4 * 3600))).await.lease;
    assert_eq!(place.store.complete(&[second]).await.unwrap().len(), 1);

    place.enqueue("bob").await;
    let bob = claim_one(&place.store).await.lease;
    let gone = Failure::new(FailureClass::Business, "the mailbox is gone");
    let _ = place.store.fail(bob, &gone, &recovery()).await.unwrap();
    place.enqueue("cyd").await;
    (first.id, second.id, bob.id)
}

async fn lists_and_shows(place: &Place) {
    assert_eq!(said(place, &["list"]), "no jobs\n");
    let (first, second, bob) = a_day(place).await;

    let list = said(place, &["list"]);
    let columns: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().take(5).collect()).collect();
    assert_eq!(columns[0], ["ID", "STATE", "TYPE", "TARGET", "RUN"]);
    let states: Vec<_> = columns[1..].iter().map(|line| (line[1], line[3])).collect();
    assert_eq!(states, [("PENDING", "cyd"), ("DEAD", "bob"), ("COMPLETED", "ada"), ("FAILED", "ada")], "{list}");
    assert!(list.contains("business: the mailbox is gone"), "{list}");
    assert!(!list.contains('\u{1b}'), "neither colours in a pipe, nor what an error holds");

    assert_eq!(said(place, &["list", "--state", "dead"]).lines().count(), 2);
    let page = said(place, &["list", "--limit", "1", "--before", &bob.to_string()]);
    assert!(page.ends_with(&format!("more may follow: --before {second}\n")), "{page}");

    let shown = said(place, &["show", &second.to_string()]);
    for line in [
        "mail for ada",
        "provider hub",
        "attempt 1 at +1.5 s: 503 after 40 ms, then waited 200 ms",
        "attempt 2 at +3.0 s: timeout after 40 ms, outcome unknown",
        "FAILED (exhausted)",
        "https://hub.example/?…",
        "its outcome is unknown",
        &format!("job {second}  COMPLETED  run 2 <"),
    ] {
        assert!(shown.contains(line), "{line}\n---\n{shown}");
    }
    assert!(!shown.contains("s3cret"), "payloads are shown where asked for: {shown}");
    assert!(said(place, &["show", &first.to_string(), "--payload"]).contains("ada@s3cret.example"));

    let missing = ask(place, &["show", "99999"]);
    assert_eq!((missing.status.code(), err(&missing).as_str()), (Some(1), "error: there is no job 99999\n"));
}

async fn speaks_to_programs(place: &Place) {
    let (first, second, bob) = a_day(place).await;
    let all = lines(place, &["list"]);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|row| row.get("payload").is_none()));
    let dead = lines(place, &["list", "--state", "DEAD", "--payload"]);
    assert_eq!((dead[0]["id"].as_i64(), dead[0]["dead"].as_str()), (Some(bob.0), Some("business")));
    assert_eq!(dead[0]["payload"], serde_json::json!({}));
    assert!(dead[0]["finished_at"].as_str().unwrap().ends_with('Z'), "{}", dead[0]["finished_at"]);

    let chain = lines(place, &["show", &first.to_string()]);
    let ids: Vec<_> = chain.iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [first.0, second.0]);
    assert_eq!(chain[0]["history"][1]["outcome"], "timeout");

    let stats = ask(place, &["stats", "--format", "json"]);
    assert_eq!(stats.status.code(), Some(1), "somebody must look at what is DEAD");
    let stats: Value = serde_json::from_str(&out(&stats)).unwrap();
    assert_eq!(
        (stats["types"]["mail"]["dead"].as_u64(), stats["types"]["mail"]["completed"].as_u64()),
        (Some(1), Some(1))
    );
    assert!(stats["oldest_pending"].is_number(), "{stats}");
}

async fn revives_once(place: &Place) {
    let (.., bob) = a_day(place).await;
    let said_so = said(place, &["revive", &bob.to_string()]);
    assert!(said_so.starts_with(&format!("job {bob} is revived as job ")), "{said_so}");
    let again = ask(place, &["revive", &bob.to_string()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).starts_with(&format!("error: job {bob} ")), "{}", err(&again));
    assert_eq!(ask(place, &["stats"]).status.code(), Some(0), "its row is history: somebody has seen to it");
    assert_eq!(lines(place, &["list", "--state", "dead"]).len(), 1);
    assert_eq!(lines(place, &["list", "--target", "bob"])[0]["origin"], "REVIVED");
}

async fn sweeps_where_told(place: &Place) {
    place.enqueue("ada").await;
    let claimed = claim_one(&place.store).await;
    let soon = Recovery::default().every(Duration::from_millis(1)).jitter(Duration::ZERO);
    let _ = place.store.fail(claimed.lease, &exhausted(), &soon).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;

    let plan = said(place, &["sweep", "--dry-run"]);
    assert!(plan.starts_with(&format!("recover   job {}  mail ada  failure in ", claimed.lease.id)), "{plan}");
    assert!(plan.ends_with("1 failures, 0 ghosts\n"), "{plan}");
    assert_eq!(lines(place, &["list"]).len(), 1, "nothing was done");
    let buried = said(place, &["sweep", "--dry-run", "--failures", "1"]);
    assert!(buried.contains("DEAD: failures"), "{buried}");
    assert_eq!(lines(place, &["sweep", "--dry-run"])[0]["steps"][0]["step"], "recover");

    assert!(said(place, &["sweep"]).starts_with("recovered 1 (0 ghosts), buried 0"));
    assert_eq!(lines(place, &["list"]).len(), 2);
    assert_eq!(said(place, &["sweep", "--dry-run"]), "nothing to do\n");
    let wrong = ask(place, &["sweep", "--failures", "0"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(err(&wrong), "error: Recovery::failures is 0: it must be 1 to 20\n");
}

async fn pauses_and_resumes(place: &Place) {
    assert_eq!(said(place, &["pause", "--type", "mail", "--for", "2h"]), "paused: type mail\n");
    assert_eq!(said(place, &["pause", "--provider", "hub"]), "paused: provider hub\n");
    let pauses = place.store.pauses().await.unwrap();
    assert_eq!(pauses.len(), 2);
    let until = pauses.iter().find(|pause| pause.scope == Scope::Type("mail".into())).unwrap().until.unwrap();
    let left = until.duration_since(std::time::SystemTime::now()).unwrap();
    assert!(left > Duration::from_secs(7100) && left < Duration::from_secs(7300), "{left:?}");
    let stats = said(place, &["stats"]);
    assert!(
        stats.contains("paused: type mail until 20") && stats.contains("provider hub until it is resumed"),
        "{stats}"
    );
    assert_eq!(said(place, &["resume", "--type", "mail"]), "resumed: type mail\n");
    assert_eq!(said(place, &["resume", "--type", "mail"]), "was not paused: type mail\n");

    let nothing = ask(place, &["pause", "--type", ""]);
    assert_eq!((nothing.status.code(), err(&nothing).as_str()), (Some(2), "error: a job's type is empty\n"));
    let unknown = ask(place, &["pause", "--type", "mial"]);
    assert_eq!(err(&unknown), "note: the table holds no job of the type mial\n");
    let line = |arguments: &[&str]| lines(place, arguments)[0].clone();
    let paused = serde_json::json!({ "scope": { "provider": "hub" }, "paused": true });
    assert_eq!(line(&["pause", "--provider", "hub"]), paused);
    let resumed = serde_json::json!({ "scope": { "provider": "hub" }, "resumed": true });
    assert_eq!(line(&["resume", "--provider", "hub"]), resumed);
}

async fn brings_in_old_failures(place: &Place) {
    place.enqueue("known").await;
    let file = std::env::temp_dir().join(format!("{}-old.jsonl", place.name));
    let old = |target: &str, day: u32, more: &str| {
        format!(
            r#"{{"type":"mail","target":"{target}","payload":{{"to":1}},"failed_at":"2026-11-{day:02}T10:00:00Z"{more}}}"#
        )
    };
    let lines = [
        old("known", 20, ""),
        old("a", 1, ""),
        String::new(),
        old("b", 20, r#","provider":"hub","reason":"503 from https://hub.example/?t=s3cret""#),
        old("c", 21, r#","class":"business""#),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let since = ["--since", "2026-11-10T00:00:00Z"];
    assert_eq!(
        said(place, &[&["import", path, "--dry-run"], &since[..]].concat()),
        "2 would be imported, 1 of them DEAD, which nothing repairs: list --state dead\n"
    );
    assert_eq!(lines_of(place), 1);
    assert_eq!(
        said(place, &[&["import", path], &since[..]].concat()),
        "2 are imported, 1 of them DEAD, which nothing repairs: list --state dead\n"
    );
    assert_eq!(said(place, &[&["import", path], &since[..]].concat()), "0 are imported\n", "twice is once");
    let rows = crate::lines(place, &["list", "--payload"]);
    let of = |target: &str| rows.iter().find(|row| row["target"] == target).unwrap();
    assert_eq!(
        (&of("b")["state"], &of("b")["origin"], &of("b")["payload"]["to"]),
        (&"FAILED".into(), &"IMPORTED".into(), &1.into())
    );
    assert_eq!(of("b")["error"], "503 from https://hub.example/?…");
    assert_eq!(of("c")["state"], "DEAD");

    std::fs::write(&file, r#"{"type":"mail"}"#).unwrap();
    let wrong = ask(place, &["import", path]);
    assert_eq!(
        (wrong.status.code(), err(&wrong).as_str()),
        (Some(2), "error: line 1: missing field `target` at line 1 column 15\n")
    );
    std::fs::remove_file(file).unwrap();
}

fn lines_of(place: &Place) -> usize {
    lines(place, &["list"]).len()
}

async fn colours_are_for_terminals(place: &Place) {
    a_day(place).await;
    assert!(said(place, &["list", "--color", "always"]).contains("\u{1b}[31mDEAD\u{1b}[0m"));
    assert!(!said(place, &["list"]).contains('\u{1b}'));
    let _ = place
        .store
        .claim(&redial_jobs::Claim { kinds: &[redial_jobs::Kind::named("mail")], worker: "w", lease: LEASE, max: 1 })
        .await
        .unwrap();
    assert!(said(place, &["list"]).contains("held by w"));
}

macro_rules! on_each_store {
    ($($test:ident),+) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let place = Place::sqlite().await;
                super::$test(&place).await;
                place.end().await;
            })+
        }
        mod postgres {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let Some(place) = Place::postgres().await else { return };
                super::$test(&place).await;
                place.end().await;
            })+
        }
    };
}

on_each_store!(
    lists_and_shows,
    speaks_to_programs,
    revives_once,
    sweeps_where_told,
    pauses_and_resumes,
    brings_in_old_failures,
    colours_are_for_terminals
);

fn alone(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial-jobs"));
    command.args(arguments).env_remove("REDIAL_JOBS_URL").output().unwrap()
}

#[test]
fn what_cannot_be_opened_is_said_and_not_made() {
    let file = std::env::temp_dir().join(format!("redial-jobs-none-{}.db", std::process::id()));
    let url = format!("sqlite:{}", file.display());
    let refused = [
        (
            vec!["list"],
            "error: --url or REDIAL_JOBS_URL is missing: it must be sqlite:FILE or postgres://USER@HOST/NAME\n"
                .to_owned(),
        ),
        (
            vec!["--url", "mysql://ada:s3cret@db/app", "list"],
            "error: the URL's scheme is `mysql`: it must be sqlite:FILE or postgres://USER@HOST/NAME\n".to_owned(),
        ),
        (vec!["--url", &url, "list"], format!("error: there is no file {}\n", file.display())),
    ];
    for (arguments, why) in refused {
        let output = alone(&arguments);
        assert_eq!((output.status.code(), err(&output)), (Some(2), why));
    }
    assert!(!file.exists());
    // A password is not shown where the server does not answer either.
    let output = alone(&["--url", "postgres://ada:s3cret@127.0.0.1:1/app", "list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("refused") && !err(&output).contains("s3cret"), "{}", err(&output));
}

/// Whether the server has it or not: the command has.
#[test]
fn the_command_speaks_tls() {
    let Some(url) = place::server::url() else { return };
    let output = alone(&["--url", &format!("{url}?sslmode=require"), "stats"]);
    assert!(!err(&output).contains("without TLS"), "{}", err(&output));
}

#[test]
fn help_has_examples() {
    let output = alone(&["--help"]);
    assert!(output.status.success());
    for word in ["list", "show", "revive", "sweep", "stats", "pause", "resume", "Examples:", "Exit codes:"] {
        assert!(out(&output).contains(word), "{word}");
    }
}
