//! How the two databases' words differ.

use crate::Error;

use super::{
    db::Engine,
    options::{SqlOptions, check},
};

/// The name in the migration files.
pub(super) const TABLE: &str = "redial_jobs";

/// The columns of the jobs that come in, in the order in which they are bound.
const INCOMING: [(&str, &str); 9] = [
    ("job_type", "text"),
    ("target", "text"),
    ("payload", "text"),
    ("provider", "text"),
    ("once", "bigint"),
    ("apart", "bigint"),
    ("delay", "bigint"),
    ("chain", "text"),
    ("trace", "text"),
];

/// The same of the failures that are imported.
const OLD: [(&str, &str); 13] = [
    ("job_type", "text"),
    ("target", "text"),
    ("payload", "text"),
    ("provider", "text"),
    ("once", "bigint"),
    ("apart", "bigint"),
    ("due", "bigint"),
    ("chain", "text"),
    ("trace", "text"),
    ("class", "text"),
    ("dead", "text"),
    ("failed_at", "bigint"),
    ("reason", "text"),
];

/// Statements are written once, with names in braces for what differs:
///
/// | name | what it stands for |
/// | --- | --- |
/// | `{jobs}` `{ticks}` `{pauses}` `{schema}` | the tables |
/// | `{now}` | the time, in milliseconds since 1970, the same throughout a statement |
/// | `{max}` `{min}` | the larger, or the smaller, of two numbers |
/// | `{held}` | that the lease `$1`, `$2` is held, of the table `j` |
/// | `{leases1}` `{leases2}` | a table `l` of leases: the first, or the second, value |
/// | `{leased}` | that a lease of `l` is held, of the table `j` |
/// | `{incoming2}` | what selects the jobs that come in, from the second value on |
/// | `{old1}` | what selects the failures that are imported, from the first value on |
/// | `{out}` | what stands before a column of `j` that an UPDATE returns |
/// | `{by_ready}` `{by_lease}` `{by_due}` `{by_dead}` | by which index is searched |
/// | `{skip_locked}` | that rows that others hold are passed by |
#[derive(Debug)]
pub(super) struct Dialect {
    engine: Engine,
    table: String,
    schema: Option<String>,
    now: String,
    fenced: bool,
}

impl Dialect {
    pub(super) fn new(engine: Engine, options: SqlOptions) -> Result<Self, Error> {
        let (unfenced, offset) = options.testing();
        let table = options.table.unwrap_or_else(|| TABLE.to_owned());
        check("table", &table)?;
        if let Some(schema) = &options.schema {
            check("schema", schema)?;
            if !engine.has_schemas() {
                return Err(Error::invalid("SqlOptions::schema is for PostgreSQL: SQLite has one file, one schema"));
            }
        }
        let now = match offset {
            0 => engine.now().to_owned(),
            _ => format!("({} + ({offset}))", engine.now()),
        };
        Ok(Self { engine, table, schema: options.schema, now, fenced: !unfenced })
    }

    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    pub(super) fn table(&self) -> &str {
        &self.table
    }

    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The channel on which enqueued jobs are told of.
    pub(super) fn channel(&self) -> String {
        format!("{}_{}", self.schema.as_deref().unwrap_or("public"), self.table)
    }

    fn qualified(&self, suffix: &str) -> String {
        let table = &self.table;
        match &self.schema {
            Some(schema) => format!("\"{schema}\".\"{table}{suffix}\""),
            None => format!("\"{table}{suffix}\""),
        }
    }

    pub(super) fn render(&self, sql: &str) -> String {
        let mut out = String::with_capacity(sql.len() * 2);
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(&self.named(name));
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn named(&self, name: &str) -> String {
        match name {
            "jobs" => self.qualified(""),
            "ticks" => self.qualified("_ticks"),
            "pauses" => self.qualified("_pauses"),
            "schema" => self.qualified("_schema"),
            "now" => self.now.clone(),
            "max" => self.engine.larger().to_owned(),
            "min" => self.engine.smaller().to_owned(),
            "held" if self.fenced => {
                format!("j.id = $1 AND j.token = $2 AND {}", state_of("PROCESSING"))
            }
            "held" => "j.id = $1 AND $2 = $2".to_owned(),
            "leased" if self.fenced => {
                format!("j.id = l.id AND j.token = l.token AND {}", state_of("PROCESSING"))
            }
            "leased" => "j.id = l.id".to_owned(),
            "leases1" => self.engine.leases(1),
            "leases2" => self.engine.leases(2),
            "incoming2" => self.engine.rows(2, &INCOMING),
            "old1" => self.engine.rows(1, &OLD),
            "out" => self.engine.returned().to_owned(),
            "skip_locked" => self.engine.skip_locked().to_owned(),
            // The index that serves it: SQLite picks another one by itself, which is ten times slower with a backlog.
            other => match other.strip_prefix("by_") {
                Some(index) => self.engine.indexed_by(&format!("{}_{index}", self.table)),
                None => unreachable!("a statement names {{{other}}}"),
            },
        }
    }
}

impl Engine {
    const fn has_schemas(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => false,
            #[cfg(feature = "postgres")]
            Engine::Postgres => true,
        }
    }

    const fn now(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            // Stable within the statement, so that an index can be searched with it.
            #[cfg(feature = "postgres")]
            Engine::Postgres => "(extract(epoch FROM statement_timestamp()) * 1000)::bigint",
        }
    }

    const fn larger(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => "max",
            #[cfg(feature = "postgres")]
            Engine::Postgres => "greatest",
        }
    }

    const fn smaller(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => "min",
            #[cfg(feature = "postgres")]
            Engine::Postgres => "least",
        }
    }

    fn leases(self, first: usize) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => {
                format!("(SELECT value ->> 0 AS id, value ->> 1 AS token FROM json_each(${first})) AS l")
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres => format!("unnest(${first}::bigint[], ${}::bigint[]) AS l(id, token)", first + 1),
        }
    }

    fn rows(self, first: usize, columns: &[(&str, &str)]) -> String {
        let each = columns.iter().enumerate();
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => {
                let values: Vec<_> = each.map(|(at, (name, _))| format!("value ->> {at} AS {name}")).collect();
                format!("SELECT key AS place, {} FROM json_each(${first})", values.join(", "))
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres => {
                let arrays: Vec<_> = each.map(|(at, (_, kind))| format!("${}::{kind}[]", first + at)).collect();
                let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
                format!("SELECT * FROM unnest({}) WITH ORDINALITY AS i({}, place)", arrays.join(", "), names.join(", "))
            }
        }
    }

    fn indexed_by(self, index: &str) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => format!("INDEXED BY \"{index}\""),
            #[cfg(feature = "postgres")]
            Engine::Postgres => {
                let _ = index;
                String::new()
            }
        }
    }

    /// A lock of this name, until the transaction ends.
    pub(super) const fn lock(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres => Some("SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS locked"),
        }
    }

    /// The same, which many may hold at once: [`lock`](Self::lock) waits for them, and they for it.
    pub(super) const fn shared_lock(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres => {
                Some("SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))) AS locked")
            }
        }
    }

    /// Whether one who writes keeps all others from it.
    pub(super) const fn has_one_writer(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => true,
            #[cfg(feature = "postgres")]
            Engine::Postgres => false,
        }
    }

    /// Tells whoever listens on this channel.
    pub(super) const fn notify(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => None,
            #[cfg(feature = "postgres")]
            Engine::Postgres => Some("SELECT 1 FROM (SELECT pg_notify($1, '')) AS told"),
        }
    }

    /// What stands before a column that an UPDATE returns: SQLite knows no alias there, PostgreSQL asks for it.
    const fn returned(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => "",
            #[cfg(feature = "postgres")]
            Engine::Postgres => "j.",
        }
    }

    /// What asks for a plan, and in which column it is.
    #[cfg(feature = "testing")]
    pub(super) const fn explain(self) -> (&'static str, usize) {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
            #[cfg(feature = "postgres")]
            Engine::Postgres => ("EXPLAIN", 0),
        }
    }

    const fn skip_locked(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite => "",
            #[cfg(feature = "postgres")]
            Engine::Postgres => "FOR UPDATE SKIP LOCKED",
        }
    }
}

/// That `j`, which is searched by its number, is of this state: said so that no partial index answers it. Where few or no
/// jobs were of the state when the database last counted, it would search all that are now, for each one.
pub(super) fn state_of(state: &str) -> String {
    format!("j.state || '' = '{state}'")
}
