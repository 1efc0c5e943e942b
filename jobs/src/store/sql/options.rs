//! Where the table is.

use crate::Error;

/// How long the names of a table and of a schema may be: with a suffix they must fit PostgreSQL's 63 bytes.
const NAME: usize = 30;

/// Where the table is.
#[derive(Clone, Debug, Default)]
pub struct SqlOptions {
    pub(super) table: Option<String>,
    pub(super) schema: Option<String>,
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
    pub(super) const fn testing(&self) -> (bool, i64) {
        (self.unfenced, self.clock_offset_ms)
    }

    #[cfg(not(feature = "testing"))]
    pub(super) const fn testing(&self) -> (bool, i64) {
        (false, 0)
    }
}

/// A name that can break out of no quotes. SQLite keeps those that begin with `sqlite_` to itself.
pub(super) fn check(what: &str, name: &str) -> Result<(), Error> {
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
