//! Errors of this crate, for the tests of code that handles them.
//!
//! Each is what a retry layer returns after that failure of a single attempt, with a report of it, but without the name
//! of a provider. [`with_report`] puts another report in.

use std::time::Duration;

use super::{ReportBuilder, mint, wire::frame};
use crate::{AttemptTimedOut, BoxError, CallReport, Error, Fault, FaultKind, StopReason};

/// The last attempt's timeout fired: [`is_timeout`](Error::is_timeout), and [`AttemptTimedOut`] in its chain.
pub fn attempt_timeout(attempt: Duration) -> Error {
    let report = ReportBuilder::new().failed(FaultKind::Timeout).took(attempt).stop(StopReason::Attempts);
    Error::failed(AttemptTimedOut(attempt).into(), Fault::attempt_timeout()).with_report(report.build())
}

/// The call's total is over: [`is_timeout`](Error::is_timeout) and [`is_deadline`](Error::is_deadline).
pub fn total_timeout(total: Duration) -> Error {
    let report = ReportBuilder::new().failed(FaultKind::Timeout).took(total).stop(StopReason::Deadline);
    Error::total(total).with_report(report.build())
}

/// The caller's own deadline has passed: as [`total_timeout`], and [`is_outer_deadline`](Error::is_outer_deadline).
pub fn outer_deadline() -> Error {
    let report = ReportBuilder::new().failed(FaultKind::Timeout).stop(StopReason::Deadline);
    Error::deadline().with_report(report.build())
}

/// Nobody listened: [`is_connect`](Error::is_connect), with hyper-util's own error beneath, so that the request is
/// provably unsent.
pub fn connect() -> Error {
    failed_with(mint::not_connected().into())
}

/// The name was not resolved: [`is_connect`](Error::is_connect), unsent.
pub fn dns() -> Error {
    failed_with(mint::not_resolved().into())
}

/// The connection was reset, with hyper's own error beneath: of unknown outcome.
pub fn reset() -> Error {
    failed_with(mint::http1(b"", mint::End::Reset).into())
}

/// The connection closed without an answer, with hyper's own error beneath: of unknown outcome.
pub fn closed() -> Error {
    failed_with(mint::http1(b"", mint::End::Closed).into())
}

/// The peer refused the stream, with hyper's own error beneath: unsent.
pub fn refused_stream() -> Error {
    let code = super::Reason::RefusedStream.code().to_be_bytes();
    failed_with(mint::http2(&frame::encode(frame::RST_STREAM, 1, &code)).into())
}

/// The attempt failed with an error of your own, read as a retry layer would.
pub fn failed_with(source: BoxError) -> Error {
    let fault = Fault::read(&*source);
    let report = ReportBuilder::new();
    let report = if fault.is_unsent() { report.unsent(fault.kind()) } else { report.failed(fault.kind()) };
    // What nobody listed, or what does not pass, is not repeated.
    let permanent = fault.is_permanent() || fault.kind() == FaultKind::Unclassified;
    let stop = if permanent { StopReason::Permanent } else { StopReason::Attempts };
    Error::failed(source, fault).with_report(report.stop(stop).build())
}

/// The inner service failed to become ready: [`is_not_ready`](Error::is_not_ready).
pub fn not_ready() -> Error {
    let report = ReportBuilder::new().stop(StopReason::NotReady);
    Error::not_ready(super::NotReady.into()).with_report(report.build())
}

/// The response body broke off after its head: [`is_body`](Error::is_body). As from a
/// [`TimeoutLayer`](crate::TimeoutLayer), so without a report.
pub fn body() -> Error {
    Error::body(mint::http1(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf", mint::End::Closed).into())
}

/// The same error with this report, such as one of several attempts.
pub fn with_report(error: Error, report: CallReport) -> Error {
    error.with_report(report)
}
