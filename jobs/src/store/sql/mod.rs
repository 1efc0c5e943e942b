//! The store for SQLite and PostgreSQL: the same statements, but where the two differ.

mod admin;
mod columns;
mod db;
mod dialect;
mod enqueue;
#[cfg(feature = "sqlite")]
mod file;
mod import;
mod migrate;
mod options;
mod prune;
mod recover;
mod store;
#[cfg(test)]
mod tests;
mod transaction;
mod wake;
mod work;

use std::sync::Arc;

pub use options::SqlOptions;
pub use transaction::SqlTransaction;

use crate::Error;
use db::{Db, Value};
use dialect::Dialect;
#[cfg(feature = "sqlite")]
use file::File;
use wake::Waker;

/// After so long without work a connection may have died unnoticed.
#[cfg(feature = "postgres")]
const RESTED: std::time::Duration = std::time::Duration::from_secs(1);

/// A table of jobs in SQLite (feature `sqlite`) or PostgreSQL (feature `postgres`). Cheap to clone.
///
/// In SQLite there is one writer at a time, so that one connection is enough and more do not help; where a pool of yours
/// is used, its `busy_timeout` says how long a statement waits for the others. In PostgreSQL workers pass each other by
/// (`SKIP LOCKED`), on as many machines as you like.
#[derive(Clone)]
pub struct SqlStore(Arc<Inner>);

struct Inner {
    db: Db,
    dialect: Dialect,
    waker: Waker,
}

impl SqlStore {
    fn new(db: Db, options: SqlOptions) -> Result<Self, Error> {
        let dialect = Dialect::new(db.engine(), options)?;
        let waker = Waker::new(dialect.channel());
        Ok(Self(Arc::new(Inner { db, dialect, waker })))
    }

    /// The jobs in this file, which is made where there is none, and brought up to date.
    ///
    /// It is opened in WAL mode, with one connection that waits up to 5 s for another process's lock. A job that was
    /// enqueued is on the disk before that is answered. What workers write survives the death of any process, and after a
    /// power cut a job may run again that had ended in the last moments. For other settings open a pool of your own:
    /// [`from_pool`](Self::from_pool).
    ///
    /// It stays open: a file that is deleted, or replaced by a backup, meanwhile goes on being written and read, unseen by
    /// others, and is gone with the process.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or is no database, or the options break a rule.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl AsRef<std::path::Path>, options: SqlOptions) -> Result<Self, Error> {
        use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
        let file = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(std::time::Duration::from_secs(5))
            // As many rows as one claim has: the thread that reads them does not wait for whoever takes them.
            .row_buffer_size(1000);
        // Who makes the file turns WAL mode on, and for that moment SQLite turns others away at once.
        let mut tries = 0;
        let file = loop {
            match File::open(file.clone()).await {
                Ok(file) => break file,
                Err(error) if tries < 50 && is_busy(&error) => tries += 1,
                Err(error) => return Err(Error::store("open its file", error)),
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        let store = Self::new(Db::File(file), options)?;
        store.migrate().await?;
        Ok(store)
    }

    /// The jobs in this database, over a pool of 10 connections. [`migrate`](Self::migrate) makes the table.
    ///
    /// # Errors
    ///
    /// The URL is none, the server does not answer, or the options break a rule.
    #[cfg(feature = "postgres")]
    pub async fn postgres(url: &str, options: SqlOptions) -> Result<Self, Error> {
        let pool = sqlx::postgres::PgPoolOptions::new()
            .max_connections(10)
            // A look whether a connection lives is a trip to the server, and one that has just served lives.
            .test_before_acquire(false)
            .before_acquire(|connection, known| {
                Box::pin(async move {
                    if known.idle_for > RESTED {
                        sqlx::Connection::ping(connection).await?;
                    }
                    Ok(true)
                })
            })
            .connect(url)
            .await;
        Self::from_pool(pool.map_err(|error| Error::store("connect", error))?, options)
    }

    /// The jobs in a pool of yours: an `sqlx::SqlitePool` or an `sqlx::PgPool`.
    ///
    /// A pool looks before each statement whether its connection lives, unless its `test_before_acquire` is off, and after
    /// it in any case. In SQLite these looks take longer than the statement: [`sqlite`](Self::sqlite) does without.
    ///
    /// In PostgreSQL a runner listens on a connection of its own, and needs a few more to work with. In a pool of one it
    /// does not listen: what other processes enqueue is found at the next look
    /// ([`Runner::poll_every`](crate::Runner::poll_every)).
    ///
    /// # Errors
    ///
    /// The options break a rule.
    pub fn from_pool(pool: impl Into<SqlPool>, options: SqlOptions) -> Result<Self, Error> {
        Self::new(pool.into().0, options)
    }

    async fn fetch(&self, doing: &'static str, sql: &str, values: &[Value<'_>]) -> Result<Vec<db::Row>, Error> {
        let sql = self.0.dialect.render(sql);
        self.0.db.fetch(sql, values).await.map_err(|error| Error::store(doing, error))
    }
}

/// Another process holds the lock (SQLITE_BUSY, and its extended codes).
#[cfg(feature = "sqlite")]
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xFF == 5)
}

impl std::fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlStore").field("table", &self.0.dialect.table()).finish_non_exhaustive()
    }
}

/// A pool of either database: made of an `sqlx::SqlitePool` or an `sqlx::PgPool`.
#[derive(Clone)]
pub struct SqlPool(Db);

#[cfg(feature = "sqlite")]
impl From<sqlx::SqlitePool> for SqlPool {
    fn from(pool: sqlx::SqlitePool) -> Self {
        SqlPool(Db::Sqlite(pool))
    }
}

#[cfg(feature = "postgres")]
impl From<sqlx::PgPool> for SqlPool {
    fn from(pool: sqlx::PgPool) -> Self {
        SqlPool(Db::Postgres(pool))
    }
}

impl std::fmt::Debug for SqlPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SqlPool").finish()
    }
}
