//! A file of ours: one connection, which its callers take in turn.
//!
//! A pool would look before and after each statement whether its connection lives, and each look is a trip to the thread
//! on which SQLite works: together they take longer than most statements.

use std::sync::Arc;

use sqlx::{
    ConnectOptions, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteSynchronous},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// It has the write lock from its start, so that it never has to give up half way because another one wrote.
pub(super) const WRITING: &str = "BEGIN IMMEDIATE";

/// In SQLite with WAL a commit is safe from the death of a process at once, but from a power cut only after the next sync.
/// These ask for that sync with each commit, or leave it to the next checkpoint.
const SYNCED: &str = "PRAGMA synchronous = FULL";
const UNSYNCED: &str = "PRAGMA synchronous = NORMAL";

#[derive(Clone)]
pub(super) struct File(Arc<Mutex<Open>>);

/// Its connection, in the hands of one caller.
pub(super) struct Open {
    pub(super) connection: SqliteConnection,
    options: SqliteConnectOptions,
    /// As it is set. `None`: whoever was setting it gave up.
    is_synced: Option<bool>,
    /// A transaction was begun, and is to be rolled back unless it is committed.
    is_begun: bool,
    /// The thread that it works on has ended.
    is_lost: bool,
}

impl File {
    pub(super) async fn open(options: SqliteConnectOptions) -> sqlx::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Open::new(options).await?))))
    }

    /// Waits for its turn. What it commits is safe from a power cut, or need not be yet.
    pub(super) async fn turn(&self, synced: bool) -> sqlx::Result<OwnedMutexGuard<Open>> {
        let mut open = self.0.clone().lock_owned().await;
        if open.is_lost {
            *open = Open::new(open.options.clone()).await?;
        }
        if open.is_begun {
            open.roll_back().await?;
        }
        if open.is_synced != Some(synced) {
            open.is_synced = None;
            open.run(if synced { SYNCED } else { UNSYNCED }).await?;
            open.is_synced = Some(synced);
        }
        Ok(open)
    }

    pub(super) async fn begin(&self, synced: bool) -> sqlx::Result<FileTransaction> {
        let mut transaction = FileTransaction { file: self.clone(), open: self.turn(synced).await? };
        // Whoever gives up while it begins may have begun it.
        transaction.open.is_begun = true;
        let begun = transaction.open.run(WRITING).await;
        transaction.open.is_begun = begun.is_ok();
        begun.map(|()| transaction)
    }
}

impl Open {
    async fn new(options: SqliteConnectOptions) -> sqlx::Result<Self> {
        let options = options.synchronous(SqliteSynchronous::Normal);
        let connection = options.connect().await?;
        Ok(Self { connection, options, is_synced: Some(false), is_begun: false, is_lost: false })
    }

    async fn run(&mut self, sql: &'static str) -> sqlx::Result<()> {
        let done = sqlx::raw_sql(sql).execute(&mut self.connection).await;
        self.note(done).map(drop)
    }

    async fn roll_back(&mut self) -> sqlx::Result<()> {
        // SQLite has rolled it back by itself, as after some errors, or never begun it.
        let done = match self.run("ROLLBACK").await {
            Err(error) if error.as_database_error().is_none() => Err(error),
            _ => Ok(()),
        };
        self.is_begun = done.is_err();
        done
    }

    /// After the death of its thread, the next turn opens the file again.
    pub(super) fn note<T>(&mut self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        self.is_lost |= matches!(result, Err(sqlx::Error::WorkerCrashed));
        result
    }
}

/// A transaction that has the file until it ends. `sqlx::Transaction` would borrow the connection that it has with it.
pub(super) struct FileTransaction {
    file: File,
    open: OwnedMutexGuard<Open>,
}

impl FileTransaction {
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.open.connection
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        self.open.run("COMMIT").await?;
        self.open.is_begun = false;
        Ok(())
    }
}

/// Rolled back at once where there is a runtime to do so: until then no other process can write. Else by the next turn.
impl Drop for FileTransaction {
    fn drop(&mut self) {
        if self.open.is_begun
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let file = self.file.clone();
            runtime.spawn(async move { drop(file.turn(false).await) });
        }
    }
}
