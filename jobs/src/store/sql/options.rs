//! Where the table is, and how the two databases' words differ.

use crate::Error;

use super::db::Engine;

/// How long the names of a table and of a schema may be: with a suffix they must fit PostgreSQL's 63 bytes.
const NAME: usize = 30;
/// The name in the migration files.
pub(super) const TABLE: &str = "redial_jobs";

/// Where the table is.
#[derive(Clone, Debug, Default)]
pub struct SqlOptions {
    table: Option<String>,
    schema: Option<String>,
    #[cfg(feature = "testing")]
    unfenced: bool,
    #[cfg(feature = "testing")]
    clock_offset_ms: i64,
}

impl SqlOptions {
    /// The table `redial_jobs`, in the schema that the connection names first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another name: lower-case letters, digits and `_`, a letter first, 30 at most, and not begin with
    /// `sqlite_`. Its indexes and the two small tables
    /// beside it begin with it.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self
    }

    /// The schema that it lies in, named by the same rules. PostgreSQL only; it must exist.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// For tests: whoever has once claimed a job may write to it for ever. Shows what fencing prevents.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn unfenced(mut self) -> Self {
        self.unfenced = true;
        self
    }

    /// For tests: a clock that is set forward by so much, or back.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn clock_offset_ms(mut self, offset: i64) -> Self {
        self.clock_offset_ms = offset;
        self
    }

    #[cfg(feature = "testing")]
    const fn testing(&self) -> (bool, i64) {
        (self.unfenced, self.clock_offset_ms)
    }

    #[cfg(not(feature = "testing"))]
    const fn testing(&self) -> (bool, i64) {
        (false, 0)
    }
}

/// Statements are written once, with names in braces for what differs:
///
/// | name | what it stands for |
/// | --- | --- |
/// | `{jobs}` `{ticks}` `{pauses}` `{schema}` | the tables |
/// | `{now}` | the time, in milliseconds since 1970, the same throughout a statement |
/// | `{max}` | the larger of two numbers |
/// | `{held}` | that the lease `$1`, `$2` is held, of the table `j` |
/// | `{leases1}` `{leases2}` | a table `l` of leases: the first, or the second, value |
/// | `{leased}` | that a lease of `l` is held, of the table `j` |
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

/// A name that can break out of no quotes. SQLite keeps those that begin with `sqlite_` to itself.
fn check(what: &str, name: &str) -> Result<(), Error> {
    let letter_first = name.starts_with(|first: char| first.is_ascii_lowercase());
    let plain = name.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_');
    if letter_first && plain && name.len() <= NAME && !name.starts_with("sqlite_") {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "SqlOptions::{what} is {name:?}: it must be lower-case letters, digits and `_`, a letter first, {NAME} at most, \
         and not begin with `sqlite_`"
    )))
}
