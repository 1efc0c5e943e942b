//! The status codes of gRPC.

use std::{fmt, str::FromStr};

use http::{HeaderMap, HeaderName, StatusCode};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// How a call of gRPC ended, by the code in its `grpc-status` ([status codes]). Names are those of the specification,
/// `UNAVAILABLE`, as contracts write them.
///
/// [status codes]: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrpcCode {
    /// 0: it worked.
    Ok = 0,
    /// 1: cancelled, typically by the caller.
    Cancelled = 1,
    /// 2: an error of which nothing is known; also a code that the specification does not have.
    Unknown = 2,
    /// 3: an argument that is wrong whatever the state of the system.
    InvalidArgument = 3,
    /// 4: the deadline passed. The work may be done.
    DeadlineExceeded = 4,
    /// 5: there is no such thing.
    NotFound = 5,
    /// 6: there is such a thing already.
    AlreadyExists = 6,
    /// 7: this caller may not.
    PermissionDenied = 7,
    /// 8: a quota or some other resource is used up.
    ResourceExhausted = 8,
    /// 9: the system is not in the state that this needs.
    FailedPrecondition = 9,
    /// 10: aborted, such as by a conflict of transactions: to be repeated at a higher level.
    Aborted = 10,
    /// 11: past the valid range.
    OutOfRange = 11,
    /// 12: there is no such method.
    Unimplemented = 12,
    /// 13: something is very broken.
    Internal = 13,
    /// 14: not available just now. It does not say that the call was not processed.
    Unavailable = 14,
    /// 15: data is lost for good.
    DataLoss = 15,
    /// 16: no valid credentials.
    Unauthenticated = 16,
}

impl GrpcCode {
    /// Every code, by its number.
    pub const ALL: [GrpcCode; 17] = [
        GrpcCode::Ok,
        GrpcCode::Cancelled,
        GrpcCode::Unknown,
        GrpcCode::InvalidArgument,
        GrpcCode::DeadlineExceeded,
        GrpcCode::NotFound,
        GrpcCode::AlreadyExists,
        GrpcCode::PermissionDenied,
        GrpcCode::ResourceExhausted,
        GrpcCode::FailedPrecondition,
        GrpcCode::Aborted,
        GrpcCode::OutOfRange,
        GrpcCode::Unimplemented,
        GrpcCode::Internal,
        GrpcCode::Unavailable,
        GrpcCode::DataLoss,
        GrpcCode::Unauthenticated,
    ];

    /// The name in contracts, events and metrics: `UNAVAILABLE`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            GrpcCode::Ok => "OK",
            GrpcCode::Cancelled => "CANCELLED",
            GrpcCode::Unknown => "UNKNOWN",
            GrpcCode::InvalidArgument => "INVALID_ARGUMENT",
            GrpcCode::DeadlineExceeded => "DEADLINE_EXCEEDED",
            GrpcCode::NotFound => "NOT_FOUND",
            GrpcCode::AlreadyExists => "ALREADY_EXISTS",
            GrpcCode::PermissionDenied => "PERMISSION_DENIED",
            GrpcCode::ResourceExhausted => "RESOURCE_EXHAUSTED",
            GrpcCode::FailedPrecondition => "FAILED_PRECONDITION",
            GrpcCode::Aborted => "ABORTED",
            GrpcCode::OutOfRange => "OUT_OF_RANGE",
            GrpcCode::Unimplemented => "UNIMPLEMENTED",
            GrpcCode::Internal => "INTERNAL",
            GrpcCode::Unavailable => "UNAVAILABLE",
            GrpcCode::DataLoss => "DATA_LOSS",
            GrpcCode::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// What the headers say, or the trailers. A code that is none, or malformed, is `UNKNOWN`.
    pub(crate) fn said(headers: &HeaderMap) -> Option<Self> {
        let said = headers.get(GRPC_STATUS)?.as_bytes();
        let number = std::str::from_utf8(said).ok().filter(|number| number.len() <= 2 && !number.starts_with('+'));
        let number = number.and_then(|number| number.parse::<usize>().ok());
        Some(number.and_then(|number| Self::ALL.get(number).copied()).unwrap_or(GrpcCode::Unknown))
    }

    /// What an answer means that has a status of HTTP alone, as a proxy gives it ([mapping]). `None` for a 200: its
    /// status is still to come.
    ///
    /// [mapping]: https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md
    pub(crate) fn of_http(status: StatusCode) -> Option<Self> {
        Some(match status.as_u16() {
            200 => return None,
            400 => GrpcCode::Internal,
            401 => GrpcCode::Unauthenticated,
            403 => GrpcCode::PermissionDenied,
            404 => GrpcCode::Unimplemented,
            429 | 502 | 503 | 504 => GrpcCode::Unavailable,
            _ => GrpcCode::Unknown,
        })
    }

    /// Whether the fault is the server's: it says something about its health, as a status of 500 and above does.
    pub(crate) const fn is_of_server(self) -> bool {
        use GrpcCode::*;
        matches!(self, Unknown | DeadlineExceeded | Unimplemented | Internal | Unavailable | DataLoss)
    }
}

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for GrpcCode {
    type Err = UnknownGrpcCode;

    /// Exactly the names of [`GrpcCode::as_str`]; case matters.
    fn from_str(name: &str) -> Result<GrpcCode, UnknownGrpcCode> {
        GrpcCode::ALL.into_iter().find(|code| code.as_str() == name).ok_or(UnknownGrpcCode(()))
    }
}

/// No code of gRPC has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownGrpcCode(());

impl fmt::Display for UnknownGrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown code of gRPC; known are")?;
        for (at, code) in GrpcCode::ALL.iter().enumerate() {
            write!(f, "{} `{code}`", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownGrpcCode {}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn said(value: &[u8]) -> Option<GrpcCode> {
        let value = HeaderValue::from_bytes(value).unwrap();
        GrpcCode::said(&HeaderMap::from_iter([(GRPC_STATUS, value)]))
    }

    #[test]
    fn every_code_is_read_by_its_number_and_by_its_name() {
        for (number, code) in GrpcCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, number);
            assert_eq!(said(number.to_string().as_bytes()), Some(code));
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert!("unavailable".parse::<GrpcCode>().is_err());
    }

    #[test]
    fn what_is_no_code_is_unknown_and_an_absent_one_is_none() {
        assert_eq!(GrpcCode::said(&HeaderMap::new()), None);
        for garbage in [&b""[..], b"17", b"99", b"-1", b"+1", b"1.0", b"014", b" 14", b"UNAVAILABLE", b"\xff\xfe"] {
            assert_eq!(said(garbage), Some(GrpcCode::Unknown), "{garbage:?}");
        }
    }

    #[test]
    fn statuses_of_http_are_read_as_the_specification_says() {
        use GrpcCode::*;
        let rows = [
            (200, None),
            (400, Some(Internal)),
            (401, Some(Unauthenticated)),
            (403, Some(PermissionDenied)),
            (404, Some(Unimplemented)),
            (429, Some(Unavailable)),
            (502, Some(Unavailable)),
            (503, Some(Unavailable)),
            (504, Some(Unavailable)),
            (500, Some(Unknown)),
            (302, Some(Unknown)),
            (204, Some(Unknown)),
            (408, Some(Unknown)),
        ];
        for (status, code) in rows {
            assert_eq!(GrpcCode::of_http(StatusCode::from_u16(status).unwrap()), code, "{status}");
        }
    }
}
