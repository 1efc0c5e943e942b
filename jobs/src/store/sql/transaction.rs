//! A transaction of ours, or of the caller's.

use sqlx::AssertSqlSafe;

#[cfg(feature = "postgres")]
use super::db::pg;
use super::db::{Engine, Row, Value};
#[cfg(feature = "sqlite")]
use super::{db::lite, file::FileTransaction};

/// A transaction of ours.
pub(super) enum Tx {
    #[cfg(feature = "sqlite")]
    File(FileTransaction),
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

impl Tx {
    pub(super) fn connection(&mut self) -> SqlTransaction<'_> {
        match self {
            #[cfg(feature = "sqlite")]
            Tx::File(tx) => SqlTransaction(Connection::Sqlite(tx.connection())),
            #[cfg(feature = "sqlite")]
            Tx::Sqlite(tx) => SqlTransaction(Connection::Sqlite(tx)),
            #[cfg(feature = "postgres")]
            Tx::Postgres(tx) => SqlTransaction(Connection::Postgres(tx)),
        }
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self {
            #[cfg(feature = "sqlite")]
            Tx::File(tx) => tx.commit().await,
            #[cfg(feature = "sqlite")]
            Tx::Sqlite(tx) => tx.commit().await,
            #[cfg(feature = "postgres")]
            Tx::Postgres(tx) => tx.commit().await,
        }
    }
}

/// A connection of the caller's, in a transaction: made of a `&mut` of an `sqlx::Transaction` or of a connection, of
/// either database.
pub struct SqlTransaction<'t>(Connection<'t>);

enum Connection<'t> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'t mut sqlx::SqliteConnection),
    #[cfg(feature = "postgres")]
    Postgres(&'t mut sqlx::PgConnection),
}

impl SqlTransaction<'_> {
    pub(super) fn engine(&self) -> Engine {
        match self.0 {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(_) => Engine::Sqlite,
            #[cfg(feature = "postgres")]
            Connection::Postgres(_) => Engine::Postgres,
        }
    }

    pub(super) async fn fetch(&mut self, sql: String, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(connection) => {
                Ok(lite(sql, values).fetch_all(&mut **connection).await?.into_iter().map(Row::Sqlite).collect())
            }
            #[cfg(feature = "postgres")]
            Connection::Postgres(connection) => {
                Ok(pg(sql, values).fetch_all(&mut **connection).await?.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// Several statements without values.
    pub(super) async fn run(&mut self, sql: String) -> sqlx::Result<()> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Connection::Sqlite(connection) => sql.execute(&mut **connection).await.map(drop),
            #[cfg(feature = "postgres")]
            Connection::Postgres(connection) => sql.execute(&mut **connection).await.map(drop),
        }
    }
}

impl std::fmt::Debug for SqlTransaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SqlTransaction").field(&self.engine()).finish()
    }
}

#[cfg(feature = "sqlite")]
impl<'t> From<&'t mut sqlx::SqliteConnection> for SqlTransaction<'t> {
    fn from(connection: &'t mut sqlx::SqliteConnection) -> Self {
        SqlTransaction(Connection::Sqlite(connection))
    }
}

#[cfg(feature = "sqlite")]
impl<'t> From<&'t mut sqlx::Transaction<'_, sqlx::Sqlite>> for SqlTransaction<'t> {
    fn from(tx: &'t mut sqlx::Transaction<'_, sqlx::Sqlite>) -> Self {
        SqlTransaction(Connection::Sqlite(tx))
    }
}

#[cfg(feature = "postgres")]
impl<'t> From<&'t mut sqlx::PgConnection> for SqlTransaction<'t> {
    fn from(connection: &'t mut sqlx::PgConnection) -> Self {
        SqlTransaction(Connection::Postgres(connection))
    }
}

#[cfg(feature = "postgres")]
impl<'t> From<&'t mut sqlx::Transaction<'_, sqlx::Postgres>> for SqlTransaction<'t> {
    fn from(tx: &'t mut sqlx::Transaction<'_, sqlx::Postgres>) -> Self {
        SqlTransaction(Connection::Postgres(tx))
    }
}
