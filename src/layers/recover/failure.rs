//! A final failure, as whoever recovers from it sees it.

use std::{fmt, time::SystemTime};

use http::{Method, Response, StatusCode, Uri};

use super::{RecoverBody, Which};
use crate::{
    Error,
    policy::{Class, StopReason},
    retry::CallReport,
};

/// A call's final failure: an error, or an answer that is none that the caller can use.
pub struct Failure<B> {
    what: Result<Response<B>, Error>,
    method: Method,
    uri: Uri,
}

impl<B> Failure<B> {
    /// `Err`: an answer that passes unchanged.
    pub(super) fn of(
        what: Result<Response<B>, Error>,
        which: Which,
        method: Method,
        uri: Uri,
    ) -> Result<Self, Response<B>> {
        match what {
            Ok(answer) if !is_failure(&answer, which) => Err(answer),
            what => Ok(Failure { what, method, uri }),
        }
    }

    /// What the failure is: [`Class::Transient`] where it passes, so that the same call may work later;
    /// [`Class::Permanent`] where it does not; [`Class::Verify`] where the work may be done already, and has to be looked
    /// for before it is done once more.
    pub fn class(&self) -> Class {
        match (self.report().and_then(CallReport::stop), &self.what) {
            (Some(StopReason::Verify), _) => Class::Verify,
            (Some(StopReason::Permanent), _) => Class::Permanent,
            // Its block decides, and did not say yet.
            (Some(StopReason::Stacked), Err(error)) if error.fault().is_some_and(|fault| fault.is_permanent()) => {
                Class::Permanent
            }
            (Some(_), _) => Class::Transient,
            (None, Ok(_)) => Class::Permanent,
            (None, Err(error)) if error.is_stacked() => Class::Permanent,
            (None, Err(error)) if error.fault().is_some_and(|fault| fault.is_permanent()) => Class::Permanent,
            (None, Err(_)) => Class::Transient,
        }
    }

    /// What happened, attempt by attempt, and why there was not another. `None` where no retry layer saw it.
    pub fn report(&self) -> Option<&CallReport> {
        match &self.what {
            Ok(answer) => answer.extensions().get(),
            Err(error) => error.report(),
        }
    }

    /// Whether the call may have taken effect without an answer that says so: before the work is done once more, look
    /// whether it is done already.
    pub fn outcome_unknown(&self) -> bool {
        match (self.report(), &self.what) {
            (Some(report), _) => report.outcome_unknown(),
            (None, Ok(_)) => false,
            (None, Err(error)) => {
                let unsent = error.fault().is_some_and(|fault| fault.is_unsent());
                !unsent && !error.is_not_ready() && !error.is_stacked()
            }
        }
    }

    /// When the server allows the next attempt, where it said so.
    pub fn retry_at(&self) -> Option<SystemTime> {
        self.report()?.retry_at()
    }

    /// The status, where there is an answer.
    pub fn status(&self) -> Option<StatusCode> {
        self.what.as_ref().ok().map(Response::status)
    }

    /// The error, where there is no answer.
    pub fn error(&self) -> Option<&Error> {
        self.what.as_ref().err()
    }

    /// The request's method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The request's target. May hold secrets in its query and userinfo: do not log it.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The answer as it is, to be passed on, or the error, for one of the caller's own to hold as its source.
    ///
    /// # Errors
    ///
    /// The error, where there is no answer.
    pub fn into_answer(self) -> Result<Response<RecoverBody<B>>, Error> {
        self.what.map(|answer| answer.map(RecoverBody::inner))
    }
}

fn is_failure<B>(answer: &Response<B>, which: Which) -> bool {
    let stop = answer.extensions().get().and_then(CallReport::stop);
    let given_up = match stop {
        None | Some(StopReason::Permanent) => false,
        // Of a second retry layer, it is the outer one's to judge; of a call within a block, whose report has an attempt, it
        // is what this call came to.
        Some(StopReason::Stacked) => {
            answer.extensions().get().is_some_and(|report: &CallReport| !report.attempts().is_empty())
        }
        Some(_) => true,
    };
    let status = answer.status();
    given_up || matches!(which, Which::Every) && (status.is_client_error() || status.is_server_error())
}

impl<B> fmt::Debug for Failure<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither target nor headers: both may hold secrets.
        f.debug_struct("Failure")
            .field("class", &self.class())
            .field("method", &self.method)
            .field("status", &self.status())
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}
