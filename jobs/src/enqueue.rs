//! What is enqueued, and what came of it.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::{Error, Job, JobId, Unique};

/// How long a payload may be, in bytes.
const PAYLOAD: usize = 1024 * 1024;
/// How long the name of a type or a provider may be, in bytes.
pub(crate) const NAME: usize = 100;
/// How long a target may be, in bytes.
const TARGET: usize = 500;
/// How long a trace context may be, in bytes.
const TRACE: usize = 1024;

/// A job that is to be enqueued, as a store sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct NewJob {
    pub(crate) job_type: String,
    pub(crate) target: String,
    pub(crate) payload: String,
    pub(crate) provider: Option<String>,
    pub(crate) unique: Unique,
    pub(crate) delay: Duration,
    pub(crate) trace: Option<String>,
}

impl NewJob {
    /// This job, to be started at once.
    ///
    /// # Errors
    ///
    /// The job cannot be written as JSON or takes more than 1 MiB, or its type, target or provider is empty, too long or
    /// has control characters.
    pub fn of<J: Job>(job: &J) -> Result<Self, Error> {
        const { assert!(!J::MAX_RUNTIME.is_zero(), "a job's MAX_RUNTIME must be more than zero") };
        let payload = serde_json::to_string(job).map_err(|error| Error::payload(J::TYPE, error))?;
        let new = Self::json(J::TYPE.to_owned(), job.target(), payload)?.unique(J::UNIQUE);
        match J::PROVIDER {
            Some(provider) => new.provider(provider),
            None => Ok(new),
        }
    }

    /// A job whose payload is JSON already.
    ///
    /// # Errors
    ///
    /// As of [`of`](Self::of); or it is no JSON.
    pub fn raw(
        job_type: impl Into<String>,
        target: impl Into<String>,
        payload: impl Into<String>,
    ) -> Result<Self, Error> {
        let payload = payload.into();
        let new = Self::json(job_type.into(), target.into(), payload)?;
        match serde_json::from_str::<serde::de::IgnoredAny>(&new.payload) {
            Ok(_) => Ok(new),
            Err(error) => Err(Error::invalid(format!("the payload of a job `{}` is no JSON: {error}", new.job_type))),
        }
    }

    /// The payload is JSON.
    fn json(job_type: String, target: String, payload: String) -> Result<Self, Error> {
        check("type", &job_type, NAME)?;
        check("target", &target, TARGET)?;
        if payload.len() > PAYLOAD {
            return Err(Error::invalid(format!(
                "the payload of a job `{job_type}` takes {} bytes, and may take {PAYLOAD}: store a reference instead",
                payload.len()
            )));
        }
        let (unique, delay) = (Unique::Active, Duration::ZERO);
        Ok(Self { job_type, target, payload, provider: None, unique, delay, trace: None })
    }

    /// The provider that it depends on.
    ///
    /// # Errors
    ///
    /// The name is empty, longer than 100 bytes, or has control characters.
    pub fn provider(mut self, provider: impl Into<String>) -> Result<Self, Error> {
        let provider = provider.into();
        check("provider", &provider, NAME)?;
        self.provider = Some(provider);
        Ok(self)
    }

    /// When it is not enqueued because of another one. [`Unique::Active`] by default.
    pub fn unique(mut self, unique: Unique) -> Self {
        self.unique = unique;
        self
    }

    /// It starts no earlier than after this wait, by the clock of the database.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// It starts no earlier than at this time, by our clock.
    pub fn not_before(self, time: SystemTime) -> Self {
        let delay = time.duration_since(SystemTime::now()).unwrap_or_default();
        self.delay(delay)
    }

    /// The trace context that travels with it, such as a `traceparent`. One longer than 1 KiB is left out.
    pub fn trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = Some(trace.into()).filter(|trace| trace.len() <= TRACE && !trace.contains('\0'));
        self
    }

    /// The name of its type.
    pub fn job_type(&self) -> &str {
        &self.job_type
    }

    /// What it is for.
    pub fn target(&self) -> &str {
        &self.target
    }
}

// The payload may be personal.
impl std::fmt::Debug for NewJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewJob")
            .field("job_type", &self.job_type)
            .field("target", &self.target)
            .field("provider", &self.provider)
            .field("unique", &self.unique)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// A name that a table, a log and a terminal can bear.
pub(crate) fn check(what: &str, name: &str, longest: usize) -> Result<(), Error> {
    let wrong = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > longest {
        format!("takes {} bytes, and may take {longest}", name.len())
    } else if name.chars().any(char::is_control) {
        "has control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("a job's {what} {wrong}")))
}

/// What came of enqueueing a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It is enqueued, under this number.
    New(JobId),
    /// It is not: this one is active for its target. Or, where a periodic batch asks, it has failed and recovery is to repair
    /// it.
    AlreadyActive(JobId),
    /// It is not: this one has COMPLETED, and its type's [`Unique`] says that this is enough.
    AlreadyCompleted(JobId),
}

impl Enqueued {
    /// The job that stands for the target now.
    pub fn id(self) -> JobId {
        match self {
            Enqueued::New(id) | Enqueued::AlreadyActive(id) | Enqueued::AlreadyCompleted(id) => id,
        }
    }

    /// Whether this call enqueued it.
    pub fn is_new(self) -> bool {
        matches!(self, Enqueued::New(_))
    }
}

/// Where a job came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Origin {
    /// Somebody enqueued it.
    Enqueued,
    /// Recovery did, in place of one that failed.
    Recovered,
    /// A person revived a DEAD target: failures are counted anew from here.
    Revived,
    /// It was brought in from an older table.
    Imported,
}

impl Origin {
    const ALL: [Origin; 4] = [Origin::Enqueued, Origin::Recovered, Origin::Revived, Origin::Imported];

    /// As stored, such as `RECOVERED`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Enqueued => "ENQUEUED",
            Origin::Recovered => "RECOVERED",
            Origin::Revived => "REVIVED",
            Origin::Imported => "IMPORTED",
        }
    }

    /// The origin of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.as_str() == name)
    }
}
