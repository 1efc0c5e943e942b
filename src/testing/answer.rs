//! What an answer is made of.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Reason;

#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) parts: Vec<Part>,
    pub(super) trailers: HeaderMap,
}

/// A body, in the order in which it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Data(Bytes),
    Pause(Duration),
    Stall,
    Close,
    Reset,
    ResetStream(Reason),
    Broken,
}

impl Answer {
    /// The length of the body, if it is sent whole.
    pub(super) fn whole(&self) -> Option<u64> {
        self.parts.iter().try_fold(0, |length, part| match part {
            Part::Data(data) => Some(length + data.len() as u64),
            Part::Pause(_) => Some(length),
            _ => None,
        })
    }
}

#[track_caller]
pub(super) fn line(name: &str, value: &[u8]) -> (HeaderName, HeaderValue) {
    match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
        (Ok(name), Ok(value)) => (name, value),
        (Err(_), _) => panic!("`{name}` is no name of a header"),
        (_, Err(_)) => panic!("`{}` is no value of a header", String::from_utf8_lossy(value)),
    }
}
