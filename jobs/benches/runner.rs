//! How many jobs a second a runner does, with all that it does for each: a task of its own, a lease that is renewed, a span,
//! a deadline, a fenced write.
//!
//! 10 000 jobs that do nothing, one runner, 8 at once, batches of 10 and of 100. And how long an idle runner takes to begin
//! a job that is enqueued in its process. SQLite always; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a server.
//!
//! `cargo bench -p redial-jobs --all-features --bench runner`; each figure is the median of five rounds.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use redial_jobs::{BoxError, Job, JobContext, JobStore, Jobs, NewJob, Runner, SqlOptions, SqlStore, State};
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;
use tokio::sync::{Notify, oneshot};

const JOBS: usize = 10_000;
const ROUNDS: usize = 5;

#[derive(Serialize, Deserialize)]
struct Nothing {
    number: usize,
}

impl Job for Nothing {
    const TYPE: &'static str = "nothing";
    const MAX_RUNTIME: Duration = Duration::from_secs(60);

    fn target(&self) -> String {
        self.number.to_string()
    }
}

async fn fill(store: &SqlStore, round: usize) {
    let jobs: Vec<_> =
        (0..JOBS).map(|job| NewJob::of(&Nothing { number: round * JOBS + job }).expect("a job")).collect();
    for chunk in jobs.chunks(1000) {
        store.enqueue(chunk).await.expect("enqueued");
    }
}

/// From the runner's start until the last row says COMPLETED.
async fn drain(store: &SqlStore, batch: u32) -> Duration {
    let (left, all) = (Arc::new(AtomicUsize::new(JOBS)), Arc::new(Notify::new()));
    let told = all.clone();
    let runner = Runner::new(Jobs::new(store.clone())).concurrency(8).batch(batch);
    let runner = runner.on(move |_: Nothing, _: JobContext| {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            told.notify_one();
        }
        async { Ok::<_, BoxError>(()) }
    });
    let start = Instant::now();
    // It ends when what is done is written.
    runner.run_until(all.notified()).await.expect("a runner");
    start.elapsed()
}

fn median(mut each: Vec<f64>) -> f64 {
    each.sort_by(f64::total_cmp);
    each[each.len() / 2]
}

async fn measure(name: &str, store: &SqlStore) {
    let mut round = 0;
    for batch in [10, 100] {
        let mut each = Vec::new();
        for _ in 0..ROUNDS {
            fill(store, round).await;
            round += 1;
            each.push(JOBS as f64 / drain(store, batch).await.as_secs_f64());
            let done = store.stats().await.expect("counts").count(State::Completed);
            assert_eq!(done, (round * JOBS) as u64, "all of them are written");
        }
        println!("| {name:<10} | {batch:>5} | {:>11.0} |", median(each));
    }
}

/// How long an idle runner takes.
async fn pick_up(name: &str, store: &SqlStore) {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let runner = Runner::new(Jobs::new(store.clone())).on(move |_: Nothing, _: JobContext| {
        let _ = begun.send(Instant::now());
        async { Ok::<_, BoxError>(()) }
    });
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(runner.run_until(async { stopped.await.unwrap_or_default() }));
    let mut each = Vec::new();
    for number in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let job = NewJob::of(&Nothing { number: usize::MAX - number }).expect("a job");
        store.enqueue(&[job]).await.expect("enqueued");
        let enqueued = Instant::now();
        let begins = begins.recv().await.expect("it begins");
        each.push(begins.saturating_duration_since(enqueued).as_secs_f64() * 1000.0);
    }
    let _ = stop.send(());
    running.await.expect("no panic").expect("a runner");
    let longest = each.iter().copied().fold(0.0, f64::max);
    println!("{name}: begun {:.2} ms after it was enqueued (median), {longest:.2} ms at most", median(each));
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        println!("jobs a second through one runner, {JOBS} at a time, 8 at once");
        println!("| store      | batch | jobs/second |\n| ---        |  ---: |        ---: |");
        let file: PathBuf = std::env::temp_dir().join(format!("redial-jobs-runner-{}.db", std::process::id()));
        let store = SqlStore::sqlite(&file, SqlOptions::new()).await.expect("a file");
        measure("SQLite", &store).await;
        pick_up("SQLite", &store).await;
        drop(store);
        for suffix in ["", "-wal", "-shm"] {
            let mut file = file.clone().into_os_string();
            file.push(suffix);
            let _ = std::fs::remove_file(file);
        }
        if let Ok(url) = std::env::var("REDIAL_TEST_POSTGRES") {
            let pool = sqlx::postgres::PgPoolOptions::new().max_connections(10).connect(&url).await.expect("a server");
            let schema = format!("runner{}", std::process::id());
            let run = |sql: String| sqlx::raw_sql(AssertSqlSafe(sql));
            run(format!("CREATE SCHEMA {schema}")).execute(&pool).await.expect("a schema");
            let store = SqlStore::from_pool(pool.clone(), SqlOptions::new().schema(&schema)).expect("a store");
            store.migrate().await.expect("tables");
            measure("PostgreSQL", &store).await;
            pick_up("PostgreSQL", &store).await;
            run(format!("DROP SCHEMA {schema} CASCADE")).execute(&pool).await.expect("dropped");
        }
    });
}
