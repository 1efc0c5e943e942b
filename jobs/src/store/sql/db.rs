//! Both databases behind one face: values in, rows out.

use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr};

use crate::Lease;
#[cfg(feature = "postgres")]
use crate::NewJob;

#[cfg(feature = "sqlite")]
use super::file::{File, WRITING};
use super::{enqueue::Incoming, import::Old, transaction::Tx};

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
    File(File),
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
    /// In SQLite one value, JSON; in PostgreSQL an array for each column.
    Incoming(&'v [Incoming<'v>]),
    /// The same of failures that are imported.
    Old(&'v [Old<'v>]),
}

/// Binds these values in order.
macro_rules! bind {
    ($query:expr, $values:expr, $leases:expr, $incoming:expr, $old:expr) => {{
        let mut query = $query;
        for value in $values {
            query = match value {
                Value::Int(value) => query.bind(*value),
                Value::MaybeInt(value) => query.bind(*value),
                Value::Text(value) => query.bind((*value).to_owned()),
                Value::MaybeText(value) => query.bind(value.map(str::to_owned)),
                Value::Leases(leases) => $leases(query, leases),
                Value::Incoming(rows) => $incoming(query, rows),
                Value::Old(rows) => $old(query, rows),
            };
        }
        query
    }};
}

#[cfg(feature = "sqlite")]
pub(super) type LiteQuery<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

#[cfg(feature = "sqlite")]
pub(super) fn lite<'q>(sql: String, values: &[Value<'_>]) -> LiteQuery<'q> {
    let leases = |query: LiteQuery<'q>, leases: &[Lease]| {
        let pairs: Vec<_> = leases.iter().map(|lease| format!("[{},{}]", lease.id, lease.token)).collect();
        query.bind(format!("[{}]", pairs.join(",")))
    };
    let incoming = |query: LiteQuery<'q>, rows: &[Incoming<'_>]| {
        let rows = rows.iter().map(|row| {
            let (job, Incoming { once, apart, delay, chain, .. }) = (row.job, row);
            serde_json::json!([
                job.job_type,
                job.target,
                job.payload,
                job.provider,
                once,
                apart,
                delay,
                chain,
                job.trace
            ])
        });
        query.bind(serde_json::Value::Array(rows.collect()).to_string())
    };
    let old = |query: LiteQuery<'q>, rows: &[Old<'_>]| {
        let rows = rows.iter().map(|row| {
            let (job, Old { once, apart, due, chain, class, dead, failed_at, reason, .. }) = (row.job, row);
            serde_json::json!([
                job.job_type,
                job.target,
                job.payload,
                job.provider,
                once,
                apart,
                due,
                chain,
                job.trace,
                class,
                dead,
                failed_at,
                reason
            ])
        });
        query.bind(serde_json::Value::Array(rows.collect()).to_string())
    };
    bind!(sqlx::query(AssertSqlSafe(sql).into_sql_str()), values, leases, incoming, old)
}

#[cfg(feature = "postgres")]
pub(super) type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

#[cfg(feature = "postgres")]
pub(super) fn pg<'q>(sql: String, values: &[Value<'_>]) -> PgQuery<'q> {
    let leases = |query: PgQuery<'q>, leases: &[Lease]| {
        let (ids, tokens): (Vec<i64>, Vec<i64>) = leases.iter().map(|lease| (lease.id.0, lease.token)).unzip();
        query.bind(ids).bind(tokens)
    };
    let incoming = |query: PgQuery<'q>, rows: &[Incoming<'_>]| {
        let texts = |text: fn(&NewJob) -> &String| -> Vec<_> { rows.iter().map(|row| text(row.job).clone()).collect() };
        query
            .bind(texts(|job| &job.job_type))
            .bind(texts(|job| &job.target))
            .bind(texts(|job| &job.payload))
            .bind(rows.iter().map(|row| row.job.provider.clone()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.once).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.apart).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.delay).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.chain.clone()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.job.trace.clone()).collect::<Vec<_>>())
    };
    let old = |query: PgQuery<'q>, rows: &[Old<'_>]| {
        let texts = |text: fn(&NewJob) -> &String| -> Vec<_> { rows.iter().map(|row| text(row.job).clone()).collect() };
        query
            .bind(texts(|job| &job.job_type))
            .bind(texts(|job| &job.target))
            .bind(texts(|job| &job.payload))
            .bind(rows.iter().map(|row| row.job.provider.clone()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.once).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.apart).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.due).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.chain.clone()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.job.trace.clone()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.class).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.dead).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.failed_at).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.reason.clone()).collect::<Vec<_>>())
    };
    bind!(sqlx::query(AssertSqlSafe(sql).into_sql_str()), values, leases, incoming, old)
}

impl Db {
    pub(super) fn engine(&self) -> Engine {
        match self {
            #[cfg(feature = "sqlite")]
            Db::File(_) | Db::Sqlite(_) => Engine::Sqlite,
            #[cfg(feature = "postgres")]
            Db::Postgres(_) => Engine::Postgres,
        }
    }

    /// One statement, a transaction of its own. Every row is read, so that it has run to its end.
    pub(super) async fn fetch(&self, sql: String, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::File(file) => {
                // Made before its turn, for which others wait.
                let query = lite(sql, values);
                let mut open = file.turn(false).await?;
                let rows = query.fetch_all(&mut open.connection).await;
                Ok(open.note(rows)?.into_iter().map(Row::Sqlite).collect())
            }
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
            Db::File(file) => {
                let query = lite(sql, values);
                let mut open = file.turn(false).await?;
                let done = query.execute(&mut open.connection).await;
                Ok(open.note(done)?.rows_affected())
            }
            #[cfg(feature = "sqlite")]
            Db::Sqlite(pool) => Ok(lite(sql, values).execute(pool).await?.rows_affected()),
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => Ok(pg(sql, values).execute(pool).await?.rows_affected()),
        }
    }

    /// A transaction that may write.
    pub(super) async fn begin(&self) -> sqlx::Result<Tx> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::File(file) => Ok(Tx::File(file.begin(false).await?)),
            #[cfg(feature = "sqlite")]
            Db::Sqlite(pool) => Ok(Tx::Sqlite(pool.begin_with(WRITING).await?)),
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => Ok(Tx::Postgres(begun(pool.clone()).await?)),
        }
    }

    /// The same, which has reached the disk when its commit is answered. A pool of another's is left as it is set.
    pub(super) async fn begin_synced(&self) -> sqlx::Result<Tx> {
        match self {
            #[cfg(feature = "sqlite")]
            Db::File(file) => Ok(Tx::File(file.begin(true).await?)),
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            _ => self.begin().await,
        }
    }
}

/// In a task of its own, which begins it whatever becomes of whoever waits for it: a `begin` that is dropped half way would
/// leave its connection in a transaction, and the pool would hand that on to others, whose writes are never committed
/// (sqlx 0.9.0, its issue 4393).
#[cfg(feature = "postgres")]
async fn begun(pool: sqlx::PgPool) -> sqlx::Result<sqlx::Transaction<'static, sqlx::Postgres>> {
    tokio::spawn(async move { pool.begin().await }).await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is shutting down.
        Err(_) => Err(sqlx::Error::PoolClosed),
    })
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
