//! Both databases behind one face: values in, rows out.

use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr};

use crate::Lease;

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

#[derive(Clone)]
pub(super) enum Db {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::SqlitePool),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgPool),
}

/// A value of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Int(i64),
    MaybeInt(Option<i64>),
    Text(&'v str),
    MaybeText(Option<&'v str>),
    /// In SQLite one value, JSON; in PostgreSQL two, arrays of numbers and of tokens.
    Leases(&'v [Lease]),
}

/// Binds these values in order.
macro_rules! bind {
    ($query:expr, $values:expr, $leases:expr) => {{
        let mut query = $query;
        for value in $values {
            query = match value {
                Value::Int(value) => query.bind(*value),
                Value::MaybeInt(value) => query.bind(*value),
                Value::Text(value) => query.bind((*value).to_owned()),
                Value::MaybeText(value) => query.bind(value.map(str::to_owned)),
                Value::Leases(leases) => $leases(query, leases),
            };
        }
        query
    }};
}

#[cfg(feature = "sqlite")]
type LiteQuery<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

#[cfg(feature = "sqlite")]
fn lite<'q>(sql: String, values: &[Value<'_>]) -> LiteQuery<'q> {
    bind!(sqlx::query(AssertSqlSafe(sql).into_sql_str()), values, |query: LiteQuery<'q>, leases: &[Lease]| {
        let pairs: Vec<_> = leases.iter().map(|lease| format!("[{},{}]", lease.id, lease.token)).collect();
        query.bind(format!("[{}]", pairs.join(",")))
    })
}

#[cfg(feature = "postgres")]
type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

#[cfg(feature = "postgres")]
fn pg<'q>(sql: String, values: &[Value<'_>]) -> PgQuery<'q> {
    bind!(sqlx::query(AssertSqlSafe(sql).into_sql_str()), values, |query: PgQuery<'q>, leases: &[Lease]| {
        let (ids, tokens): (Vec<i64>, Vec<i64>) = leases.iter().map(|lease| (lease.id.0, lease.token)).unzip();
        query.bind(ids).bind(tokens)
    })
}

impl Db {
    pub(super) fn engine(&self) -> Engine {
        match self {
            #[cfg(feature = "sqlite")]
            Db::Sqlite(_) => Engine::Sqlite,
            #[cfg(feature = "postgres")]
            Db::Postgres(_) => Engine::Postgres,
        }
    }

    /// One statement, a transaction of its own. Every row is read, so that it has run to its end.
    pub(super) async fn fetch(&self, sql: String, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::Sqlite(pool) => Ok(lite(sql, values).fetch_all(pool).await?.into_iter().map(Row::Sqlite).collect()),
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => Ok(pg(sql, values).fetch_all(pool).await?.into_iter().map(Row::Postgres).collect()),
        }
    }

    /// One statement that returns no rows; how many it has changed.
    pub(super) async fn execute(&self, sql: String, values: &[Value<'_>]) -> sqlx::Result<u64> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::Sqlite(pool) => Ok(lite(sql, values).execute(pool).await?.rows_affected()),
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => Ok(pg(sql, values).execute(pool).await?.rows_affected()),
        }
    }

    /// A transaction that may write. In SQLite it has the write lock from its start, so that it never has to give up
    /// half way because another one wrote.
    pub(super) async fn begin(&self) -> sqlx::Result<Tx> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::Sqlite(pool) => Ok(Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?)),
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => Ok(Tx::Postgres(pool.begin().await?)),
        }
    }
}

/// In SQLite with WAL a commit is safe from the death of a process at once, but from a power cut only after the next sync.
/// These ask for that sync with each commit, or leave it to the next checkpoint.
#[cfg(feature = "sqlite")]
const SYNCED: &str = "PRAGMA synchronous = FULL; BEGIN IMMEDIATE";
#[cfg(feature = "sqlite")]
const UNSYNCED: &str = "PRAGMA synchronous = NORMAL";

impl Db {
    /// A transaction that has reached the disk when its commit is answered, on a file of ours, which has one connection.
    /// Another's pool is left as it is set.
    pub(super) async fn begin_synced(&self, ours: bool) -> sqlx::Result<Tx> {
        match (self, ours) {
            #[cfg(feature = "sqlite")]
            (Db::Sqlite(pool), true) => Ok(Tx::Sqlite(pool.begin_with(SYNCED).await?)),
            _ => self.begin().await,
        }
    }

    /// What follows need not be synced by itself.
    pub(super) async fn end_synced(&self, ours: bool) -> sqlx::Result<()> {
        match (self, ours) {
            #[cfg(feature = "sqlite")]
            (Db::Sqlite(pool), true) => sqlx::raw_sql(UNSYNCED).execute(pool).await.map(drop),
            _ => Ok(()),
        }
    }
}

/// A transaction of ours.
pub(super) enum Tx {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

impl Tx {
    pub(super) fn connection(&mut self) -> SqlTransaction<'_> {
        match self {
            #[cfg(feature = "sqlite")]
            Tx::Sqlite(tx) => SqlTransaction(Connection::Sqlite(tx)),
            #[cfg(feature = "postgres")]
            Tx::Postgres(tx) => SqlTransaction(Connection::Postgres(tx)),
        }
    }

    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self {
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

/// A row of either database. Columns are asked for by their place.
pub(super) enum Row {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::sqlite::SqliteRow),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::postgres::PgRow),
}

impl Row {
    pub(super) fn int(&self, column: usize) -> sqlx::Result<i64> {
        match self {
            #[cfg(feature = "sqlite")]
            Row::Sqlite(row) => row.try_get(column),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn maybe_int(&self, column: usize) -> sqlx::Result<Option<i64>> {
        match self {
            #[cfg(feature = "sqlite")]
            Row::Sqlite(row) => row.try_get(column),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn text(&self, column: usize) -> sqlx::Result<String> {
        match self {
            #[cfg(feature = "sqlite")]
            Row::Sqlite(row) => row.try_get(column),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => row.try_get(column),
        }
    }

    pub(super) fn maybe_text(&self, column: usize) -> sqlx::Result<Option<String>> {
        match self {
            #[cfg(feature = "sqlite")]
            Row::Sqlite(row) => row.try_get(column),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => row.try_get(column),
        }
    }
}
