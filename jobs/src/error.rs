//! The one error of this crate.

use std::{error::Error as StdError, fmt};

use crate::{BoxError, JobId};

/// What went wrong with a store.
///
/// Opaque: ask it with `is_*()`. The database's own error is in [`source()`](StdError::source).
pub struct Error {
    kind: ErrorKind,
    source: Option<BoxError>,
}

#[derive(Debug)]
enum ErrorKind {
    /// The database failed.
    Store(&'static str),
    /// A value of the caller's breaks a rule.
    Invalid(String),
    /// A job cannot be written as JSON.
    Payload(&'static str),
    /// There is no such job.
    Missing(JobId),
    /// The job is in a state in which this cannot be done.
    State(JobId, &'static str),
}

impl Error {
    /// A store failed while it did this, such as `claim`.
    pub fn store(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self { kind: ErrorKind::Store(doing), source: Some(source.into()) }
    }

    /// A value breaks a rule: which one, which value, how to mend it.
    pub fn invalid(what: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Invalid(what.into()), source: None }
    }

    /// There is no job of this number.
    pub fn missing(id: JobId) -> Self {
        Self { kind: ErrorKind::Missing(id), source: None }
    }

    /// The job is in a state in which this cannot be done; `why` ends the sentence "job 7 …".
    pub fn state(id: JobId, why: &'static str) -> Self {
        Self { kind: ErrorKind::State(id, why), source: None }
    }

    pub(crate) fn payload(job_type: &'static str, error: serde_json::Error) -> Self {
        Self { kind: ErrorKind::Payload(job_type), source: Some(error.into()) }
    }

    /// The store failed: the database is away, locked or full, say. What was asked for may be asked again.
    pub fn is_store(&self) -> bool {
        matches!(self.kind, ErrorKind::Store(_))
    }

    /// A value of the caller's breaks a rule: asking again does not help.
    pub fn is_invalid(&self) -> bool {
        matches!(self.kind, ErrorKind::Invalid(_) | ErrorKind::Payload(_))
    }

    /// There is no such job.
    pub fn is_missing(&self) -> bool {
        matches!(self.kind, ErrorKind::Missing(_))
    }

    /// The job is in a state in which this cannot be done.
    pub fn is_state(&self) -> bool {
        matches!(self.kind, ErrorKind::State(..))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Store(doing) => write!(f, "the store of jobs failed to {doing}")?,
            ErrorKind::Invalid(what) => f.write_str(what)?,
            ErrorKind::Payload(job_type) => write!(f, "a job `{job_type}` cannot be written as JSON")?,
            ErrorKind::Missing(id) => write!(f, "there is no job {id}")?,
            ErrorKind::State(id, why) => write!(f, "job {id} {why}")?,
        }
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
