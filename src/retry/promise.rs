//! The length that was promised of a request's body, held against what it yields.

use std::{error::Error as StdError, fmt};

use bytes::Buf;
use http::HeaderValue;
use http_body::Frame;

use crate::BoxError;

/// What is still to come of the length that the request's `Content-Length` says or, without one, the body itself.
///
/// Clients believe it: of a body that is longer, hyper sends as much as was promised over HTTP/1.1 and says nothing;
/// of one that is shorter, it waits for an answer while the server waits for the rest. A repeat would do the same
/// again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Promise {
    /// In every attempt's body and in every call: one word, and no body is as long as `u64::MAX`.
    left: u64,
}

impl Promise {
    pub(super) const NONE: Promise = Promise { left: u64::MAX };

    pub(super) fn of(length: Option<u64>) -> Self {
        length.map_or(Promise::NONE, |left| Promise { left })
    }

    /// Counts what the body yields, its end included.
    pub(super) fn take<D: Buf>(&mut self, frame: &Option<Result<Frame<D>, BoxError>>) -> Result<(), WrongLength> {
        if *self == Promise::NONE {
            return Ok(());
        }
        match frame {
            Some(Ok(frame)) if frame.is_data() => {
                let size = frame.data_ref().map_or(0, Buf::remaining) as u64;
                self.left = self.left.checked_sub(size).ok_or(WrongLength::TooLong)?;
                Ok(())
            }
            Some(Err(_)) => Ok(()),
            Some(Ok(_)) | None if self.left > 0 => Err(WrongLength::TooShort { missing: self.left }),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// More was promised than has been sent.
    pub(super) fn is_open(&self) -> bool {
        *self != Promise::NONE && self.left > 0
    }
}

/// What the caller says of the body's length; `None` where that is left to the client.
pub(super) fn content_length(said: &HeaderValue) -> Option<u64> {
    said.to_str().ok()?.trim().parse().ok()
}

/// The request's body is not as long as was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongLength {
    TooShort { missing: u64 },
    TooLong,
}

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongLength::TooShort { missing } => write!(f, "the body ended {missing} bytes before its promised length"),
            WrongLength::TooLong => f.write_str("the body is longer than was promised"),
        }
    }
}

impl StdError for WrongLength {}
