//! What happened to a call, attempt by attempt.

use std::{
    error::Error as StdError,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{Extensions, Response, StatusCode};

use super::attempts::Attempts;
use crate::{
    BoxError, Error,
    error::chain,
    fault::FaultKind,
    policy::{GrpcCode, Hint, Reach, StopReason},
};

/// What happened to a call: each attempt, and why there was not another.
///
/// In the extensions of a response that took more than one attempt, whose repeat was refused, or that came through a
/// second retry layer; and in every [`Error`](crate::Error) of a retry layer. Cheap to clone.
#[derive(Clone)]
pub struct CallReport(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) attempts: Attempts,
    pub(super) elapsed: Duration,
    pub(super) stop: Option<StopReason>,
    pub(super) retry_at: Option<SystemTime>,
    pub(super) unknown: bool,
    pub(super) stacked: bool,
    pub(super) first_held: Option<Duration>,
}

impl CallReport {
    /// What a stacked layer reports: it sent once, and an outer one knows the rest.
    pub(crate) fn of_stacked() -> Self {
        let stop = Some(StopReason::Stacked);
        let (attempts, elapsed) = (Attempts::default(), Duration::ZERO);
        Self::new(Inner { attempts, elapsed, stop, retry_at: None, unknown: false, stacked: true, first_held: None })
    }

    fn is_of_stacked(&self) -> bool {
        self.stop() == Some(StopReason::Stacked)
    }

    pub(super) fn new(inner: Inner) -> Self {
        CallReport(Arc::new(inner))
    }

    /// Of a call that another's layer made.
    #[cfg(feature = "tower-retry")]
    pub(crate) fn ended(
        attempts: Vec<AttemptReport>,
        elapsed: Duration,
        stop: Option<StopReason>,
        retry_at: Option<SystemTime>,
        unknown: bool,
    ) -> Self {
        let attempts = attempts.into();
        Self::new(Inner { attempts, elapsed, stop, retry_at, unknown, stacked: false, first_held: None })
    }

    #[cfg(any(feature = "testing", test))]
    pub(crate) fn of_test(attempts: Vec<AttemptReport>, stop: Option<StopReason>, at: Option<SystemTime>) -> Self {
        let elapsed = attempts.last().map_or(Duration::ZERO, |last| last.started + last.duration);
        let unknown = attempts.iter().any(|attempt| attempt.reach == Reach::Unknown);
        let attempts = attempts.into();
        Self::new(Inner { attempts, elapsed, stop, retry_at: at, unknown, stacked: false, first_held: None })
    }

    /// Every attempt, the first one first. Empty where nothing was sent.
    pub fn attempts(&self) -> &[AttemptReport] {
        &self.0.attempts
    }

    /// From the moment the call was first polled to its end.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// Why there was no further attempt; `None`: the last one succeeded.
    pub fn stop(&self) -> Option<StopReason> {
        self.0.stop
    }

    /// When the server allows the next attempt, where it said so.
    pub fn retry_at(&self) -> Option<SystemTime> {
        self.0.retry_at
    }

    /// Whether any attempt may have taken effect without an answer that says so. Before doing the work once more,
    /// look whether it is done already.
    pub fn outcome_unknown(&self) -> bool {
        self.0.unknown
    }

    /// How long the first try was held back because of what another call to the same provider was told
    /// ([`HoldScope::All`](crate::HoldScope::All)).
    pub fn first_held(&self) -> Option<Duration> {
        self.0.first_held
    }

    /// Whether a second retry layer was found below on this path, and sent once or refused.
    pub fn inner_stacked(&self) -> bool {
        self.0.stacked
    }
}

impl fmt::Debug for CallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallReport")
            .field("attempts", &self.0.attempts)
            .field("elapsed", &self.0.elapsed)
            .field("stop", &self.0.stop)
            .field("retry_at", &self.0.retry_at)
            .field("outcome_unknown", &self.0.unknown)
            .field("inner_stacked", &self.0.stacked)
            .field("first_held", &self.0.first_held)
            .finish()
    }
}

/// What happened to one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptReport {
    /// Its number; the first is 1.
    pub number: u32,
    /// When it was sent, counted from the start of the call.
    pub started: Duration,
    /// From then to its response head or failure.
    pub duration: Duration,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// How far it got. [`Reach::Unknown`] for an answer that does not say.
    pub reach: Reach,
    /// What the server asked for.
    pub hint: Hint,
    /// How long was waited after it; `None`: it was the last.
    pub wait: Option<Duration>,
    /// That wait was lengthened by what another call to the same provider was told.
    pub held: bool,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// With an answer of this status.
    Status(StatusCode),
    /// With an answer of gRPC that says this code.
    Grpc(GrpcCode),
    /// Without one.
    Fault(FaultKind),
    /// A block of code ([`redial::retry`](fn@crate::retry)) returned its value.
    Done,
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptOutcome::Status(status) => write!(f, "{}", status.as_str()),
            AttemptOutcome::Grpc(code) => f.write_str(code.as_str()),
            AttemptOutcome::Fault(kind) => f.write_str(kind.as_str()),
            AttemptOutcome::Done => f.write_str("done"),
        }
    }
}

/// Takes out a report that is not this call's, and says whether a stacked layer left it: this call's own absorbs that.
pub(super) fn take_foreign(extensions: &mut Extensions) -> bool {
    // Nearly every answer comes without extensions.
    let foreign = if extensions.is_empty() { None } else { extensions.remove::<CallReport>() };
    foreign.is_some_and(|report| report.stop() == Some(StopReason::Stacked))
}

/// Whether this failure came through a stacked layer.
pub(super) fn failed_stacked(error: &(dyn StdError + 'static)) -> bool {
    chain(error).filter_map(|error| error.downcast_ref::<Error>()?.report()).any(CallReport::is_of_stacked)
}

/// What a stacked layer hands on: the outer one reads the sign, and takes it out of an answer.
pub(super) fn mark_stacked<RB>(result: Result<Response<RB>, BoxError>) -> Result<Response<RB>, Error> {
    match result {
        Ok(mut response) => {
            response.extensions_mut().insert(CallReport::of_stacked());
            Ok(response)
        }
        Err(error) => Err(Error::of_inner(error).sent_once(CallReport::of_stacked())),
    }
}
