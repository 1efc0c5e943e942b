//! Which table is meant.

use std::time::Duration;

use super::arguments::Table;
use crate::{Error, Jobs, SqlOptions, SqlPool, SqlStore};

/// How long the server has to answer.
const ANSWER: Duration = Duration::from_secs(5);

const FORMS: &str = "it must be sqlite:FILE or postgres://USER@HOST/NAME";

/// Opens the table. Makes neither a file nor a table: a mistyped name would look like one without jobs.
pub(super) async fn open(table: &Table) -> Result<Jobs<SqlStore>, Error> {
    let url =
        table.url.as_deref().ok_or_else(|| Error::invalid(format!("--url or REDIAL_JOBS_URL is missing: {FORMS}")))?;
    let mut options = SqlOptions::new();
    if let Some(name) = &table.table {
        options = options.table(name);
    }
    if let Some(schema) = &table.schema {
        options = options.schema(schema);
    }
    // The URL itself may hold a password, so no error shows it.
    let pool = match url.split_once(':') {
        Some(("sqlite", file)) => sqlite(file).await?,
        Some(("postgres" | "postgresql", _)) => postgres(url).await?,
        Some((scheme, _)) if !scheme.contains(['/', '\\', '@']) => {
            return Err(Error::invalid(format!("the URL's scheme is `{scheme}`: {FORMS}")));
        }
        _ => return Err(Error::invalid(format!("the URL has no scheme: {FORMS}"))),
    };
    Ok(Jobs::new(SqlStore::from_pool(pool, options)?))
}

async fn sqlite(file: &str) -> Result<SqlPool, Error> {
    use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
    let file = file.strip_prefix("//").unwrap_or(file);
    if !std::path::Path::new(file).is_file() {
        return Err(Error::invalid(format!("there is no file {file}")));
    }
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(ANSWER);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await;
    Ok(pool.map_err(|error| Error::store("open its file", error))?.into())
}

async fn postgres(url: &str) -> Result<SqlPool, Error> {
    use sqlx::{ConnectOptions, Connection, postgres::PgConnectOptions};
    let failed = |error| Error::store("connect", error);
    let options: PgConnectOptions = url.parse().map_err(failed)?;
    // A pool would try again until its time is up, and not say why.
    match tokio::time::timeout(ANSWER, options.connect()).await {
        Ok(connected) => connected.map_err(failed)?.close().await.map_err(failed)?,
        Err(_) => return Err(Error::store("connect", format!("no answer within {ANSWER:?}"))),
    }
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1).acquire_timeout(ANSWER);
    Ok(pool.connect_lazy_with(options).into())
}
