//! The one error of this crate.

use std::{
    error::Error as StdError,
    fmt,
    time::{Duration, SystemTime},
};

use crate::{
    BoxError,
    fault::{Fault, FaultKind, Links, peek},
    layers::NotResumed,
    policy::{Plan, StopReason},
    redact::Redacted,
    retry::{BodyFailed, CallReport},
};

/// How many links of a source chain are followed: no real chain is longer, and a circular one must end.
const LINKS: usize = 64;

/// The final failure of a call.
///
/// Opaque: ask it with `is_timeout()`, `is_connect()` and the like, which answer the same whether a retry took place
/// or not. The client's own error is untouched in [`source()`](StdError::source), and
/// [`find_source`](Self::find_source) reaches it by type.
///
/// `Display` says provider, operation, what happened, attempts, elapsed time and the last cause, in one line and
/// without the userinfo and query of any URL. It names the cause although `source()` has it too: this one line is what
/// ends up in a log. `Debug` shows no more than that; in particular it does not print the client's own error, whose
/// `Debug` may hold secrets.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    plan: Option<Plan>,
    report: Option<CallReport>,
    fault: Option<Fault>,
    source: Option<BoxError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The inner service failed to become ready.
    NotReady,
    /// The last attempt failed.
    Failed,
    /// The last attempt of a block of code failed.
    Block,
    /// An attempt failed below a layer that stands within the attempt: what lies beneath says what happened.
    Attempt,
    /// The total of a retry layer.
    Total(Duration),
    /// An outer deadline.
    Deadline,
    /// A limit of a timeout layer.
    Limit(Limit),
    /// The response body failed below a timeout layer.
    Body,
    /// A second retry layer that was told to refuse.
    Stacked,
    /// The provider asked to be left alone for longer than the deadline allows; nothing was sent.
    Held,
    /// An answer of gRPC that failed.
    #[cfg(feature = "grpc")]
    Answered(crate::policy::GrpcCode),
    /// The body said that it can be sent again, and then could not be.
    Unrepeatable,
}

impl Kind {
    /// The others are a reason themselves.
    const fn names_its_stop(self) -> bool {
        match self {
            Kind::Failed | Kind::Block => true,
            #[cfg(feature = "grpc")]
            Kind::Answered(_) => true,
            _ => false,
        }
    }
}

/// A limit of a timeout layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Head(Duration),
    Total(Duration),
    BodyIdle(Duration),
}

impl Limit {
    pub(crate) const fn time(self) -> Duration {
        match self {
            Limit::Head(time) | Limit::Total(time) | Limit::BodyIdle(time) => time,
        }
    }
}

impl Error {
    fn of(kind: Kind, source: Option<BoxError>) -> Self {
        // An error of ours stays one error, however many of our layers it passes.
        let fault = source.as_deref().map(|error| Fault::read(error));
        Error(Box::new(Inner { kind, plan: None, report: None, fault, source }))
    }

    pub(crate) fn not_ready(source: BoxError) -> Self {
        match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(source) => Self::of(Kind::NotReady, Some(source)),
        }
    }

    /// The failure of a service below a timeout layer or a stacked retry layer.
    pub(crate) fn of_inner(source: BoxError) -> Self {
        match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(source) => Self::of(Kind::Failed, Some(source)),
        }
    }

    /// The failure of a service below a layer that stands within an attempt. The retry layer above reads the client's
    /// own error, which may prove more than this one knows.
    pub(crate) fn of_attempt(source: BoxError) -> Self {
        match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(source) => Self::of(Kind::Attempt, Some(source)),
        }
    }

    /// The response body failed within the attempt that it was read in: a failure like that of the attempt's head, but
    /// one that proves nothing.
    pub(crate) fn of_broken_attempt(source: BoxError) -> Self {
        let fault = Some(Fault::of_broken_body(&*source));
        Error(Box::new(Inner { kind: Kind::Body, plan: None, report: None, fault, source: Some(source) }))
    }

    pub(crate) fn body(source: BoxError) -> Self {
        match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(source) => {
                let fault = Some(Fault::response_body_failed(&*source));
                Error(Box::new(Inner { kind: Kind::Body, plan: None, report: None, fault, source: Some(source) }))
            }
        }
    }

    pub(crate) fn limit(limit: Limit) -> Self {
        Self::of(Kind::Limit(limit), None)
    }

    pub(crate) fn stacked() -> Self {
        Self::of(Kind::Stacked, None)
    }

    pub(crate) fn held() -> Self {
        Self::of(Kind::Held, None)
    }

    pub(crate) fn unrepeatable() -> Self {
        Self::of(Kind::Unrepeatable, None)
    }

    /// The end of a call that was answered with this code.
    #[cfg(feature = "grpc")]
    pub(crate) fn answered(code: crate::policy::GrpcCode, report: CallReport) -> Self {
        let mut error = Self::of(Kind::Answered(code), None);
        error.0.report = Some(report);
        error
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.0.kind, Kind::Answered(_))
    }

    pub(crate) fn total(total: Duration) -> Self {
        Self::of(Kind::Total(total), None)
    }

    pub(crate) fn deadline() -> Self {
        Self::of(Kind::Deadline, None)
    }

    pub(crate) fn failed(source: BoxError, fault: Fault) -> Self {
        Error(Box::new(Inner {
            kind: Kind::Failed,
            plan: None,
            report: None,
            fault: Some(fault),
            source: Some(source),
        }))
    }

    /// `fault`: `None` for an answer.
    pub(crate) fn block(source: BoxError, fault: Option<Fault>) -> Self {
        Error(Box::new(Inner { kind: Kind::Block, plan: None, report: None, fault, source: Some(source) }))
    }

    pub(crate) fn with_call(mut self, plan: Plan, report: CallReport) -> Self {
        self.0.plan = Some(plan);
        self.0.report = Some(report);
        self
    }

    #[cfg(feature = "tower-retry")]
    pub(crate) fn attach_call(&mut self, plan: Plan, report: CallReport) {
        self.0.plan = Some(plan);
        self.0.report = Some(report);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn with_report(mut self, report: CallReport) -> Self {
        self.0.report = Some(report);
        self
    }

    /// A stacked retry layer handed it on. A report that is there already says more.
    pub(crate) fn sent_once(mut self, report: CallReport) -> Self {
        self.0.report.get_or_insert(report);
        self
    }

    /// A timeout ended it: the last attempt's, the total, a deadline, a limit of a timeout layer, or one of the
    /// client's own.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, Kind::Total(_) | Kind::Deadline | Kind::Limit(_)) || self.fault_is(FaultKind::Timeout)
    }

    /// The connection could not be made: refused, unreachable, not resolved, or no agreement on TLS.
    pub fn is_connect(&self) -> bool {
        [FaultKind::Connect, FaultKind::Dns, FaultKind::Tls].into_iter().any(|kind| self.fault_is(kind))
    }

    /// The total timeout of a retry layer, or an outer [`Deadline`](crate::Deadline), ended it: it passed, or the next
    /// wait would have crossed it.
    pub fn is_deadline(&self) -> bool {
        matches!(self.0.kind, Kind::Total(_) | Kind::Deadline) || self.stop() == Some(StopReason::Deadline)
    }

    /// An outer [`Deadline`](crate::Deadline) passed, earlier than the retry layer's own total.
    pub fn is_outer_deadline(&self) -> bool {
        self.0.kind == Kind::Deadline
    }

    /// All attempts were made, and the last failure was one that passes: later it may work.
    pub fn is_exhausted(&self) -> bool {
        self.stop() == Some(StopReason::Attempts)
    }

    /// The failure does not pass by itself, or nobody listed it as passing.
    pub fn is_permanent(&self) -> bool {
        self.stop() == Some(StopReason::Permanent)
    }

    /// The inner service failed to become ready.
    pub fn is_not_ready(&self) -> bool {
        self.0.kind == Kind::NotReady
    }

    /// A second retry layer on the path refused
    /// ([`RetryLayer::refuse_stacking`](crate::RetryLayer::refuse_stacking)).
    pub fn is_stacked(&self) -> bool {
        self.0.kind == Kind::Stacked || self.find_source::<Error>().is_some_and(Error::is_stacked)
    }

    /// The response body failed or was cut off, after its head had been handed on.
    pub fn is_body(&self) -> bool {
        matches!(self.0.kind, Kind::Body | Kind::Limit(Limit::BodyIdle(_)))
    }

    /// Why there was no further attempt. `None` for an error that no retry layer saw.
    pub fn stop(&self) -> Option<StopReason> {
        self.0.report.as_ref()?.stop()
    }

    /// What happened, attempt by attempt. `None` for an error that no retry layer saw.
    pub fn report(&self) -> Option<&CallReport> {
        self.0.report.as_ref()
    }

    /// What went wrong on the wire, read from the client's error. `None` where there is no such error.
    pub fn fault(&self) -> Option<Fault> {
        self.0.fault
    }

    /// When the server allows the next attempt, where it said so.
    pub fn retry_at(&self) -> Option<SystemTime> {
        self.0.report.as_ref()?.retry_at()
    }

    /// The first error of this type in the source chain, such as the client's own; also one within an `io::Error`, which
    /// `source()` steps over. A connect failure of hyper-util
    /// has no `hyper::Error` in it: nothing of HTTP had begun.
    pub fn find_source<T: StdError + 'static>(&self) -> Option<&T> {
        let source = self.source()?;
        // Where the client loses the error of the request's body, that comes first and the client's own beside it.
        let client = source.downcast_ref().and_then(BodyFailed::client);
        Links::of(source).chain(client.into_iter().flat_map(Links::of)).find_map(peek)
    }

    /// Whether this is the end of another call, made by somebody below for a purpose of its own: what its error proves,
    /// it proves of that call alone. A stacked layer's is of the same call.
    pub(crate) fn is_of_another_call(&self) -> bool {
        self.stop().is_some_and(|stop| stop != StopReason::Stacked)
    }

    /// The same error, by the limit that passed: the deadline that a retry layer below ran into was this one's.
    pub(crate) fn by_limit(mut self, limit: Limit) -> Self {
        if self.0.kind == Kind::Deadline {
            self.0.kind = Kind::Limit(limit);
        }
        self
    }

    /// Whether it only hands on what lies beneath.
    pub(crate) fn is_of_attempt(&self) -> bool {
        self.0.kind == Kind::Attempt
    }

    /// Whether the time of a call is over, and not only that of what the call was waiting for.
    pub(crate) fn ends_the_call(&self) -> bool {
        matches!(self.0.kind, Kind::Total(_) | Kind::Deadline | Kind::Limit(Limit::Total(_)))
    }

    fn fault_is(&self, kind: FaultKind) -> bool {
        self.0.fault.is_some_and(|fault| fault.kind() == kind)
    }
}

pub(crate) fn chain<'a>(
    first: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> + 'a {
    std::iter::successors(Some(first), |error| (*error).source()).take(LINKS)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(plan) = &inner.plan {
            write!(f, "{} {}: ", Redacted(plan.provider()), Redacted(plan.operation()))?;
        }
        match inner.kind {
            Kind::NotReady => f.write_str("the inner service failed to become ready")?,
            Kind::Failed | Kind::Attempt => f.write_str("the request failed")?,
            Kind::Block => f.write_str("the block failed")?,
            #[cfg(feature = "grpc")]
            Kind::Answered(code) => write!(f, "the call was answered {code}")?,
            Kind::Total(total) => write!(f, "the call's total of {total:?} is over")?,
            Kind::Deadline => f.write_str("the caller's deadline has passed")?,
            Kind::Limit(Limit::Head(time)) => write!(f, "no response head within {time:?}")?,
            Kind::Limit(Limit::Total(time)) => write!(f, "the response did not end within {time:?}")?,
            Kind::Limit(Limit::BodyIdle(time)) => write!(f, "the response body was silent for {time:?}")?,
            Kind::Body => {
                f.write_str("the response body failed")?;
                if let Some(given_up) = self.source().and_then(|source| source.downcast_ref::<NotResumed>()) {
                    write!(f, ", {given_up}")?;
                }
            }
            Kind::Held => {
                f.write_str("held back: the provider asked to be left alone for longer than the call may take")?
            }
            Kind::Unrepeatable => f.write_str("the request's body could not be sent again")?,
            Kind::Stacked => f.write_str("refused: the request has already passed a retry layer on this path")?,
        }
        if let Some(report) = inner.report.as_ref().filter(|report| report.stop() != Some(StopReason::Stacked)) {
            match (report.attempts().len(), report.elapsed()) {
                (0, _) if inner.kind == Kind::Held => {}
                (0, _) => f.write_str(" before anything was sent")?,
                (1, elapsed) => write!(f, " after 1 attempt in {elapsed:.1?}")?,
                (attempts, elapsed) => write!(f, " after {attempts} attempts in {elapsed:.1?}")?,
            }
            if let Some(stop) = report.stop().filter(|_| inner.kind.names_its_stop()) {
                write!(f, " ({})", stop.in_words())?;
            }
        }
        match inner.source.as_deref().and_then(|source| chain(source).last()) {
            Some(cause) => write!(f, ": {}", Redacted(&cause.to_string())),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &format_args!("{self}"))
            .field("report", &self.0.report)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// The attempt timeout fired. In the source chain of a [`Error`] whose last attempt ended this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimedOut(pub(crate) Duration);

impl AttemptTimedOut {
    /// How long the attempt was given.
    pub const fn after(&self) -> Duration {
        self.0
    }
}

impl fmt::Display for AttemptTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no response head within the attempt's {:?}", self.0)
    }
}

impl StdError for AttemptTimedOut {}

#[cfg(test)]
mod tests;
