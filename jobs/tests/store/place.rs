//! Where a test's jobs are: a file or a schema of its own.

#[path = "../server/mod.rs"]
pub mod server;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use redial_jobs::{
    Claim, Claimed, Enqueued, Failure, FailureClass, JobId, JobRow, JobStore, Kind, NewJob, Recovery, SqlOptions,
    SqlPool, SqlStore, Sweeper, Swept,
};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub const HOUR: Duration = Duration::from_secs(3600);
pub const LEASE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub enum Database {
    Sqlite(sqlx::SqlitePool),
    Postgres(sqlx::PgPool),
}

impl From<Database> for SqlPool {
    fn from(database: Database) -> Self {
        match database {
            Database::Sqlite(pool) => pool.into(),
            Database::Postgres(pool) => pool.into(),
        }
    }
}

/// A store, and its table seen by clocks that are set otherwise.
pub struct Place {
    pub store: SqlStore,
    pub database: Database,
    options: SqlOptions,
    /// The file's, or the schema's.
    pub name: String,
}

fn name() -> String {
    format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Place {
    pub async fn sqlite() -> Self {
        use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
        let name = name();
        let file = SqliteConnectOptions::new()
            .filename(file_of(&name))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(file).await.unwrap();
        Self::new(Database::Sqlite(pool), SqlOptions::new(), name).await
    }

    /// `None`: no server was named.
    pub async fn postgres() -> Option<Self> {
        let url = server::url()?;
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(4).connect(&url).await.unwrap();
        let schema = name();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).execute(&pool).await.unwrap();
        let options = SqlOptions::new().schema(&schema);
        Some(Self::new(Database::Postgres(pool), options, schema).await)
    }

    async fn new(database: Database, options: SqlOptions, name: String) -> Self {
        let store = SqlStore::from_pool(database.clone(), options.clone()).unwrap();
        store.migrate().await.unwrap();
        Self { store, database, options, name }
    }

    pub async fn end(self) {
        drop(self.store);
        match self.database {
            Database::Sqlite(pool) => {
                pool.close().await;
                for suffix in ["", "-wal", "-shm"] {
                    let mut path = file_of(&self.name).into_os_string();
                    path.push(suffix);
                    let _ = std::fs::remove_file(path);
                }
            }
            Database::Postgres(pool) => {
                let sql = format!("DROP SCHEMA {} CASCADE", self.name);
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
            }
        }
    }

    /// The same table, by a clock that is ahead by so much.
    pub fn later(&self, time: Duration) -> SqlStore {
        self.clock(i64::try_from(time.as_millis()).unwrap())
    }

    /// The same table, by a clock that is behind by so much.
    pub fn earlier(&self, time: Duration) -> SqlStore {
        self.clock(-i64::try_from(time.as_millis()).unwrap())
    }

    fn clock(&self, offset: i64) -> SqlStore {
        SqlStore::from_pool(self.database.clone(), self.options.clone().clock_offset_ms(offset)).unwrap()
    }

    /// The same table, without fencing.
    pub fn unfenced(&self) -> SqlStore {
        SqlStore::from_pool(self.database.clone(), self.options.clone().unfenced()).unwrap()
    }

    /// Another table beside it.
    pub fn table(&self, table: &str) -> SqlStore {
        SqlStore::from_pool(self.database.clone(), self.options.clone().table(table)).unwrap()
    }

    pub async fn say_version(&self, version: i64) {
        let sql =
            |schema: &str| sqlx::AssertSqlSafe(format!("UPDATE {schema}redial_jobs_schema SET version = {version}"));
        match &self.database {
            Database::Sqlite(pool) => {
                sqlx::raw_sql(sql("")).execute(pool).await.unwrap();
            }
            Database::Postgres(pool) => {
                sqlx::raw_sql(sql(&format!("{}.", self.name))).execute(pool).await.unwrap();
            }
        }
    }

    /// So many jobs that have ended, written past the store, and counted by the database.
    pub async fn finish(&self, count: u32) {
        let columns = "job_type, target, payload, state, origin, run_at, chain, chain_at, created_at, finished_at";
        let row =
            "'mail', 'old ' || n, '{}', 'COMPLETED', 'ENQUEUED', 1, '018f0000-0000-7000-8000-000000000000', 1, 1, 1";
        match &self.database {
            Database::Sqlite(pool) => {
                let sql = format!(
                    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) \
                     INSERT INTO redial_jobs ({columns}) SELECT {row} FROM s; ANALYZE"
                );
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
            Database::Postgres(pool) => {
                let table = format!("{}.redial_jobs", self.name);
                let sql = format!(
                    "INSERT INTO {table} ({columns}) SELECT {row} FROM generate_series(1, {count}) AS s(n); ANALYZE {table}"
                );
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
        }
    }

    /// Deletes all jobs, past the store.
    pub async fn empty(&self) {
        match &self.database {
            Database::Sqlite(pool) => {
                sqlx::raw_sql("DELETE FROM redial_jobs").execute(pool).await.unwrap();
            }
            Database::Postgres(pool) => {
                let sql = format!("DELETE FROM {}.redial_jobs", self.name);
                sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await.unwrap();
            }
        }
    }

    /// How many connections of the pool somebody has left in a transaction. None of them is in use.
    pub async fn left_in_transactions(&self) -> usize {
        let Database::Postgres(pool) = &self.database else { return 0 };
        let mut left = 0;
        let mut all = Vec::new();
        for _ in 0..pool.options().get_max_connections() {
            let mut one = pool.acquire().await.unwrap();
            // Its time stands still within a transaction.
            let mut times: [String; 2] = Default::default();
            for time in &mut times {
                *time = sqlx::query_scalar("SELECT now()::text").fetch_one(&mut *one).await.unwrap();
            }
            left += usize::from(times[0] == times[1]);
            all.push(one);
        }
        left
    }

    /// The file that a place in SQLite is.
    pub fn path(&self) -> PathBuf {
        file_of(&self.name)
    }

    pub async fn row(&self, id: JobId) -> JobRow {
        self.store.chain(id).await.unwrap().into_iter().find(|row| row.id == id).unwrap()
    }

    pub async fn enqueue(&self, target: &str) -> JobId {
        enqueue(&self.store, job(target)).await.id()
    }

    /// Fails it with its attempts spent.
    pub async fn fail(&self, target: &str) -> JobId {
        let claimed = claim_one(&self.store).await;
        assert_eq!(claimed.target, target);
        let _ = self.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
        claimed.lease.id
    }
}

fn file_of(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("redial-jobs-{name}.db"))
}

pub fn job(target: &str) -> NewJob {
    NewJob::raw("mail", target, "{}").unwrap()
}

pub async fn enqueue(store: &SqlStore, job: NewJob) -> Enqueued {
    store.enqueue(&[job]).await.unwrap()[0]
}

pub async fn claim(store: &SqlStore, max: u32) -> Vec<Claimed> {
    let kinds = [Kind::named("mail")];
    store.claim(&Claim { kinds: &kinds, worker: "w", lease: LEASE, max }).await.unwrap()
}

pub async fn claim_one(store: &SqlStore) -> Claimed {
    let mut claimed = claim(store, 1).await;
    assert_eq!(claimed.len(), 1, "one job is claimable");
    claimed.remove(0)
}

pub fn exhausted() -> Failure {
    Failure::new(FailureClass::Exhausted, "503 after 3 attempts")
}

pub fn recovery() -> Recovery {
    Recovery::default()
}

pub async fn sweep(store: &SqlStore) -> Swept {
    Sweeper::new(store.clone(), recovery()).unwrap().run_once().await.unwrap()
}
