//! What goes wrong around a store: the file is locked, the disk is full, the server drops its connections. A store says so,
//! and what was asked for can be asked again.

#[allow(dead_code)]
mod server;

use std::{
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use redial_jobs::{Claim, Claimed, Error, JobStore, Kind, NewJob, SqlOptions, SqlStore, State, Wakes};
use sqlx::{
    AssertSqlSafe,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

/// Tells the locking process which file.
const LOCK: &str = "REDIAL_TEST_LOCK";

fn job(target: u32) -> NewJob {
    NewJob::raw("mail", target.to_string(), format!("\"{}\"", "x".repeat(198))).unwrap()
}

async fn claim(store: &SqlStore, max: u32) -> Result<Vec<Claimed>, Error> {
    let kinds = [Kind::named("mail")];
    store.claim(&Claim { kinds: &kinds, worker: "w", lease: Duration::from_secs(60), max }).await
}

/// Asks until the store answers, as a worker does, and counts the failures on the way.
async fn insist<T>(failures: &mut u32, mut ask: impl AsyncFnMut() -> Result<T, Error>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_store(), "{error}");
                *failures += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Does all jobs, whatever the store says in between; returns how many completions it was told of.
async fn work(store: &SqlStore, failures: &mut u32) -> usize {
    let mut done = 0;
    loop {
        let claimed = insist(failures, async || claim(store, 5).await).await;
        if claimed.is_empty() {
            return done;
        }
        let leases: Vec<_> = claimed.iter().map(|job| job.lease).collect();
        done += insist(failures, async || store.complete(&leases).await).await.len();
    }
}

struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("redial-jobs-{name}-{}.db", std::process::id())))
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.0)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(5))
    }

    async fn pool(&self) -> sqlx::SqlitePool {
        SqlitePoolOptions::new().max_connections(1).connect_with(self.options()).await.unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Not a test: the process that locks a file, until it is told to end.
#[test]
fn a_locking_process() {
    let Ok(path) = std::env::var(LOCK) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = File(path.into());
        let pool = std::mem::ManuallyDrop::new(pool).pool().await;
        let _lock = pool.begin_with("BEGIN EXCLUSIVE").await.unwrap();
        println!("locked");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    });
}

fn lock(file: &File) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_locking_process", "--nocapture"])
        .env(LOCK, &file.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.ends_with("locked")), "it has the lock");
    child
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_locks_for_ten_seconds() {
    let file = File::new("locked");
    let store = SqlStore::sqlite(&file.0, SqlOptions::new()).await.unwrap();
    let jobs: Vec<_> = (0..20).map(job).collect();
    store.enqueue(&jobs).await.unwrap();

    let mut child = lock(&file);
    let release = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(child.stdin.take());
        child.wait().unwrap();
    });
    let (start, mut failures) = (Instant::now(), 0);
    assert_eq!(work(&store, &mut failures).await, 20);
    assert!(start.elapsed() >= Duration::from_secs(9), "it was locked: {:?}", start.elapsed());
    assert!((1..=3).contains(&failures), "each ask waits 5 s: {failures}");
    release.await.unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.count(State::Completed), stats.types["mail"].processing), (20, 0));
}

/// No lock that is held for a moment reaches a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_workers_and_a_busy_writer() {
    let file = File::new("busy");
    let store = SqlStore::sqlite(&file.0, SqlOptions::new()).await.unwrap();
    let jobs: Vec<_> = (0..200).map(job).collect();
    store.enqueue(&jobs).await.unwrap();
    let writer = file.pool().await;
    let writer = tokio::spawn(async move {
        loop {
            sqlx::raw_sql("CREATE TABLE IF NOT EXISTS other (n); INSERT INTO other VALUES (1)")
                .execute(&writer)
                .await
                .unwrap();
            tokio::task::yield_now().await;
        }
    });
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = SqlStore::from_pool(file.pool().await, SqlOptions::new()).unwrap();
        workers.spawn_blocking(move || {
            let mut failures = 0;
            (tokio::runtime::Handle::current().block_on(work(&store, &mut failures)), failures)
        });
    }
    let (done, failures): (Vec<_>, Vec<_>) = workers.join_all().await.into_iter().unzip();
    writer.abort();
    assert_eq!((done.iter().sum::<usize>(), failures.iter().sum::<u32>()), (200, 0));
}

#[tokio::test]
async fn a_full_disk() {
    let file = File::new("full");
    let pool = file.pool().await;
    let store = SqlStore::from_pool(pool.clone(), SqlOptions::new()).unwrap();
    store.migrate().await.unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&pool).await.unwrap();
    let limit = async |pages: i64| {
        sqlx::raw_sql(AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"))).execute(&pool).await.unwrap();
    };
    limit(pages + 20).await;
    let mut enqueued = 0;
    let error = loop {
        match store.enqueue(&[job(enqueued)]).await {
            Ok(_) => enqueued += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_store() && error.to_string().contains("full"), "{error}");
    assert!(enqueued > 0);
    // A batch is enqueued as a whole or not at all.
    let batch: Vec<_> = (1000..1200).map(job).collect();
    assert!(store.enqueue(&batch).await.unwrap_err().is_store());
    assert_eq!(store.stats().await.unwrap().count(State::Pending), u64::from(enqueued));

    // There is room again.
    limit(1_000_000).await;
    assert!(store.enqueue(&batch).await.unwrap().iter().all(|each| each.is_new()));
    let mut failures = 0;
    assert_eq!(work(&store, &mut failures).await, enqueued as usize + 200);
    assert_eq!(failures, 0);
}

/// As a restart of the server does: each connection breaks, with what it was doing. A completion whose answer was lost is
/// asked for again, and told of once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drops_its_connections() {
    let Some(url) = server::url() else { return };
    let name = format!("drop{}", std::process::id());
    let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(4)
        .connect_with(options.application_name(&name))
        .await
        .unwrap();
    let admin = sqlx::PgPool::connect(&url).await.unwrap();
    let run = async |sql: String| sqlx::raw_sql(AssertSqlSafe(sql)).execute(&admin).await.unwrap();
    run(format!("CREATE SCHEMA {name}")).await;
    let store = SqlStore::from_pool(pool, SqlOptions::new().schema(&name)).unwrap();
    store.migrate().await.unwrap();
    let jobs: Vec<_> = (0..3000).map(job).collect();
    store.enqueue(&jobs).await.unwrap();
    let mut wakes = store.wakes();
    woken(&mut wakes, "it listens").await;

    // At least so often, and until a statement was met: a pool hides what breaks while it is idle.
    let met = Arc::new(AtomicBool::new(false));
    let killer = {
        let (admin, name, met) = (admin.clone(), name.clone(), met.clone());
        tokio::spawn(async move {
            let mut dropped = 0;
            for round in 0..1000 {
                if round >= 15 && met.load(Ordering::Relaxed) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
                let count: i64 = sqlx::query_scalar(sql).bind(&name).fetch_one(&admin).await.unwrap();
                dropped += count;
            }
            dropped
        })
    };
    let (mut failures, mut done, mut enqueued) = (0, 0, 3000);
    while !killer.is_finished() {
        done += work(&store, &mut failures).await;
        met.store(failures > 0, Ordering::Relaxed);
        if failures == 0 {
            let jobs: Vec<_> = (enqueued..enqueued + 1000).map(job).collect();
            insist(&mut failures, async || store.enqueue(&jobs).await).await;
            enqueued += 1000;
        }
    }
    done += work(&store, &mut failures).await;
    let dropped = killer.await.unwrap();
    assert!(dropped > 0 && failures > 0, "{dropped} connections dropped, {failures} failures seen");

    // A claim whose answer was lost is a ghost: its lease holds, and nobody else has it.
    let stats = store.stats().await.unwrap();
    let lost = stats.types["mail"].processing;
    assert_eq!(stats.count(State::Completed), done as u64);
    assert_eq!(stats.count(State::Completed) + lost, u64::from(enqueued), "{stats:?}");
    assert!(lost < 200);

    // It listens again.
    while tokio::time::timeout(Duration::from_secs(2), wakes.woken()).await.is_ok() {}
    let mut failures = 0;
    insist(&mut failures, async || {
        let other = SqlStore::from_pool(admin.clone(), SqlOptions::new().schema(&name)).unwrap();
        other.enqueue(&[job(u32::MAX)]).await
    })
    .await;
    woken(&mut wakes, "a new connection listens").await;
    drop(store);
    run(format!("DROP SCHEMA {name} CASCADE")).await;
}

async fn woken(wakes: &mut Wakes, what: &str) {
    tokio::time::timeout(Duration::from_secs(20), wakes.woken()).await.unwrap_or_else(|_| panic!("{what}"));
}
