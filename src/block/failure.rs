//! How an attempt of a block failed.

use std::{error::Error as StdError, fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use crate::{
    BoxError, Error, Policy,
    fault::{Fault, Link, Links, peek},
    policy::{Class, Hint, Outcome, StopReason, Verdict},
    redact::Redacted,
    retry::{AttemptOutcome, CallReport, course::Course},
};

/// How an attempt of a block ([`redial::retry`](fn@crate::retry)) failed, and what it says about being repeated.
///
/// `?` makes one of any error, which says nothing by itself and is judged by the policy: a fault that it lists is
/// transient, anything else is not. Not an error itself, so that `?` can do that.
pub struct Failure {
    source: BoxError,
    says: Says,
}

/// What a failure says of itself.
#[derive(Clone, Debug)]
enum Says {
    Nothing,
    Permanent,
    Transient(Hint),
    Answer(Box<Answer>),
}

/// An answer's head, by which a policy judges it.
#[derive(Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    /// Another call ended with it, whose repeats were made.
    of_another_call: bool,
}

impl fmt::Debug for Answer {
    // Neither headers nor body: both may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Failure {
    fn new(source: impl Into<BoxError>, says: Says) -> Self {
        Failure { source: source.into(), says }
    }

    /// A repeat would not help: a business failure, which is final and no ERROR among the events.
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Self::new(error, Says::Permanent)
    }

    /// It may pass by itself, whatever the policy lists.
    pub fn transient(error: impl Into<BoxError>) -> Self {
        Self::new(error, Says::Transient(Hint::default()))
    }

    /// It may pass by itself, and is not to be repeated earlier than this from now: what a provider said elsewhere than in
    /// an answer's headers.
    pub fn retry_after(error: impl Into<BoxError>, wait: Duration) -> Self {
        Self::new(error, Says::Transient(Hint::wait(wait)))
    }

    /// This answer, judged by the policy with all that its headers say, `Retry-After` among it.
    ///
    /// Also where the policy calls it "rejected before processing": that is said of one request, and a block may have done
    /// more before it, so evidence is needed all the same. The last answer of a call that has repeated by itself
    /// ([`independent`](crate::independent), or made in a task of its own) is final.
    pub fn answer<B>(response: &Response<B>) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let stop = response.extensions().get().and_then(CallReport::stop);
        let of_another_call = stop.is_some_and(|stop| stop != StopReason::Stacked);
        let answer = Answer { status, headers, body: Bytes::new(), of_another_call };
        Self::new(Answered(status), Says::Answer(Box::new(answer)))
    }

    /// The answer; or, from status 400 on, the failure that it is ([`answer`](Self::answer)).
    ///
    /// # Errors
    ///
    /// The failure. The response is dropped with its body.
    pub fn check<B>(response: Response<B>) -> Result<Response<B>, Self> {
        match response.status().as_u16() {
            ..400 => Ok(response),
            _ => Err(Self::answer(&response)),
        }
    }

    /// The same answer with the beginning of its body, for a policy that looks into it. No more than the first
    /// [`PEEK`](crate::policy::PEEK) bytes are kept.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        if let Says::Answer(answer) = &mut self.says {
            let body = body.into();
            // A copy of the beginning, so that the rest is not kept alive with it.
            let beginning = body.get(..crate::policy::PEEK).map(Bytes::copy_from_slice);
            answer.body = beginning.unwrap_or(body);
        }
        self
    }

    /// The same failure with this error as its source, such as the caller's own.
    pub fn with_source(mut self, error: impl Into<BoxError>) -> Self {
        self.source = error.into();
        self
    }

    /// What it says, or what a block within this one said that ran as part of it.
    fn says(&self) -> &Says {
        match &self.says {
            Says::Nothing => {
                // What lies beneath the end of another call was said to that one, and heeded there.
                let of_this_call = |link: &Link<'_>| !peek::<Error>(*link).is_some_and(Error::is_of_another_call);
                let carried = Links::of(&*self.source).take_while(of_this_call).find_map(peek::<Carried>);
                carried.map_or(&Says::Nothing, |carried| carried.0.says())
            }
            says => says,
        }
    }

    /// What went wrong on the wire; `None` for an answer. Never a proof: whatever failed, the block may have done anything
    /// before.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self.says() {
            Says::Answer(_) => None,
            _ => Some(Fault::read(&*self.source).unproved()),
        }
    }

    pub(super) fn outcome(&self, fault: Option<Fault>) -> AttemptOutcome {
        #[cfg(feature = "grpc")]
        if let (Says::Nothing, Some(headers)) = (self.says(), super::grpc::head_of(&*self.source)) {
            return AttemptOutcome::Grpc(crate::GrpcCode::said(&headers).unwrap_or(crate::GrpcCode::Unknown));
        }
        match (self.says(), fault) {
            (Says::Answer(answer), _) => AttemptOutcome::Status(answer.status),
            (_, fault) => AttemptOutcome::Fault(fault.map_or(crate::FaultKind::Unclassified, |fault| fault.kind())),
        }
    }

    /// Whether it is an answer, or a block's own word that it is final: no ERROR among the events (S16).
    pub(super) fn is_business(&self) -> bool {
        matches!(self.says(), Says::Permanent | Says::Answer(_))
    }

    pub(super) fn judge<P: Policy>(&self, course: &Course, policy: &P, fault: Option<Fault>) -> Verdict {
        match self.says() {
            Says::Permanent => Verdict::permanent(),
            Says::Transient(hint) => Verdict::transient().with_hint(*hint),
            Says::Answer(answer) if answer.of_another_call => Verdict::permanent(),
            Says::Answer(answer) => {
                let outcome = || Outcome::answer(answer.status, &answer.headers);
                let mut verdict = course.judge(policy, outcome());
                if verdict.asks_for_body() {
                    verdict = course.judge(policy, outcome().with_body(&answer.body));
                }
                // Whatever the policy thinks of such an answer: the block calls it a failure.
                if verdict.class() == Class::Success { Verdict::permanent() } else { verdict }
            }
            Says::Nothing => {
                if let Some(end) = end_of_another_call(&*self.source) {
                    // Its repeats were made; until when the server asked to be left alone is still worth knowing.
                    let left = end.retry_at().and_then(|at| at.duration_since(course.plan.operation.clock.now()).ok());
                    return Verdict::permanent().with_hint(left.map(Hint::wait).unwrap_or_default());
                }
                #[cfg(feature = "grpc")]
                if let Some(headers) = super::grpc::head_of(&*self.source) {
                    return course.judge(policy, Outcome::answer(StatusCode::OK, &headers).over_grpc());
                }
                let fault = fault.unwrap_or_else(|| Fault::read(&*self.source).unproved());
                let verdict = course.judge(policy, Outcome::failed_as(&*self.source, fault));
                if verdict.class() == Class::Success { Verdict::unclassified() } else { verdict }
            }
        }
    }

    pub(super) fn into_source(self) -> BoxError {
        self.source
    }

    /// For a block that runs as part of another: an error that carries what was said.
    pub(super) fn carried(self) -> BoxError {
        Carried(self).into()
    }
}

fn end_of_another_call<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    Links::of(error).filter_map(peek::<Error>).find(|error| error.is_of_another_call())
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::new(error, Says::Nothing)
    }
}

impl fmt::Debug for Failure {
    // Not the source's own `Debug`, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.to_string();
        f.debug_struct("Failure")
            .field("says", &self.says)
            .field("source", &format_args!("{}", Redacted(&source)))
            .finish()
    }
}

/// An answer that is a failure.
#[derive(Debug)]
struct Answered(StatusCode);

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answered {}", self.0)
    }
}

impl StdError for Answered {}

/// A failure on its way through a block that is part of another one.
#[derive(Debug)]
struct Carried(Failure);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(f)
    }
}

impl StdError for Carried {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0.source)
    }
}
