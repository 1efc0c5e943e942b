//! Workers are killed, and come back from the dead, while several sweepers are at work: afterwards nothing is lost and
//! nothing was done twice.
//!
//! The short form runs by itself; the long one (300 targets, 20 kills) with `--ignored`. `--nocapture` shows the counts.
#![cfg(unix)]

mod database;
mod verdict;
mod worker;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use redial_jobs::{JobStore, NewJob, Recovery, SqlStore, Sweeper};

use database::Database;
use verdict::Verdict;

const WORKERS: usize = 4;
const SWEEPERS: usize = 3;
const PRODUCERS: usize = 4;

#[derive(Clone, Copy)]
struct Size {
    targets: u32,
    kills: usize,
}

const SHORT: Size = Size { targets: 80, kills: 6 };
const LONG: Size = Size { targets: 300, kills: 20 };

/// Quick, so that a run takes seconds; the limit of failures is the usual one.
fn recovery() -> Recovery {
    let ms = Duration::from_millis;
    Recovery::default()
        .failures(3)
        .ghosts(20)
        .every(ms(20))
        .jitter(ms(80))
        .ghost_wait(Duration::ZERO)
        .sweep_every(ms(20))
        .per_sweep(50)
}

/// Not a test: what the others start, and kill.
#[test]
fn a_worker_process() {
    if let Ok(place) = std::env::var(database::VARIABLE) {
        worker::run(&Database::parse(&place));
    }
}

#[test]
fn nothing_is_lost_or_doubled_on_sqlite() {
    run(Some(Database::sqlite(false)), SHORT, Verdict::must_hold);
}

#[test]
fn nothing_is_lost_or_doubled_on_postgres() {
    run(Database::postgres(false), SHORT, Verdict::must_hold);
}

/// So that the tests above can fail.
#[test]
fn without_fencing_doubles_are_found_on_sqlite() {
    run(Some(Database::sqlite(true)), SHORT, Verdict::must_find_doubles);
}

#[test]
fn without_fencing_doubles_are_found_on_postgres() {
    run(Database::postgres(true), SHORT, Verdict::must_find_doubles);
}

#[test]
#[ignore = "the long form"]
fn long_nothing_is_lost_or_doubled_on_sqlite() {
    run(Some(Database::sqlite(false)), LONG, Verdict::must_hold);
}

#[test]
#[ignore = "the long form"]
fn long_nothing_is_lost_or_doubled_on_postgres() {
    run(Database::postgres(false), LONG, Verdict::must_hold);
}

#[test]
#[ignore = "the long form"]
fn long_without_fencing_doubles_are_found_on_sqlite() {
    run(Some(Database::sqlite(true)), LONG, Verdict::must_find_doubles);
}

#[test]
#[ignore = "the long form"]
fn long_without_fencing_doubles_are_found_on_postgres() {
    run(Database::postgres(true), LONG, Verdict::must_find_doubles);
}

/// Without a database no server was named.
fn run(database: Option<Database>, size: Size, judge: fn(Verdict)) {
    let Some(database) = database else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    judge(runtime.block_on(stress(database, size)));
}

async fn stress(database: Database, size: Size) -> Verdict {
    let store = database.open(6).await;
    store.migrate().await.unwrap();
    let enqueued = produce(&store, size.targets).await;
    assert_eq!(enqueued, size.targets, "{PRODUCERS} producers race: each target has one job");

    let over = Arc::new(AtomicBool::new(false));
    let mut sweepers = tokio::task::JoinSet::new();
    for _ in 0..SWEEPERS {
        sweepers.spawn(sweep(store.clone(), over.clone()));
    }
    let watching = tokio::spawn(watch(database.clone(), over.clone()));
    let refused = Arc::new(AtomicU32::new(0));
    let mut workers: Vec<_> = (0..WORKERS).map(|_| start(&database, &refused)).collect();
    for kill in 0..size.kills {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let worker = &mut workers[kill % WORKERS];
        end(worker);
        *worker = start(&database, &refused);
    }
    let settled = settle(&store, size.targets).await;
    workers.iter_mut().for_each(end);
    over.store(true, Ordering::Relaxed);
    let sweeps = sweepers.join_all().await;
    let (looks, two_active) = watching.await.unwrap();
    assert!(looks > 10, "watched {looks} times only");

    let rows = verdict::all_rows(&store).await;
    drop(store);
    database.remove().await;
    let verdict = Verdict::of(&rows, &sweeps, refused.load(Ordering::Relaxed), two_active, settled);
    println!("{database}, {} targets, {} kills: {verdict}", size.targets, size.kills);
    verdict
}

async fn produce(store: &SqlStore, targets: u32) -> u32 {
    let mut producers = tokio::task::JoinSet::new();
    for _ in 0..PRODUCERS {
        let store = store.clone();
        producers.spawn(async move {
            let mut new = 0;
            for target in 0..targets {
                let job = NewJob::raw(worker::TYPE, target.to_string(), "{}").unwrap();
                new += u32::from(store.enqueue(&[job]).await.unwrap()[0].is_new());
            }
            new
        });
    }
    producers.join_all().await.into_iter().sum()
}

/// Without a pause in between: what two find at once, one of them does.
async fn sweep(store: SqlStore, over: Arc<AtomicBool>) -> [u32; 3] {
    let sweeper = Sweeper::new(store, recovery()).unwrap();
    let mut done = [0; 3];
    while !over.load(Ordering::Relaxed) {
        match sweeper.run_once().await {
            Ok(swept) => {
                done[0] += swept.recovered;
                done[1] += swept.ghosts;
                done[2] += swept.overtaken;
            }
            Err(error) => panic!("a sweep failed: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    done
}

/// Looks for two active jobs of a target while all are at work: afterwards none is active. Says how often it looked, and how
/// many it saw at most.
async fn watch(database: Database, over: Arc<AtomicBool>) -> (u32, i64) {
    let (mut looks, mut most) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        most = most.max(database.two_active().await);
        looks += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (looks, most)
}

fn start(database: &Database, refused: &Arc<AtomicU32>) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_worker_process", "--nocapture"])
        .env(database::VARIABLE, database.place())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, refused) = (child.stdout.take().unwrap(), refused.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            refused.fetch_add(u32::from(line == worker::REFUSED), Ordering::Relaxed);
        }
    });
    child
}

/// With SIGKILL: it has no time to tidy up.
fn end(worker: &mut Child) {
    worker.kill().unwrap();
    worker.wait().unwrap();
}

/// Waits until each target has ended for good, and says whether it came to that.
async fn settle(store: &SqlStore, targets: u32) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(90) {
        if verdict::settled(&verdict::all_rows(store).await, targets) {
            // The last ghosts return.
            tokio::time::sleep(worker::ABSENCE * 2).await;
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}
