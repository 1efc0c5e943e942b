//! What was read, then what is left.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// What a frame costs at least: endless empty frames end too.
const FRAME: usize = 64;

pin_project! {
    /// A response body of which the beginning, or all, was read already.
    pub struct BufferedBody<B>
    where
        B: Body,
    {
        frames: VecDeque<Frame<B::Data>>,
        // `None`: all of it was read.
        #[pin]
        rest: Option<B>,
    }
}

impl<B: Body> BufferedBody<B> {
    pub(super) fn unread(body: B) -> Self {
        BufferedBody { frames: VecDeque::new(), rest: Some(body) }
    }

    /// Whether all of it was read before its response was handed on.
    pub fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// As far as the head says.
    pub(super) fn rest_is_at_least(&self) -> u64 {
        self.rest.as_ref().map_or(0, |rest| rest.size_hint().lower())
    }

    fn held(&self) -> u64 {
        self.frames.iter().filter_map(Frame::data_ref).map(|data| data.remaining() as u64).sum()
    }
}

impl<B: Body + Unpin> BufferedBody<B> {
    /// Reads on, to the end or until no more may be kept.
    pub(super) fn poll_fill(&mut self, left: &mut usize, cx: &mut Context<'_>) -> Poll<Result<(), B::Error>> {
        loop {
            let Some(rest) = &mut self.rest else { return Poll::Ready(Ok(())) };
            if rest.is_end_stream() {
                self.rest = None;
                continue;
            }
            match ready!(Pin::new(rest).poll_frame(cx)) {
                None => self.rest = None,
                Some(Err(error)) => return Poll::Ready(Err(error)),
                Some(Ok(frame)) => {
                    let size = frame.data_ref().map_or(0, Buf::remaining);
                    if size > 0 || !frame.is_data() {
                        self.frames.push_back(frame);
                    }
                    match left.checked_sub(size.max(FRAME)) {
                        Some(rest) => *left = rest,
                        None => return Poll::Ready(Ok(())),
                    }
                }
            }
        }
    }
}

impl<B: Body> fmt::Debug for BufferedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedBody").field("held", &self.held()).field("whole", &self.is_whole()).finish()
    }
}

impl<B: Body> Body for BufferedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        if let Some(frame) = this.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match this.rest.as_pin_mut() {
            Some(rest) => rest.poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.held();
        let Some(rest) = &self.rest else { return SizeHint::with_exact(held) };
        let rest = rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}
