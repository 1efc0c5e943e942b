//! The body of an answer, of which the beginning may have been read already.

use std::{
    collections::VecDeque,
    error::Error as StdError,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, response::Parts};
use http_body::{Body, Frame, SizeHint};

use crate::{BoxError, policy::GrpcCode};

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The body of an answer, as the inner service gave it: the same frames, trailers included, in the same order.
pub struct ResponseBody<RB> {
    held: VecDeque<Frame<Bytes>>,
    rest: RB,
}

impl<RB> ResponseBody<RB> {
    pub(super) fn new(held: VecDeque<Frame<Bytes>>, rest: RB) -> Self {
        ResponseBody { held, rest }
    }
}

impl<RB: Body<Data = Bytes> + Unpin> Body for ResponseBody<RB> {
    type Data = Bytes;
    type Error = RB::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RB::Error>>> {
        let this = self.get_mut();
        match this.held.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut this.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.held.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64).sum();
        let rest = self.rest.size_hint();
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
