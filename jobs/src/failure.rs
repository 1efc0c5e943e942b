//! How a job failed.

use std::{error::Error as StdError, time::SystemTime};

use redial::{CallReport, Reach, StopReason};
use serde::{Deserialize, Serialize};

use crate::{DeadReason, FailureClass, State};

/// How many attempts of HTTP are stored of one job: the first ones.
const ATTEMPTS: usize = 64;
/// How many links of a source chain are followed.
const LINKS: usize = 64;

/// How a run of a job failed: what its row will say.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    class: FailureClass,
    reason: String,
    attempts: Vec<AttemptRecord>,
    outcome_unknown: bool,
    not_before: Option<SystemTime>,
}

impl Failure {
    /// A failure of this class, in words. They are stored in one line, at most 300 characters, and without the userinfo and
    /// query of any URL.
    pub fn new(class: FailureClass, reason: impl Into<String>) -> Self {
        let reason = redial::redacted(&reason.into());
        Self { class, reason, attempts: Vec::new(), outcome_unknown: false, not_before: None }
    }

    /// What a handler's error says. The first [`redial::Error`] in its source chain hands its call over: attempts, class,
    /// whether the outcome is unknown, and until when the server wants to be left alone. Any other error is
    /// unclassified.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let chain = std::iter::successors(Some(error), |error| (*error).source()).take(LINKS);
        match chain.into_iter().find_map(|error| error.downcast_ref::<redial::Error>()) {
            Some(call) => Self::of_call(call, error.to_string()),
            None => Self::new(FailureClass::Unclassified, error.to_string()),
        }
    }

    fn of_call(call: &redial::Error, reason: String) -> Self {
        match call.report() {
            Some(report) => Self::of_report(report, reason),
            // No retry layer saw it, so that nothing is known of how far it got but that no connection was made.
            None => Self::new(FailureClass::Exhausted, reason).unknown(!call.is_connect() && !call.is_not_ready()),
        }
    }

    /// What the report of a call says whose answer is a failure: a 503 after the last attempt, say.
    pub fn of_report(report: &CallReport, reason: impl Into<String>) -> Self {
        let class = match report.stop() {
            Some(StopReason::Permanent) => FailureClass::Business,
            // A call that may not be repeated, or was not for long enough: later, a new call may work.
            _ => FailureClass::Exhausted,
        };
        let mut failure = Self::new(class, reason);
        failure.attempts = report.attempts().iter().take(ATTEMPTS).map(AttemptRecord::of).collect();
        failure.outcome_unknown = report.outcome_unknown() || report.stop() == Some(StopReason::Verify);
        failure.not_before = report.retry_at();
        failure
    }

    /// Whether the work may have taken effect although nothing says so (J13).
    pub fn unknown(mut self, unknown: bool) -> Self {
        self.outcome_unknown = unknown;
        self
    }

    /// The successor starts no earlier than this (J10), by our clock. More than a year away is no wait but a mistake: the
    /// job is DEAD at once ([`DeadReason::PutOff`]), so that a person hears of it.
    pub fn not_before(mut self, time: SystemTime) -> Self {
        self.not_before = Some(time);
        self
    }

    /// The attempts of HTTP that were made, 64 at most.
    pub fn attempts(mut self, attempts: impl IntoIterator<Item = AttemptRecord>) -> Self {
        self.attempts = attempts.into_iter().take(ATTEMPTS).collect();
        self
    }

    /// Of which kind it is.
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// What happened, in words.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The attempts of HTTP that were made.
    pub fn history(&self) -> &[AttemptRecord] {
        &self.attempts
    }

    /// Whether the work may have taken effect although nothing says so.
    pub fn outcome_unknown(&self) -> bool {
        self.outcome_unknown
    }

    /// The earliest start of the successor.
    pub fn earliest(&self) -> Option<SystemTime> {
        self.not_before
    }
}

/// What became of a failing job.
#[must_use = "a job that is DEAD must be told of, and where the lease is lost, somebody else has it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// FAILED: recovery enqueues a successor.
    Recoverable {
        /// Failures since the last COMPLETED, this one included, ghosts not counted.
        failures: u32,
    },
    /// DEAD: nobody will repair it.
    Dead {
        /// Why.
        reason: DeadReason,
        /// Failures since the last COMPLETED, this one included, ghosts not counted.
        failures: u32,
    },
    /// Nothing was written: the lease is lost.
    Lost,
}

impl Failed {
    /// The state that was written. `None`: the lease is lost.
    pub fn state(self) -> Option<State> {
        match self {
            Failed::Recoverable { .. } => Some(State::Failed),
            Failed::Dead { .. } => Some(State::Dead),
            Failed::Lost => None,
        }
    }
}

/// One attempt of HTTP, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Its number; the first is 1.
    pub number: u32,
    /// When it was sent, in milliseconds from the start of the call.
    pub started_ms: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How it ended: a status, a code of gRPC, or a fault.
    pub outcome: String,
    /// Whether it may have taken effect without saying so.
    #[serde(default)]
    pub unknown: bool,
    /// How long was waited after it, in milliseconds; `None`: it was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

impl AttemptRecord {
    fn of(attempt: &redial::AttemptReport) -> Self {
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            number: attempt.number,
            started_ms: ms(attempt.started),
            took_ms: ms(attempt.duration),
            outcome: attempt.outcome.to_string(),
            unknown: matches!(attempt.reach, Reach::Unknown),
            wait_ms: attempt.wait.map(ms),
        }
    }
}
