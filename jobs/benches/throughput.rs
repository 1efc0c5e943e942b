//! How many jobs a second pass through a store, with all its semantics on: claimed, leased, fenced, completed.
//!
//! 10 000 jobs that do nothing, 8 workers, batches of 10 and of 100; on an empty table, on one with 200 000 finished jobs,
//! and with a backlog of 100 000. SQLite always; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a server.
//!
//! `cargo bench -p redial-jobs --all-features --bench throughput`; each figure is the median of five rounds. An argument, such
//! as `-- sqlite`, asks for one store. What apalis' own storages do with the same work: `compare/`, beside this folder.

use std::{
    path::PathBuf,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use redial_jobs::{Claim, JobStore, Kind, NewJob, SqlOptions, SqlStore};
use sqlx::AssertSqlSafe;

const JOBS: usize = 10_000;
const WORKERS: usize = 8;
const ROUNDS: usize = 5;
const LEASE: Duration = Duration::from_secs(60);
const TYPE: &str = "bench";

/// What is in the table before.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Finished(usize),
    Backlog(usize),
}

impl Before {
    const ALL: [(&'static str, Before); 3] = [
        ("empty table", Before::Nothing),
        ("200 000 finished", Before::Finished(200_000)),
        ("backlog of 100 000", Before::Backlog(100_000)),
    ];
}

enum Place {
    Sqlite(PathBuf),
    Postgres(sqlx::PgPool, String),
}

impl Place {
    async fn sqlite() -> (Self, SqlStore) {
        let path = std::env::temp_dir().join(format!("redial-jobs-bench-{}.db", std::process::id()));
        let place = Place::Sqlite(path.clone());
        place.remove().await;
        (place, SqlStore::sqlite(&path, SqlOptions::new()).await.unwrap())
    }

    async fn postgres(url: &str) -> (Self, SqlStore) {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(10).connect(url).await.unwrap();
        let schema = format!("bench{}", std::process::id());
        let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        let store = SqlStore::from_pool(pool.clone(), SqlOptions::new().schema(&schema)).unwrap();
        store.migrate().await.unwrap();
        (Place::Postgres(pool, schema), store)
    }

    /// Finished jobs of as many targets, written past the store.
    async fn finish(&self, count: usize) {
        const COLUMNS: &str = "job_type, target, payload, state, origin, run_at, token, chain, chain_at, created_at, \
            started_at, finished_at";
        let row = "'bench', 'old ' || n, '{}', 'COMPLETED', 'ENQUEUED', 1000, 1, \
            '018f0000-0000-7000-8000-000000000000', 1000, 1000, 1000, 1000 + n";
        match self {
            Place::Sqlite(path) => {
                let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
                let sql = format!(
                    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) \
                     INSERT INTO redial_jobs ({COLUMNS}) SELECT {row} FROM s"
                );
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
                pool.close().await;
            }
            Place::Postgres(pool, schema) => {
                let sql = format!(
                    "INSERT INTO {schema}.redial_jobs ({COLUMNS}) SELECT {row} FROM generate_series(1, {count}) AS s(n); \
                     ANALYZE {schema}.redial_jobs"
                );
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
        }
    }

    async fn remove(&self) {
        match self {
            Place::Sqlite(path) => {
                for suffix in ["", "-wal", "-shm"] {
                    let mut path = path.clone().into_os_string();
                    path.push(suffix);
                    let _ = std::fs::remove_file(path);
                }
            }
            Place::Postgres(pool, schema) => {
                let sql = format!("DROP SCHEMA {schema} CASCADE");
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
        }
    }
}

async fn enqueue(store: &SqlStore, from: usize, count: usize) -> Duration {
    let jobs: Vec<_> =
        (from..from + count).map(|target| NewJob::raw(TYPE, target.to_string(), "{}").unwrap()).collect();
    let start = Instant::now();
    for batch in jobs.chunks(1000) {
        store.enqueue(batch).await.unwrap();
    }
    start.elapsed()
}

/// Eight workers take and complete this many.
async fn drain(store: &SqlStore, batch: u32, count: usize) -> Duration {
    let left = Arc::new(AtomicUsize::new(count));
    let mut workers = tokio::task::JoinSet::new();
    let start = Instant::now();
    for worker in 0..WORKERS {
        let (store, left) = (store.clone(), left.clone());
        workers.spawn(async move {
            let (kinds, worker) = ([Kind::named(TYPE)], format!("worker {worker}"));
            while left.load(Ordering::Relaxed) > 0 {
                let wanted = Claim { kinds: &kinds, worker: &worker, lease: LEASE, max: batch };
                let leases: Vec<_> = store.claim(&wanted).await.unwrap().iter().map(|job| job.lease).collect();
                let done = store.complete(&leases).await.unwrap();
                assert_eq!(done.len(), leases.len());
                let _ = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(done.len())));
            }
        });
    }
    workers.join_all().await;
    start.elapsed()
}

fn median(mut each: Vec<f64>) -> f64 {
    each.sort_by(f64::total_cmp);
    each[each.len() / 2]
}

async fn measure(name: &str, what: &str, before: Before, place: Place, store: SqlStore) {
    let mut next = 0;
    match before {
        Before::Nothing => {}
        Before::Finished(count) => place.finish(count).await,
        Before::Backlog(count) => {
            enqueue(&store, 0, count).await;
            next = count;
        }
    }
    let mut in_by = Vec::new();
    let mut figures = Vec::new();
    for batch in [1, 10, 100] {
        let mut out_by = Vec::new();
        for _ in 0..ROUNDS {
            let jobs = if batch == 1 { JOBS / 5 } else { JOBS };
            in_by.push(jobs as f64 / enqueue(&store, next, jobs).await.as_secs_f64());
            next += jobs;
            out_by.push(jobs as f64 / drain(&store, batch, jobs).await.as_secs_f64());
        }
        figures.push(format!("{:>8.0}", median(out_by)));
    }
    println!("| {name:<10} | {what:<18} | {:>8.0} | {} |", median(in_by), figures.join(" | "));
    drop(store);
    place.remove().await;
}

/// How long an idle worker takes to pick a job up, in the same process.
async fn pick_up(name: &str, place: Place, store: SqlStore) {
    let mut wakes = store.wakes();
    tokio::time::timeout(Duration::from_secs(2), wakes.woken()).await.ok();
    let mut each = Vec::new();
    for target in 0..100 {
        let (enqueuer, start) = (store.clone(), Instant::now());
        let job = tokio::spawn(async move { enqueue(&enqueuer, target, 1).await });
        let kinds = [Kind::named(TYPE)];
        loop {
            wakes.woken().await;
            let wanted = Claim { kinds: &kinds, worker: "idle", lease: LEASE, max: 1 };
            if !store.claim(&wanted).await.unwrap().is_empty() {
                break;
            }
        }
        each.push(start.elapsed().as_secs_f64() * 1000.0);
        job.await.unwrap();
    }
    let longest = each.iter().copied().fold(0.0, f64::max);
    println!(
        "{name}: an idle worker has an enqueued job after {:.2} ms (median), {longest:.2} ms at most",
        median(each)
    );
    drop(store);
    place.remove().await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        let wanted = |store: &str| only.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(store));
        let server = std::env::var("REDIAL_TEST_POSTGRES").ok().filter(|_| wanted("PostgreSQL"));
        println!("jobs a second, {JOBS} at a time, {WORKERS} workers (batch 1: {} at a time)", JOBS / 5);
        println!("| store      | before             | enqueued |  batch 1 | batch 10 | batch 100 |");
        println!("| ---        | ---                |     ---: |     ---: |     ---: |      ---: |");
        for (what, before) in Before::ALL.into_iter().filter(|_| wanted("SQLite")) {
            let (place, store) = Place::sqlite().await;
            measure("SQLite", what, before, place, store).await;
        }
        for (what, before) in Before::ALL {
            if let Some(url) = &server {
                let (place, store) = Place::postgres(url).await;
                measure("PostgreSQL", what, before, place, store).await;
            }
        }
        if wanted("SQLite") {
            let (place, store) = Place::sqlite().await;
            pick_up("SQLite", place, store).await;
        }
        if let Some(url) = &server {
            let (place, store) = Place::postgres(url).await;
            pick_up("PostgreSQL", place, store).await;
        }
    });
}
