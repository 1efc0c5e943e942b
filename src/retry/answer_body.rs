//! The body of an answer, of which a policy may have read the beginning.

use std::{
    collections::VecDeque,
    fmt,
    io::IoSlice,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::policy::PEEK;

pin_project! {
    /// The response body that a [`RetryLayer`](crate::RetryLayer) hands on: the client's own, frame by frame.
    ///
    /// A policy may have asked for the beginning of an error answer ([`Verdict::look_into_body`]); its frames then come
    /// first, unchanged, and the rest follows as the client reads it. Nothing is kept of any other answer.
    ///
    /// [`Verdict::look_into_body`]: crate::Verdict::look_into_body
    pub struct AnswerBody<B>
    where
        B: Body,
    {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B>
    where
        B: Body,
    {
        Whole { #[pin] body: B },
        Looked { looked: Box<Looked<B>> },
    }
}

/// What was read of it, and where the rest comes from. Pinned apart: it moves to the caller when it was already polled.
struct Looked<B: Body> {
    frames: VecDeque<Frame<B::Data>>,
    /// The first bytes of these frames.
    bytes: Vec<u8>,
    /// How much more is read: an empty frame counts too.
    left: usize,
    /// What it ended with, where it has.
    end: Option<Result<(), B::Error>>,
    rest: Pin<Box<B>>,
}

/// What a frame counts at least: endless empty frames end too.
const FRAME: usize = 64;

impl<B: Body> AnswerBody<B> {
    pub(super) fn whole(body: B) -> Self {
        AnswerBody { state: State::Whole { body } }
    }

    /// The client's own body, where no policy has read of it; else this one again.
    ///
    /// # Errors
    ///
    /// This body, where a part of it has been read.
    pub fn into_inner(self) -> Result<B, Self> {
        match self.state {
            State::Whole { body } => Ok(body),
            looked => Err(AnswerBody { state: looked }),
        }
    }

    /// The same body, to be looked into.
    pub(super) fn looked_into(self) -> Self {
        match self.state {
            State::Whole { body } => {
                let (frames, bytes, rest) = (VecDeque::new(), Vec::new(), Box::pin(body));
                let looked = Box::new(Looked { frames, bytes, left: PEEK, end: None, rest });
                AnswerBody { state: State::Looked { looked } }
            }
            looked => AnswerBody { state: looked },
        }
    }

    /// The client's own, whether it has been read from or not.
    #[cfg(feature = "reqwest")]
    pub(crate) fn of_the_client(&self) -> &B {
        match &self.state {
            State::Whole { body } => body,
            State::Looked { looked } => &looked.rest,
        }
    }

    /// Reads its beginning: ready at its end, and when enough is known.
    pub(super) fn poll_look(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let State::Looked { looked } = &mut self.state else { return Poll::Ready(()) };
        while looked.end.is_none() && looked.left > 0 {
            match ready!(looked.rest.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        copy(data, &mut looked.bytes);
                    }
                    let size = frame.data_ref().map_or(0, Buf::remaining).max(FRAME);
                    looked.left = looked.left.saturating_sub(size);
                    looked.frames.push_back(frame);
                    if looked.rest.is_end_stream() {
                        looked.end = Some(Ok(()));
                    }
                }
                Some(Err(error)) => looked.end = Some(Err(error)),
                None => looked.end = Some(Ok(())),
            }
        }
        Poll::Ready(())
    }

    /// What was read of it.
    pub(super) fn looked_at(&self) -> &[u8] {
        match &self.state {
            State::Whole { .. } => &[],
            State::Looked { looked } => &looked.bytes,
        }
    }
}

/// Adds the frame's first bytes, without taking them from it, as far as there is room.
fn copy(data: &impl Buf, bytes: &mut Vec<u8>) {
    let mut slices = [IoSlice::new(&[]); 16];
    let filled = data.chunks_vectored(&mut slices);
    for slice in &slices[..filled] {
        let room = PEEK - bytes.len();
        bytes.extend_from_slice(&slice[..room.min(slice.len())]);
    }
}

impl<B: Body> Body for AnswerBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().state.project() {
            StateProj::Whole { body } => body.poll_frame(cx),
            StateProj::Looked { looked } => {
                if let Some(frame) = looked.frames.pop_front() {
                    return Poll::Ready(Some(Ok(frame)));
                }
                match looked.end.replace(Ok(())) {
                    Some(Ok(())) => Poll::Ready(None),
                    Some(Err(error)) => Poll::Ready(Some(Err(error))),
                    None => {
                        looked.end = None;
                        looked.rest.as_mut().poll_frame(cx)
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Whole { body } => body.is_end_stream(),
            State::Looked { looked } => match looked.end {
                Some(Ok(())) => looked.frames.is_empty(),
                Some(Err(_)) => false,
                None => looked.frames.is_empty() && looked.rest.is_end_stream(),
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        let looked = match &self.state {
            State::Whole { body } => return body.size_hint(),
            State::Looked { looked } => looked,
        };
        let kept: u64 = looked.frames.iter().filter_map(Frame::data_ref).map(|data| data.remaining() as u64).sum();
        let mut hint = match looked.end {
            Some(Ok(())) => SizeHint::with_exact(0),
            _ => looked.rest.size_hint(),
        };
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(kept));
        }
        hint.set_lower(hint.lower().saturating_add(kept));
        hint
    }
}

impl<B: Body + Default> Default for AnswerBody<B> {
    fn default() -> Self {
        AnswerBody::whole(B::default())
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for AnswerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("AnswerBody");
        match &self.state {
            State::Whole { body } => out.field("body", body).finish(),
            // What was read may hold secrets.
            State::Looked { looked } => out.field("looked_at", &looked.bytes.len()).finish_non_exhaustive(),
        }
    }
}
