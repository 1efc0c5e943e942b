//! The table is made, and brought up to date.

use crate::Error;

use super::{SqlStore, Value, db::Engine, dialect::TABLE, transaction::SqlTransaction};

/// In order: each is run once, and never changed after it was released.
#[cfg(feature = "sqlite")]
const SQLITE: &[&str] = &[include_str!("../../../migrations/sqlite/0001_jobs.sql")];
#[cfg(feature = "postgres")]
const POSTGRES: &[&str] = &[include_str!("../../../migrations/postgres/0001_jobs.sql")];

impl SqlStore {
    /// Makes the table, or brings it up to date. Several processes may do so at once; where nothing is to be done,
    /// nothing is.
    ///
    /// The same statements ship as files, `migrations/sqlite` and `migrations/postgres`, for tools of your own. Where
    /// those have made the table, do not call this.
    ///
    /// # Errors
    ///
    /// The database fails or forbids it, or the table was made by a later release.
    pub async fn migrate(&self) -> Result<(), Error> {
        let failed = |error| Error::store("migrate", error);
        let mut tx = self.0.db.begin().await.map_err(failed)?;
        self.migrate_in(&mut tx.connection()).await?;
        tx.commit().await.map_err(failed)
    }

    async fn migrate_in(&self, tx: &mut SqlTransaction<'_>) -> Result<(), Error> {
        let failed = |error| Error::store("migrate", error);
        let dialect = &self.0.dialect;
        self.alone(tx).await.map_err(failed)?;
        let sql = "CREATE TABLE IF NOT EXISTS {schema} (version BIGINT NOT NULL)";
        tx.run(dialect.render(sql)).await.map_err(failed)?;
        let rows = tx.fetch(dialect.render("SELECT version FROM {schema}"), &[]).await.map_err(failed)?;
        let done = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(failed)?;
        let done = usize::try_from(done).unwrap_or(0);
        let all = migrations(dialect.engine());
        let Some(open) = all.get(done..) else {
            return Err(Error::invalid(format!(
                "the table `{}` is of version {done}, and this release knows {}: it was made by a later one",
                dialect.table(),
                all.len()
            )));
        };
        for sql in open {
            tx.run(sql.replace(TABLE, dialect.table())).await.map_err(failed)?;
        }
        if !open.is_empty() {
            tx.fetch(dialect.render("DELETE FROM {schema}"), &[]).await.map_err(failed)?;
            let version = i64::try_from(all.len()).unwrap_or(i64::MAX);
            let sql = dialect.render("INSERT INTO {schema} (version) VALUES ($1)");
            tx.fetch(sql, &[Value::Int(version)]).await.map_err(failed)?;
        }
        Ok(())
    }

    /// The only one that migrates, and with unqualified names meaning this schema.
    async fn alone(&self, tx: &mut SqlTransaction<'_>) -> sqlx::Result<()> {
        self.lock(tx, "migrate").await?;
        match self.0.dialect.schema() {
            Some(schema) => tx.run(format!("SET LOCAL search_path TO \"{schema}\"")).await,
            None => Ok(()),
        }
    }

    /// Held until the transaction ends. In SQLite each writing transaction is alone anyway.
    pub(super) async fn lock(&self, tx: &mut SqlTransaction<'_>, what: &str) -> sqlx::Result<()> {
        self.take_lock(tx, self.0.dialect.engine().lock(), what).await
    }

    /// The same, which many hold at once, but none beside [`lock`](Self::lock).
    pub(super) async fn shared_lock(&self, tx: &mut SqlTransaction<'_>, what: &str) -> sqlx::Result<()> {
        self.take_lock(tx, self.0.dialect.engine().shared_lock(), what).await
    }

    async fn take_lock(&self, tx: &mut SqlTransaction<'_>, sql: Option<&str>, what: &str) -> sqlx::Result<()> {
        let Some(sql) = sql else { return Ok(()) };
        let name = format!("{} {what}", self.0.dialect.channel());
        tx.fetch(sql.to_owned(), &[Value::Text(&name)]).await.map(drop)
    }
}

fn migrations(engine: Engine) -> &'static [&'static str] {
    match engine {
        #[cfg(feature = "sqlite")]
        Engine::Sqlite => SQLITE,
        #[cfg(feature = "postgres")]
        Engine::Postgres => POSTGRES,
    }
}
