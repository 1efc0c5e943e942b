//! The body of a request: there as a whole, or a stream.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tonic::{Status, body::Body};

use crate::Replay;

/// The body of a request on its way into the retry layer.
///
/// tonic makes one of an unknown length even of a single message. What is there at once and is all there is, as the message
/// of every unary call, is repeatable whatever its size; everything else is taped as it streams, up to 64 KiB.
pub struct RequestBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    /// What was looked at already, and the rest.
    Stream(VecDeque<Result<Frame<Bytes>, Status>>, Body),
}

impl RequestBody {
    /// Looks at what is there without waiting: a frame, and whether anything follows it.
    pub(super) fn look(mut body: Body) -> Self {
        // Of a known length: its first frame will show by itself that it is all.
        if body.is_end_stream() || body.size_hint().exact().is_some() {
            return Self::unseen(body);
        }
        // Whoever sends the body polls it again, with a waker of its own.
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = VecDeque::new();
        for _ in 0..2 {
            match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Ready(Some(frame)) => seen.push_back(frame),
                Poll::Ready(None) => return Self::ended(seen),
                Poll::Pending => break,
            }
        }
        RequestBody(Kind::Stream(seen, body))
    }

    pub(super) fn unseen(body: Body) -> Self {
        RequestBody(Kind::Stream(VecDeque::new(), body))
    }

    /// It ended within what was looked at: nothing, or one frame.
    fn ended(mut seen: VecDeque<Result<Frame<Bytes>, Status>>) -> Self {
        match seen.pop_front() {
            None => Self::unseen(Body::empty()),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => RequestBody(Kind::Whole(Some(data))),
                Err(frame) => RequestBody(Kind::Stream(VecDeque::from([Ok(frame)]), Body::empty())),
            },
            Some(Err(status)) => RequestBody(Kind::Stream(VecDeque::from([Err(status)]), Body::empty())),
        }
    }

    /// Whether this is all that the caller will say.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.0, Kind::Whole(_))
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            Kind::Stream(seen, rest) => match seen.pop_front() {
                Some(frame) => Poll::Ready(Some(frame)),
                None => Pin::new(rest).poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(data) => data.is_none(),
            Kind::Stream(seen, rest) => seen.is_empty() && rest.is_end_stream(),
        }
    }

    // No length for what is whole: with one, a `content-length` would be sent, which tonic does not.
    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Stream(seen, rest) if seen.is_empty() => rest.size_hint(),
            Kind::Whole(_) | Kind::Stream(..) => SizeHint::default(),
        }
    }
}

impl Replay for RequestBody {
    fn try_clone(&self) -> Option<Self> {
        match &self.0 {
            Kind::Whole(data) => Some(RequestBody(Kind::Whole(data.clone()))),
            Kind::Stream(..) => None,
        }
    }
}

/// For a retry layer of your own over tonic's body: taped as it streams.
impl Replay for Body {}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}
