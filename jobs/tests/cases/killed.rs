//! Workers in processes of their own, which die.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use redial_jobs::{BoxError, FailureClass, JobContext, JobStore, Jobs, Runner, SqlOptions, SqlStore, State};

use crate::{
    place::{Database, Place},
    team::{Plain, Team, add, all, plain, quick, runner, states, until, until_state},
};

const LEASE: Duration = Duration::from_secs(1);
/// What the process does with its job: `sleep` or `abort`.
const ROLE: &str = "REDIAL_JOBS_TEST_ROLE";
const FILE: &str = "REDIAL_JOBS_TEST_FILE";
const SCHEMA: &str = "REDIAL_JOBS_TEST_SCHEMA";

/// Not a test: the worker that the cases below start, and kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn worker() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let store = match (std::env::var(FILE), std::env::var(SCHEMA)) {
        (Ok(file), _) => SqlStore::sqlite(file, SqlOptions::new()).await.unwrap(),
        (_, Ok(schema)) => {
            let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
            SqlStore::postgres(&url, SqlOptions::new().schema(schema)).await.unwrap()
        }
        _ => panic!("neither a file nor a schema was named"),
    };
    let watched = store.clone();
    let runner = Runner::new(Jobs::new(store)).recovery(quick()).lease(LEASE).poll_every(Duration::from_millis(20));
    let runner = runner.on(move |_: Plain, _: JobContext| {
        let role = role.clone();
        async move {
            if role == "abort" {
                std::process::abort();
            }
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok::<_, BoxError>(())
        }
    });
    let dead = async move {
        while watched.stats().await.unwrap().count(State::Dead) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    runner.run_until(dead).await.unwrap();
}

fn start(place: &Place, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::worker", "--ignored", "--nocapture"]).env(ROLE, role);
    match &place.database {
        Database::Sqlite(pool) => command.env(FILE, pool.connect_options().get_filename()),
        Database::Postgres(_) => command.env(SCHEMA, &place.name),
    };
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub async fn c154_a_killed_workers_job_is_claimable_again(place: &Place) {
    add(&place.store, &plain("a")).await;
    let mut worker = start(place, "sleep");
    until_state(&place.store, State::Processing, 1).await;
    // SIGKILL: it can clear nothing up.
    worker.kill().unwrap();
    worker.wait().unwrap();
    let killed = Instant::now();
    let team = Team::start(runner(&place.store).on(|_: Plain, cx: JobContext| async move {
        assert!(cx.unknown_before(), "it may have done its work before it was killed");
        Ok::<_, BoxError>(())
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    // The lease, a sweep and a poll; and what a busy machine adds.
    assert!(killed.elapsed() < LEASE + Duration::from_secs(4), "{:?}", killed.elapsed());
    assert_eq!(states(&rows), [State::Failed, State::Completed]);
    assert_eq!((rows[0].failure, rows[1].attempt), (Some(FailureClass::Ghost), 2));
    team.end().await;
}

pub async fn c156_a_job_that_aborts_its_process_is_dead_after_its_limit(place: &Place) {
    add(&place.store, &plain("a")).await;
    let mut aborted = 0;
    // Whoever starts it again and again, such as systemd.
    for _ in 0..10 {
        let mut worker = start(place, "abort");
        let ended = worker.wait().unwrap();
        if ended.success() {
            break;
        }
        aborted += 1;
    }
    assert_eq!(aborted, 3, "the fourth start does not run it");
    let rows = all(&place.store).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Dead]);
    until("no more of it", || async { place.store.stats().await.unwrap().ghosts == 0 }).await;
}
