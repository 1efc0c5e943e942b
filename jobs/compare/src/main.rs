//! How many jobs a second pass through apalis' own storages: 10 000 jobs that do nothing, 8 at a time, batches of 1 (of which
//! 2 000), 10 and 100, on an empty table and on one with 200 000 finished jobs.
//!
//! `cargo run --release` in this folder prints rows for the table of `benches/throughput`; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a server whose schema
//! `apalis` may be dropped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use apalis::{layers::WorkerBuilderExt, prelude::*};
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

const JOBS: usize = 10_000;
const FINISHED: usize = 200_000;
const ROUNDS: usize = 3;
const BATCHES: [usize; 3] = [1, 10, 100];
/// Given up after so long: what was done by then counts.
const PATIENCE: Duration = Duration::from_secs(30);

type Done = Arc<AtomicUsize>;

/// The last acknowledgements are not waited for.
async fn nothing(_: u32, done: Data<Done>) -> Result<(), BoxDynError> {
    done.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn jobs(batch: usize) -> usize {
    if batch == 1 { JOBS / 5 } else { JOBS }
}

fn tasks(jobs: usize) -> impl futures::Stream<Item = Task<u32>> + Unpin + Send {
    futures::stream::iter((0..jobs as u32).map(|job| TaskBuilder::new(job).build()))
}

/// A second: until the jobs are done, or patience ends.
async fn rate(jobs: usize, done: &Done, worker: impl Future<Output = ()>) -> f64 {
    let start = Instant::now();
    let watch = async {
        while done.load(Ordering::Relaxed) < jobs && start.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = watch => {}
        () = worker => {}
    }
    done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

fn median(mut each: Vec<f64>) -> f64 {
    each.sort_by(f64::total_cmp);
    each[each.len() / 2]
}

/// Jobs a second that came in, and that were done.
struct Rates {
    enqueued: f64,
    done: f64,
}

async fn sqlite(batch: usize, finished: usize) -> Rates {
    let path = std::env::temp_dir().join(format!("apalis-{}.db", std::process::id()));
    let remove = || {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = path.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    };
    remove();
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(30));
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    SqliteStorage::setup(&pool).await.unwrap();
    let (jobs, mut enqueued, mut rates) = (jobs(batch), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let config =
            apalis_sqlite::Config::default().queue(format!("bench{round}")).batch_size(batch).lock_tasks(false);
        let mut storage = SqliteStorage::new(&pool).with_config(config);
        let start = Instant::now();
        storage.push_all(&mut tasks(jobs)).await.unwrap();
        enqueued.push(jobs as f64 / start.elapsed().as_secs_f64());
        if round == 0 && finished > 0 {
            let columns = "job, job_type, status, attempts, max_attempts, run_at, done_at, priority";
            let sql = format!(
                "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {finished}) \
                 INSERT INTO Jobs (id, {columns}) SELECT 'old' || n, j.job, j.job_type, 'Done', 1, 5, j.run_at, 1000, 0 \
                 FROM s, (SELECT * FROM Jobs LIMIT 1) AS j"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        }
        let done = Done::default();
        let worker = WorkerBuilder::new(format!("worker {round}"))
            .backend(storage)
            .concurrency(8)
            .data(done.clone())
            .build(nothing);
        let run = async {
            if let Err(error) = worker.run().await {
                println!("the worker ended: {error}");
            }
        };
        rates.push(rate(jobs, &done, run).await);
    }
    pool.close().await;
    remove();
    Rates { enqueued: median(enqueued), done: median(rates) }
}

async fn postgres(url: &str, batch: usize, finished: usize) -> Rates {
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(10).connect(url).await.unwrap();
    sqlx::raw_sql("DROP SCHEMA IF EXISTS apalis CASCADE; DROP TABLE IF EXISTS _sqlx_migrations")
        .execute(&pool)
        .await
        .unwrap();
    PostgresStorage::setup(&pool).await.unwrap();
    let (jobs, mut enqueued, mut rates) = (jobs(batch), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let config =
            apalis_postgres::Config::default().queue(format!("bench{round}")).batch_size(batch).lock_tasks(false);
        let mut storage = PostgresStorage::new(&pool).with_config(config);
        let start = Instant::now();
        storage.push_all(&mut tasks(jobs)).await.unwrap();
        enqueued.push(jobs as f64 / start.elapsed().as_secs_f64());
        if round == 0 && finished > 0 {
            let columns = "job, job_type, status, attempts, max_attempts, run_at, done_at, priority";
            let sql = format!(
                "INSERT INTO apalis.jobs (id, {columns}) SELECT 'old' || n, j.job, j.job_type, 'Done', 1, 5, j.run_at, \
                 now(), 0 FROM generate_series(1, {finished}) AS s(n), (SELECT * FROM apalis.jobs LIMIT 1) AS j; \
                 ANALYZE apalis.jobs"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        }
        let done = Done::default();
        let worker = WorkerBuilder::new(format!("worker {round}"))
            .backend(storage)
            .concurrency(8)
            .data(done.clone())
            .build(nothing);
        let run = async {
            if let Err(error) = worker.run().await {
                println!("the worker ended: {error}");
            }
        };
        rates.push(rate(jobs, &done, run).await);
    }
    sqlx::raw_sql("DROP SCHEMA IF EXISTS apalis CASCADE; DROP TABLE IF EXISTS _sqlx_migrations")
        .execute(&pool)
        .await
        .unwrap();
    Rates { enqueued: median(enqueued), done: median(rates) }
}

fn thousands(rate: f64) -> String {
    let whole = rate.round() as u64;
    match whole / 1000 {
        0 => whole.to_string(),
        thousands => format!("{thousands} {:03}", whole % 1000),
    }
}

/// As in `benches/throughput/figures.rs`, without marks: nothing must be reached here.
fn line(name: &str, before: &str, rates: [Rates; 3]) {
    let enqueued = thousands(median(rates.iter().map(|rates| rates.enqueued).collect()));
    let [one, ten, hundred] = rates.map(|rates| thousands(rates.done));
    println!("| {name:<21} | {before:<18} | {enqueued:>8} | {one:>7} | {ten:>9} | {hundred:>9} |");
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("| jobs a second         | before             | enqueued | batch 1 |  batch 10 | batch 100 |");
    println!("| ---                   | ---                |     ---: |    ---: |      ---: |      ---: |");
    for (before, finished) in [("empty table", 0), ("200 000 finished", FINISHED)] {
        let [one, ten, hundred] = BATCHES;
        let rates = [sqlite(one, finished).await, sqlite(ten, finished).await, sqlite(hundred, finished).await];
        line("apalis-sqlite", before, rates);
    }
    let Ok(url) = std::env::var("REDIAL_TEST_POSTGRES") else {
        println!("\nPostgreSQL is left out: REDIAL_TEST_POSTGRES names no server");
        return;
    };
    for (before, finished) in [("empty table", 0), ("200 000 finished", FINISHED)] {
        let [one, ten, hundred] = BATCHES;
        let rates = [
            postgres(&url, one, finished).await,
            postgres(&url, ten, finished).await,
            postgres(&url, hundred, finished).await,
        ];
        line("apalis-postgres", before, rates);
    }
}
