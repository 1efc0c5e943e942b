//! The body of an answer, of which the beginning may have been read already.

use std::{
    collections::VecDeque,
    error::Error as StdError,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, response::Parts};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tonic::Status;

use crate::{BoxError, policy::GrpcCode, timeout::Timer};

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The body of an answer, as the inner service gave it: the same frames, trailers included, in the same order.
///
/// It ends by the caller's own deadline (`request.set_timeout`), with a [`Status`] of `DEADLINE_EXCEEDED`.
pub struct ResponseBody<RB> {
    held: VecDeque<Frame<Bytes>>,
    /// `None` when its time was up.
    rest: Option<RB>,
    until: Option<Until>,
}

/// The caller's own deadline. The timer is boxed, so that readers may move the body.
struct Until {
    instant: Instant,
    timer: Pin<Box<Timer>>,
}

impl<RB> ResponseBody<RB> {
    pub(super) fn new(held: VecDeque<Frame<Bytes>>, rest: RB, until: Option<Instant>) -> Self {
        let until = until.map(|instant| Until { instant, timer: Box::pin(Timer::new()) });
        ResponseBody { held, rest: Some(rest), until }
    }
}

impl<RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for ResponseBody<RB> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Some(frame) = this.held.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let Some(rest) = &mut this.rest else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(rest).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(Until { instant, timer }) = &mut this.until else { return Poll::Pending };
        ready!(timer.as_mut().poll_until(cx, *instant));
        this.rest = None;
        Poll::Ready(Some(Err(Status::deadline_exceeded("the caller's deadline passed within the answer").into())))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.held.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}

impl<RB> fmt::Debug for ResponseBody<RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// In the extensions of an answer whose head holds its trailers, for the policy to see: what it held before.
#[derive(Clone)]
struct Lifted(HeaderMap);

/// Puts the trailers into the head, for the policy to see.
pub(super) fn lift(head: &mut Parts, trailers: Option<&HeaderMap>) {
    if head.extensions.get::<Lifted>().is_none() {
        head.extensions.insert(Lifted(head.headers.clone()));
    }
    for (name, value) in trailers.into_iter().flatten() {
        // Refused only where there are thousands.
        let _ = head.headers.try_append(name, value.clone());
    }
    if !head.headers.contains_key(GRPC_STATUS) {
        // Neither a message nor a status came: nothing is known.
        let unknown = HeaderValue::from(GrpcCode::Unknown as u16);
        let _ = head.headers.try_insert(GRPC_STATUS, unknown);
    }
}

/// The head as it came.
pub(super) fn unlift(head: &mut Parts) {
    if let Some(Lifted(headers)) = head.extensions.remove() {
        head.headers = headers;
    }
}

/// The answer broke off before it was the caller's. Whatever its error says, the request had arrived.
pub(crate) struct AnswerFailed(BoxError);

impl AnswerFailed {
    pub(super) fn new(error: impl Into<BoxError>) -> Self {
        AnswerFailed(error.into())
    }
}

impl fmt::Debug for AnswerFailed {
    // Not the cause's own `Debug`, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerFailed")
    }
}

impl fmt::Display for AnswerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer broke off")
    }
}

impl StdError for AnswerFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}
