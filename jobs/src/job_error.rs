//! What a handler says by itself of how it ended.

use std::{
    error::Error as StdError,
    fmt::{self, Write as _},
    time::{Duration, SystemTime},
};

use http::{Response, StatusCode};
use redial::{CallReport, StopReason};

use crate::{BoxError, Failure, FailureClass};

/// How many links of a source chain are followed.
const LINKS: usize = 64;

/// What a handler says by itself of how it ended, where the error of a call does not say it.
///
/// A handler may return any error; one of these anywhere in its source chain is understood, and so is
/// [`redial::Error`]. All others are unclassified: a failure that recovery repairs.
///
/// ```
/// use redial_jobs::JobError;
///
/// fn check(pages: usize) -> Result<(), JobError> {
///     match pages {
///         0 => Err(JobError::business("the document has no pages")),
///         _ => Ok(()),
///     }
/// }
/// # assert!(check(0).is_err());
/// ```
pub struct JobError {
    kind: Kind,
    source: Option<BoxError>,
}

enum Kind {
    Failed(Failure),
    /// It may have been done already.
    Verify(Failure),
    Snooze(Duration),
    /// What lies beneath says it.
    Source,
}

impl JobError {
    /// It would fail every time: the job is DEAD at once, with this reason (J9). Where its work may have been done
    /// already, it is verified first.
    pub fn business(reason: impl Into<String>) -> Self {
        Self::failed(Failure::new(FailureClass::Business, reason))
    }

    /// Later it may work: recovery repairs it. Nothing was sent that may have taken effect; else say so with
    /// [`failed`](Self::failed) and [`Failure::unknown`].
    pub fn transient(reason: impl Into<String>) -> Self {
        Self::failed(Failure::new(FailureClass::Exhausted, reason))
    }

    /// It may have been done already, by an attempt whose answer was lost: it is verified at once
    /// ([`Job::verify`](crate::Job::verify)). Where it was done the job is COMPLETED, and else it failed and recovery
    /// repairs it (J13).
    pub fn verify(reason: impl Into<String>) -> Self {
        let failure = Failure::new(FailureClass::Exhausted, reason).unknown(true);
        Self { kind: Kind::Verify(failure), source: None }
    }

    /// This failure.
    pub fn failed(failure: Failure) -> Self {
        Self { kind: Kind::Failed(failure), source: None }
    }

    /// Not now: the same job again after this wait, without counting as an attempt. Not for a provider that failed, which
    /// is what attempts are counted for. At least 100 ms.
    pub fn snooze(wait: Duration) -> Self {
        Self { kind: Kind::Snooze(wait), source: None }
    }

    /// What an answer says that is no success; a success is `Ok`.
    ///
    /// A call whose attempts are spent on a 503 *returns* that 503: a handler that does not look at it would call its
    /// job done. What the call's report says holds; without a report, 4xx are business failures but for 408, 425 and 429,
    /// and a 5xx may have taken effect.
    ///
    /// # Errors
    ///
    /// The failure, for any status but 2xx.
    pub fn of_answer<B>(response: &Response<B>) -> Result<(), Self> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = match status.canonical_reason() {
            Some(words) => format!("answered {} {words}", status.as_str()),
            None => format!("answered {}", status.as_str()),
        };
        let kind = match response.extensions().get::<CallReport>() {
            Some(report) if report.stop() == Some(StopReason::Verify) => {
                Kind::Verify(Failure::of_report(report, reason))
            }
            Some(report) if report.stop().is_some() => Kind::Failed(Failure::of_report(report, reason)),
            _ => Kind::Failed(by_status(status, reason)),
        };
        Err(Self { kind, source: None })
    }

    /// With the error that led to it.
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

fn by_status(status: StatusCode, reason: String) -> Failure {
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    match status.is_server_error() {
        true => Failure::new(FailureClass::Exhausted, reason).unknown(true),
        false if passes => Failure::new(FailureClass::Exhausted, reason),
        false => Failure::new(FailureClass::Business, reason),
    }
}

impl From<redial::Error> for JobError {
    fn from(error: redial::Error) -> Self {
        Self { kind: Kind::Source, source: Some(error.into()) }
    }
}

impl From<crate::Error> for JobError {
    fn from(error: crate::Error) -> Self {
        Self { kind: Kind::Source, source: Some(error.into()) }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Failed(failure) | Kind::Verify(failure) => f.write_str(failure.reason())?,
            Kind::Snooze(wait) => write!(f, "put off for {wait:?}")?,
            Kind::Source => {}
        }
        let Some(source) = &self.source else { return Ok(()) };
        // The text is not ours, so it may hold the secrets of a URL.
        let mut text = String::new();
        write!(text, "{source}")?;
        let text = redial::redacted(&text);
        match &self.kind {
            Kind::Source => f.write_str(&text),
            _ => write!(f, ": {text}"),
        }
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobError({self})")
    }
}

impl StdError for JobError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// How a handler ended that did not end well.
pub(crate) enum Ending {
    Failed(Failure),
    /// The same, but it may have been done: this is looked at first.
    Doubtful(Failure),
    Snoozed(Duration),
}

impl Ending {
    /// What its error says: the first of ours in the chain that says anything.
    pub(crate) fn of(error: &(dyn StdError + 'static)) -> Self {
        for link in std::iter::successors(Some(error), |error| (*error).source()).take(LINKS) {
            match link.downcast_ref::<JobError>().map(|error| &error.kind) {
                Some(Kind::Failed(failure)) => return Ending::Failed(failure.clone()),
                Some(Kind::Verify(failure)) => return Ending::Doubtful(failure.clone()),
                Some(Kind::Snooze(wait)) => return Ending::Snoozed(*wait),
                Some(Kind::Source) | None => {}
            }
            if let Some(call) = link.downcast_ref::<redial::Error>() {
                // In the words of whoever wrapped it.
                let failure = Failure::of(error);
                return match call.stop() {
                    Some(StopReason::Verify) => Ending::Doubtful(failure),
                    _ => Ending::Failed(failure),
                };
            }
        }
        // Nobody said how far it got. The text is not ours, so it may hold the query of a URL.
        let reason = redial::redacted(&error.to_string());
        Ending::Failed(Failure::new(FailureClass::Unclassified, reason).unknown(true))
    }

    /// When `Job::verify` failed: until when the provider wants to be left alone still holds.
    pub(crate) fn of_verify(error: &(dyn StdError + 'static)) -> Failure {
        let (reason, attempts, earliest): (_, Vec<_>, Option<SystemTime>) = match Self::of(error) {
            Ending::Failed(failure) | Ending::Doubtful(failure) => {
                (failure.reason().to_owned(), failure.history().to_vec(), failure.earliest())
            }
            Ending::Snoozed(wait) => (error.to_string(), Vec::new(), SystemTime::now().checked_add(wait)),
        };
        let failure = Failure::new(FailureClass::Unverified, format!("could not be verified: {reason}"));
        let failure = failure.attempts(attempts).unknown(true);
        match earliest {
            Some(earliest) => failure.not_before(earliest),
            None => failure,
        }
    }
}
