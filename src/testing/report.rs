//! Reports of calls, for the tests of code that reads them.

use std::time::{Duration, SystemTime};

use http::StatusCode;

use crate::{AttemptOutcome, AttemptReport, CallReport, FaultKind, Hint, Reach, StopReason};

/// Builds a [`CallReport`], attempt by attempt.
///
/// ```
/// use redial::testing::ReportBuilder;
/// use redial::{FaultKind, StopReason};
/// use std::time::Duration;
///
/// let report = ReportBuilder::new()
///     .answered(503)
///     .wait(Duration::from_millis(200))
///     .failed(FaultKind::Reset)
///     .stop(StopReason::Attempts)
///     .build();
/// assert_eq!(report.attempts().len(), 2);
/// assert!(report.outcome_unknown());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ReportBuilder {
    attempts: Vec<AttemptReport>,
    stop: Option<StopReason>,
    retry_at: Option<SystemTime>,
}

impl ReportBuilder {
    /// Without an attempt, and without a reason for there being no other.
    pub fn new() -> Self {
        Self::default()
    }

    /// An attempt that was answered with this status, by an answer that says what became of it.
    ///
    /// # Panics
    ///
    /// Where the number is no status.
    #[track_caller]
    pub fn answered(self, status: u16) -> Self {
        let Ok(status) = StatusCode::from_u16(status) else { panic!("{status} is no status") };
        self.attempt(AttemptOutcome::Status(status), Reach::Answered)
    }

    /// An attempt that failed, of unknown outcome.
    pub fn failed(self, kind: FaultKind) -> Self {
        self.attempt(AttemptOutcome::Fault(kind), Reach::Unknown)
    }

    /// An attempt that failed, and whose request was provably not processed.
    pub fn unsent(self, kind: FaultKind) -> Self {
        self.attempt(AttemptOutcome::Fault(kind), Reach::NotSent)
    }

    /// An attempt with this outcome and reach.
    pub fn attempt(mut self, outcome: AttemptOutcome, reach: Reach) -> Self {
        let after = |last: &AttemptReport| last.started + last.duration + last.wait.unwrap_or_default();
        let attempt = AttemptReport {
            number: u32::try_from(self.attempts.len() + 1).unwrap_or(u32::MAX),
            started: self.attempts.last().map_or(Duration::ZERO, after),
            duration: Duration::ZERO,
            outcome,
            reach,
            hint: Hint::default(),
            wait: None,
            held: false,
        };
        self.attempts.push(attempt);
        self
    }

    /// How long the latest attempt took. Default: no time.
    pub fn took(self, time: Duration) -> Self {
        self.latest(|attempt| attempt.duration = time)
    }

    /// How long was waited after the latest attempt.
    pub fn wait(self, time: Duration) -> Self {
        self.latest(|attempt| attempt.wait = Some(time))
    }

    /// What the server asked for in its answer to the latest attempt.
    pub fn hint(self, hint: Hint) -> Self {
        self.latest(|attempt| attempt.hint = hint)
    }

    /// Why there was no further attempt. Default: the last one succeeded.
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// When the server allows the next attempt.
    pub fn retry_at(mut self, time: SystemTime) -> Self {
        self.retry_at = Some(time);
        self
    }

    /// The report. Its time is up to the end of the last attempt, and its outcome unknown where that of any attempt is.
    pub fn build(self) -> CallReport {
        CallReport::of_test(self.attempts, self.stop, self.retry_at)
    }

    fn latest(mut self, change: impl FnOnce(&mut AttemptReport)) -> Self {
        if let Some(latest) = self.attempts.last_mut() {
            change(latest);
        }
        self
    }
}
