//! Why a download did not go on.

use std::{error::Error, fmt};

use http::StatusCode;

use crate::{BoxError, redact::Redacted};

/// A download broke, and was not resumed, or not once more.
///
/// In the source chain of the [`Error`](crate::Error) of a [`ResumeBody`](super::ResumeBody), above the error that broke
/// it.
pub struct NotResumed {
    resumes: u32,
    why: Why,
    source: BoxError,
}

impl NotResumed {
    pub(super) fn new(resumes: u32, why: Why, source: BoxError) -> Self {
        NotResumed { resumes, why, source }
    }

    /// How many resumes were tried.
    pub fn resumes(&self) -> u32 {
        self.resumes
    }
}

/// Why there was no resume, or not another one.
#[derive(Debug)]
pub(super) enum Why {
    /// Only a `GET` without a body, for all or for one range.
    NotAsked,
    Status(StatusCode),
    NoStrongEtag,
    UnknownLength,
    Encoded,
    SeveralParts,
    /// What broke it is not known to pass.
    Final,
    /// Nothing is missing that could be asked for.
    Complete,
    /// More came than there is.
    TooLong,
    Spent,
    NoTime,
    /// The request for the rest failed; in words, since the error that counts is the one that broke the body.
    Failed(String),
    Changed,
    OtherEtag,
    OtherRange,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotAsked => f.write_str("only a GET without a body is"),
            Why::Status(status) => write!(f, "an answer of {} holds nothing of it", status.as_str()),
            Why::NoStrongEtag => f.write_str("it has no strong ETag"),
            Why::UnknownLength => f.write_str("its length is not known"),
            Why::Encoded => f.write_str("its content is encoded"),
            Why::SeveralParts => f.write_str("it comes in several parts"),
            Why::Final => f.write_str("what broke it does not pass"),
            Why::Complete => f.write_str("nothing of it is missing"),
            Why::TooLong => f.write_str("it is longer than its head says"),
            Why::Spent => f.write_str("all resumes made"),
            Why::NoTime => f.write_str("no time left"),
            Why::Failed(how) => write!(f, "the request for the rest failed ({})", Redacted(how)),
            Why::Changed => f.write_str("the content has changed, or the server knows no ranges"),
            Why::OtherEtag => f.write_str("the rest has another ETag"),
            Why::OtherRange => f.write_str("the range is not the one that is missing"),
        }
    }
}

impl fmt::Display for NotResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.resumes {
            0 => write!(f, "not resumed: {}", self.why),
            1 => write!(f, "given up after 1 resume: {}", self.why),
            resumes => write!(f, "given up after {resumes} resumes: {}", self.why),
        }
    }
}

impl fmt::Debug for NotResumed {
    // Not the source's own `Debug`, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotResumed").field("message", &format_args!("{self}")).finish_non_exhaustive()
    }
}

impl Error for NotResumed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// A body ended, without an error, before all had come that its head had promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedEarly {
    pub(super) missing: u64,
}

impl fmt::Display for EndedEarly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body ended {} bytes before its end", self.missing)
    }
}

impl Error for EndedEarly {}
