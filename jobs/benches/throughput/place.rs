//! Where the jobs are: a file or a schema of their own.

use std::path::PathBuf;

use redial_jobs::{SqlOptions, SqlStore};
use sqlx::AssertSqlSafe;

pub enum Place {
    Sqlite(PathBuf),
    Postgres(sqlx::PgPool, String),
}

impl Place {
    pub async fn sqlite() -> (Self, SqlStore) {
        let path = std::env::temp_dir().join(format!("redial-jobs-bench-{}.db", std::process::id()));
        let place = Place::Sqlite(path.clone());
        place.remove().await;
        (place, SqlStore::sqlite(&path, SqlOptions::new()).await.unwrap())
    }

    pub async fn postgres(url: &str) -> (Self, SqlStore) {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect(url).await.unwrap();
        let schema = format!("bench{}", std::process::id());
        let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        let store = SqlStore::postgres(url, SqlOptions::new().schema(&schema)).await.unwrap();
        store.migrate().await.unwrap();
        (Place::Postgres(pool, schema), store)
    }

    /// Finished jobs of as many targets, written past the store.
    pub async fn finish(&self, job_type: &str, count: usize) {
        const COLUMNS: &str = "job_type, target, payload, state, origin, run_at, token, chain, chain_at, created_at, \
            started_at, finished_at";
        let row = format!(
            "'{job_type}', 'old ' || n, '{{}}', 'COMPLETED', 'ENQUEUED', 1000, 1, \
             '018f0000-0000-7000-8000-000000000000', 1000, 1000, 1000, 1000 + n"
        );
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

    pub async fn remove(&self) {
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
