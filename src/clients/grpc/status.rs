//! Failures as statuses.

use std::{error::Error as StdError, sync::Arc};

use http::{HeaderMap, HeaderName};
use tonic::{Code, Status};

use crate::{CallReport, Error, FaultKind, fault::Links, policy::GrpcCode};

const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// What this crate knows of a failed call: [`report()`](Error::report), [`stop()`](Error::stop),
/// [`retry_at()`](Error::retry_at) and the like. In the source chain of the [`Status`] that the caller gets.
///
/// `None` where there is nothing to report: an answer that was final at the first try, or a failure after the answer
/// was the caller's.
///
/// ```
/// fn log(status: &tonic::Status) {
///     if let Some(report) = redial::grpc::error(status).and_then(|error| error.report()) {
///         println!("{:?} after {} attempts", status.code(), report.attempts().len());
///     }
/// }
/// ```
pub fn error(status: &Status) -> Option<&Error> {
    let mut ours = Links::of(status.source()?).filter_map(|link| link.downcast_ref::<Error>());
    let first = ours.next()?;
    // A timeout layer's, with the retry layer's beneath it.
    let reports = |error: &&Error| error.report().is_some();
    Some(first).filter(reports).or_else(|| ours.find(reports)).or(Some(first))
}

/// The failure as a status: its code by what happened, its message the error's one line, its source the error.
///
/// | what happened | code |
/// | --- | --- |
/// | a timeout or a deadline of this crate's or the caller's | `DEADLINE_EXCEEDED` |
/// | no connection, a connection that was lost, a refused stream, `GOAWAY`, a channel that is not ready | `UNAVAILABLE` |
/// | a stream that was reset | [by its reason] |
/// | a broken protocol | `INTERNAL` |
/// | the caller's own body failed | that of its status |
/// | anything else | `UNKNOWN` |
///
/// A [`TimeoutLayer`](crate::TimeoutLayer) above a retrying channel gives `redial::Error`, in which tonic sees no code
/// where it is the layer's own: `.map_err(tonic::Status::from)` goes above it.
///
/// [by its reason]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let mut status = Status::new(code(&error), error.to_string());
        status.set_source(Arc::new(error));
        status
    }
}

fn code(failure: &Error) -> Code {
    let Some(fault) = failure.fault() else {
        return if failure.is_timeout() { Code::DeadlineExceeded } else { Code::Unavailable };
    };
    match fault.kind() {
        FaultKind::Connect | FaultKind::Dns | FaultKind::Tls | FaultKind::Closed => Code::Unavailable,
        FaultKind::RefusedStream | FaultKind::Goaway | FaultKind::Reset => by_reason(failure),
        // A keep-alive that was not answered is a lost connection.
        FaultKind::Timeout if failure.find_source::<hyper::Error>().is_some() => Code::Unavailable,
        FaultKind::Timeout => Code::DeadlineExceeded,
        FaultKind::Protocol => Code::Internal,
        FaultKind::Unclassified if failure.is_not_ready() => Code::Unavailable,
        // The caller's own, of its body; or one that was made here already, below a layer of ours.
        _ => failure.find_source::<Status>().map_or(Code::Unknown, Status::code),
    }
}

/// By the table of gRPC over HTTP/2; without a reason, the connection was lost.
fn by_reason(failure: &Error) -> Code {
    use h2::Reason;
    let Some(error) = failure.find_source::<h2::Error>() else { return Code::Unavailable };
    match error.reason() {
        Some(Reason::CANCEL) => Code::Cancelled,
        Some(Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        Some(Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        _ if error.is_go_away() => Code::Unavailable,
        Some(Reason::REFUSED_STREAM) | None => Code::Unavailable,
        Some(Reason::STREAM_CLOSED | Reason::HTTP_1_1_REQUIRED) => Code::Unknown,
        Some(_) => Code::Internal,
    }
}

/// An answer's status, leading to the report.
pub(super) fn answered(headers: &mut HeaderMap, code: GrpcCode, report: CallReport) -> Status {
    // tonic panics on details that are not base64.
    if headers.get(DETAILS).is_some_and(|details| !is_base64(details.as_bytes())) {
        headers.remove(DETAILS);
    }
    let mut status = Status::from_header_map(headers).unwrap_or_else(|| Status::new(code.into(), ""));
    status.set_source(Arc::new(Error::answered(code, report)));
    status
}

/// Whether this is base64 (RFC 4648, section 4), padded or not, and nothing is left over.
fn is_base64(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let (digits, padding) = text.split_at(end);
    let last = match digits.last() {
        Some(b'A'..=b'Z') => digits[end - 1] - b'A',
        Some(b'a'..=b'z') => digits[end - 1] - b'a' + 26,
        Some(b'0'..=b'9') => digits[end - 1] - b'0' + 52,
        _ => 62 + u8::from(digits.last() == Some(&b'/')),
    };
    let whole = match end % 4 {
        0 => padding.is_empty(),
        2 => last % 16 == 0 && (padding.is_empty() || padding == b"=="),
        3 => last % 4 == 0 && (padding.is_empty() || padding == b"="),
        _ => false,
    };
    whole && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

impl From<GrpcCode> for Code {
    fn from(code: GrpcCode) -> Self {
        Code::from_i32(code as i32)
    }
}

impl From<Code> for GrpcCode {
    fn from(code: Code) -> Self {
        GrpcCode::ALL.get(code as usize).copied().unwrap_or(GrpcCode::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::policy::StopReason;

    fn with_details(details: &[u8]) -> Status {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", HeaderValue::from_static("14"));
        headers.insert(DETAILS, HeaderValue::from_bytes(details).unwrap());
        answered(&mut headers, GrpcCode::Unavailable, CallReport::of_test(Vec::new(), Some(StopReason::Attempts), None))
    }

    #[test]
    fn codes_are_the_same_on_both_sides() {
        for code in GrpcCode::ALL {
            assert_eq!(Code::from(code) as usize, code as usize);
            assert_eq!(GrpcCode::from(Code::from(code)), code);
        }
    }

    #[test]
    fn details_are_kept_and_garbage_is_left_out() {
        for (text, details) in [(&b"AAID"[..], &[0, 2, 3][..]), (b"AA==", &[0]), (b"AAI", &[0, 2]), (b"", &[])] {
            assert_eq!(with_details(text).details(), details, "{text:?}");
        }
        for garbage in [&b"A"[..], b"AB==", b"AAID=", b"AA=A", b"=", b"****", b"AAID,AAID", b"\xff\xff"] {
            assert_eq!(with_details(garbage).details(), b"", "{garbage:?}");
        }
    }

    proptest! {
        // What tonic cannot read, it panics on.
        #[test]
        fn no_details_are_too_strange(details in "[A-Za-z0-9+/=,*]{0,9}") {
            let status = with_details(details.as_bytes());
            prop_assert_eq!(status.code(), Code::Unavailable);
        }
    }
}
