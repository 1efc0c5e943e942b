//! The command.

use std::{
    process::{Command, Output, Stdio},
    time::Duration,
};

use redial_jobs::{JobContext, JobError, JobStore, Recovery, State, Sweeper};
use tokio::time::sleep;

use crate::{
    place::{Database, HOUR, Place, claim_one, exhausted},
    sql,
    team::{Plain, Team, add, all, plain, runner},
};

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial-jobs"));
    match &place.database {
        Database::Sqlite(pool) => {
            let file = pool.connect_options().get_filename().display().to_string();
            command.args(["--url", &format!("sqlite:{file}")]);
        }
        Database::Postgres(_) => {
            command.env("REDIAL_JOBS_URL", std::env::var("REDIAL_TEST_POSTGRES").unwrap());
            command.args(["--schema", &place.name]);
        }
    }
    command.args(arguments);
    command
}

pub fn ask(place: &Place, arguments: &[&str]) -> Output {
    command(place, arguments).output().unwrap()
}

/// The application allows ten failures; an operator sweeps by hand, as the page of help says.
pub async fn a_sweep_by_hand_kills_nothing_the_application_would_repair(place: &Place) {
    let mine = Recovery::default().failures(10).every(Duration::from_millis(1)).jitter(Duration::ZERO);
    let sweeper = Sweeper::new(place.store.clone(), mine.clone()).unwrap();
    place.enqueue("a").await;
    let mut clock = Duration::ZERO;
    for turn in 0..4 {
        if turn > 0 {
            sleep(Duration::from_millis(20)).await;
            sweeper.run_once().await.unwrap();
            clock += HOUR;
        }
        let claimed = claim_one(&place.later(clock)).await;
        let _ = place.store.fail(claimed.lease, &exhausted(), &mine).await.unwrap();
    }
    sleep(Duration::from_millis(20)).await;
    let output = ask(place, &["sweep"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = all(&place.store).await;
    assert!(rows.iter().all(|row| row.state != State::Dead), "exit {:?}: {said}", output.status.code());
}

pub async fn a_full_disk_is_told(place: &Place) {
    place.enqueue("a").await;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = command(place, &["list", "--format", "json"]).stdout(Stdio::from(full)).status().unwrap();
    assert_ne!(status.code(), Some(0), "nothing was written, and it says that all went well");
}

/// A rolling deploy: the newer release writes a class that this command does not know.
pub async fn a_row_of_a_later_release_is_listed_beside_others(place: &Place) {
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let _ = place.store.fail(claimed.lease, &exhausted(), &Recovery::default()).await.unwrap();
    sql(place, "UPDATE {jobs} SET failure_class = 'quota'").await;
    place.enqueue("b").await;
    let output = ask(place, &["list"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(" b "), "{:?} {said}{}", output.status.code(), String::from_utf8_lossy(&output.stderr));
}

/// U+202E turns the rest of a line around; U+009B begins a sequence as ESC [ does.
pub async fn nothing_steers_the_terminal(place: &Place) {
    sql(
        place,
        "INSERT INTO {jobs} (job_type, target, payload, state, origin, run_at, chain, chain_at, created_at, trace, worker) \
         VALUES ('plain', 'a\u{202e}b\u{1b}[31m\u{9b}31m', '{\"a\":\"\u{9b}31m\"}', 'PENDING', 'ENQUEUED', 1, \
         '018f0000-0000-7000-8000-000000000000', 1, 1, '\u{1b}]0;x\u{7}', '\u{202e}')",
    )
    .await;
    let asks: [&[&str]; 6] = [
        &["list"],
        &["show", "1", "--payload"],
        &["list", "--format", "json", "--payload"],
        &["stats"],
        &["sweep", "--dry-run"],
        &["show", "1", "--payload", "--format", "json"],
    ];
    let mut wrong = Vec::new();
    for arguments in asks {
        let said = String::from_utf8(ask(place, arguments).stdout).unwrap();
        for bad in ['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}'] {
            if said.contains(bad) {
                wrong.push(format!("{arguments:?} prints {bad:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

pub async fn connections_are_killed_all_the_time(place: &Place) {
    let Database::Postgres(_) = &place.database else { return };
    for n in 0..200 {
        add(&place.store, &plain(&format!("t{n}"))).await;
    }
    let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
    // A pool of its own, told apart by its name.
    let name = format!("hostile_{}", place.name);
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(4)
        .connect_with(options.application_name(&name))
        .await
        .unwrap();
    let store = redial_jobs::SqlStore::from_pool(pool, redial_jobs::SqlOptions::new().schema(&place.name)).unwrap();
    let team = Team::start(runner(&store).lease(Duration::from_secs(1)).on(|_: Plain, _: JobContext| async {
        sleep(Duration::from_millis(10)).await;
        Ok::<_, JobError>(())
    }));
    let Database::Postgres(killer) = &place.database else { return };
    for _ in 0..25 {
        sleep(Duration::from_millis(60)).await;
        let sql = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(killer).await.unwrap();
    }
    let mut left = 200;
    for _ in 0..1000 {
        sleep(Duration::from_millis(30)).await;
        let rows = all(&place.store).await;
        let done: std::collections::HashSet<_> =
            rows.iter().filter(|row| row.state == State::Completed).map(|row| row.target.clone()).collect();
        let completed = rows.iter().filter(|row| row.state == State::Completed).count();
        assert_eq!(done.len(), completed, "a completion written twice");
        left = 200 - done.len();
        if left == 0 {
            break;
        }
    }
    team.end().await;
    assert_eq!(left, 0, "lost: {:?}", place.store.stats().await.unwrap());
}
