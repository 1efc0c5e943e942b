//! Where the processes of a run meet.

#[allow(dead_code)]
#[path = "../server/mod.rs"]
mod server;

use std::{
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use redial_jobs::{SqlOptions, SqlStore};
use sqlx::{
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

/// What tells a worker process where to work.
pub const VARIABLE: &str = "REDIAL_STRESS_PLACE";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Clone)]
pub struct Database {
    postgres: bool,
    name: String,
    unfenced: bool,
}

fn name() -> String {
    format!("stress{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Database {
    pub fn sqlite(unfenced: bool) -> Self {
        Self { postgres: false, name: name(), unfenced }
    }

    pub fn postgres(unfenced: bool) -> Option<Self> {
        server::url().map(|_| Self { postgres: true, name: name(), unfenced })
    }

    pub fn place(&self) -> String {
        format!("{} {} {}", self.postgres, self.name, self.unfenced)
    }

    pub fn parse(place: &str) -> Self {
        let mut words = place.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        Self { postgres: next() == "true", name: next(), unfenced: next() == "true" }
    }

    fn file(&self) -> PathBuf {
        std::env::temp_dir().join(format!("redial-jobs-{}.db", self.name))
    }

    async fn server(connections: u32) -> sqlx::PgPool {
        let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
        PgPoolOptions::new().max_connections(connections).connect(&url).await.unwrap()
    }

    fn options(&self) -> SqlOptions {
        let options = SqlOptions::new();
        if self.unfenced { options.unfenced() } else { options }
    }

    /// As a worker opens it: the file by itself, without a pool.
    pub async fn open_to_work(&self) -> SqlStore {
        if self.postgres {
            return self.open(2).await;
        }
        SqlStore::sqlite(self.file(), self.options()).await.unwrap()
    }

    pub async fn open(&self, connections: u32) -> SqlStore {
        let options = self.options();
        if self.postgres {
            let pool = Self::server(connections).await;
            let sql = format!("CREATE SCHEMA IF NOT EXISTS {}", self.name);
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
            return SqlStore::from_pool(pool, options.schema(&self.name)).unwrap();
        }
        let file = SqliteConnectOptions::new()
            .filename(self.file())
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(file).await.unwrap();
        SqlStore::from_pool(pool, options).unwrap()
    }

    /// How many targets have two active jobs at this instant: one statement, and so one view of the table.
    pub async fn two_active(&self) -> i64 {
        let count = |schema: &str| {
            sqlx::AssertSqlSafe(format!(
                "SELECT count(*) FROM (SELECT target FROM {schema}redial_jobs WHERE state IN ('PENDING', 'PROCESSING') \
                 GROUP BY target HAVING count(*) > 1) AS twice"
            ))
        };
        if self.postgres {
            let sql = count(&format!("{}.", self.name));
            return sqlx::query_scalar(sql).fetch_one(&Self::server(1).await).await.unwrap();
        }
        let file = SqliteConnectOptions::new().filename(self.file()).busy_timeout(Duration::from_secs(30));
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(file).await.unwrap();
        sqlx::query_scalar(count("")).fetch_one(&pool).await.unwrap()
    }

    pub async fn remove(&self) {
        if self.postgres {
            let sql = format!("DROP SCHEMA {} CASCADE", self.name);
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&Self::server(1).await).await.unwrap();
            return;
        }
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.file().into_os_string();
            path.push(suffix);
            let _ = std::fs::remove_file(path);
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.postgres { "PostgreSQL" } else { "SQLite" })?;
        f.write_str(if self.unfenced { " without fencing" } else { "" })
    }
}
