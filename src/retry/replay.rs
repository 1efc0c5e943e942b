//! Bodies that can be sent again.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{
    Either, Empty, Full, StreamBody,
    combinators::{BoxBody, UnsyncBoxBody},
};
use pin_project_lite::pin_project;

use super::{
    failure::{BodyFailed, Watch},
    promise::Promise,
    reading::Reading,
    tape,
};
use crate::BoxError;

/// A request body that may enter a [`RetryLayer`](crate::RetryLayer).
///
/// Open to every body: a type of your own opts in with one line, `impl Replay for MyBody {}`, and is then taped as it
/// streams, up to 64 KiB; a longer one still streams, once, and its request is not repeated. A body that already is
/// in memory answers [`try_clone`](Self::try_clone) and is never taped. A foreign type is wrapped in [`Streamed`].
///
/// What is erased but in memory (a boxed `Full`, tonic's, axum's or reqwest's body) is repeatable at any size: its
/// first frame is the whole body, and is kept by reference. So are the frames on the tape: one that is a small slice of
/// a large buffer keeps the whole buffer, until the call is over.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot enter a `RetryLayer`: nothing says how to send it again",
    label = "not a replayable body",
    note = "a body type of your own opts in with `impl redial::Replay for MyBody {{}}`",
    note = "a foreign body type is wrapped: `redial::Streamed::new(body)`"
)]
pub trait Replay: Body<Data: Clone, Error: Into<BoxError>> + Sized {
    /// The same body again, from its start, without copying its data. `None`, the default: it is taped as it streams.
    ///
    /// Called before the body is sent, and again before each further attempt on the copy that was kept.
    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<D: Buf + Clone> Replay for Full<D> {
    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D: Buf + Clone> Replay for Empty<D> {
    fn try_clone(&self) -> Option<Self> {
        Some(Empty::new())
    }
}

impl<L, R> Replay for Either<L, R>
where
    L: Replay,
    R: Replay<Data = L::Data>,
{
    fn try_clone(&self) -> Option<Self> {
        match self {
            Either::Left(left) => left.try_clone().map(Either::Left),
            Either::Right(right) => right.try_clone().map(Either::Right),
        }
    }
}

// Cloning a `String` would copy it; its only frame is the whole of it, and is kept by reference.
impl Replay for String {}

impl<D: Buf + Clone, E: Into<BoxError>> Replay for BoxBody<D, E> {}

impl<D: Buf + Clone, E: Into<BoxError>> Replay for UnsyncBoxBody<D, E> {}

impl<S, D, E> Replay for StreamBody<S>
where
    S: futures_core::Stream<Item = Result<Frame<D>, E>>,
    D: Buf + Clone,
    E: Into<BoxError>,
{
}

#[cfg(feature = "hyper")]
impl Replay for hyper::body::Incoming {}

// Bytes, a form, JSON: their only frame is the whole of them, and is kept by reference. A stream is taped.
#[cfg(feature = "reqwest")]
impl Replay for reqwest::Body {}

#[cfg(feature = "axum")]
impl Replay for axum_core::body::Body {}

pin_project! {
    /// Lets a body of any foreign type enter a [`RetryLayer`](crate::RetryLayer): it is taped as it streams.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Streamed<B> {
        #[pin]
        body: B,
    }
}

impl<B> Streamed<B> {
    /// Wraps a body.
    pub const fn new(body: B) -> Self {
        Streamed { body }
    }

    /// The body again.
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: Body> Body for Streamed<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body<Data: Clone, Error: Into<BoxError>>> Replay for Streamed<B> {}

pin_project! {
    /// The body of one attempt, and the sign that a request has passed a [`RetryLayer`](crate::RetryLayer).
    ///
    /// It may not enter a second one: see [`OneRetryPerPath`](crate::OneRetryPerPath). Size and end are exactly those
    /// of the caller's body on every attempt, so that each is framed alike. The caller's own error comes out of
    /// `source()`.
    pub struct AttemptBody<B>
    where
        B: Body,
    {
        #[pin]
        pub(super) kind: Kind<B>,
        pub(super) promise: Promise,
        // What is sent once has no call that would ask.
        pub(super) reading: Option<Reading>,
    }
}

pin_project! {
    #[project = KindProj]
    pub(super) enum Kind<B>
    where
        B: Body,
    {
        Whole { #[pin] body: B },
        // In memory too, but it may fail. Boxed: for it alone, every future would grow.
        Doubtful { body: Pin<Box<B>>, watch: Arc<Watch> },
        Taped { play: tape::Play<B> },
    }
}

impl<B: Body> AttemptBody<B> {
    /// A body that is sent once.
    pub(super) fn once(body: B) -> Self {
        AttemptBody { kind: Kind::Whole { body }, promise: Promise::NONE, reading: None }
    }
}

impl<B: Replay> AttemptBody<B> {
    /// The same body again, for a layer below that sends it more than once within one attempt, such as a redirect
    /// layer on a 307 or 308. `None` for one that is taped as it streams.
    ///
    /// What such a layer does is one attempt. Its errors prove nothing about the first request, so that none of them
    /// is taken for "never sent".
    pub fn try_clone(&self) -> Option<Self> {
        if let Some(reading) = &self.reading {
            reading.cloned();
        }
        let Kind::Whole { body } = &self.kind else { return None };
        let kind = Kind::Whole { body: body.try_clone()? };
        Some(AttemptBody { kind, promise: self.promise, reading: self.reading.clone() })
    }

    /// `is_end_stream`, unnoticed.
    pub(crate) fn has_ended(&self) -> bool {
        // A client that took this for the end would leave the server waiting.
        if self.promise.is_open() {
            return false;
        }
        match &self.kind {
            Kind::Whole { body } => body.is_end_stream(),
            Kind::Doubtful { body, .. } => body.is_end_stream(),
            Kind::Taped { play } => play.is_end_stream(),
        }
    }

    /// `size_hint`, unnoticed.
    pub(crate) fn size(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole { body } => body.size_hint(),
            Kind::Doubtful { body, .. } => body.size_hint(),
            Kind::Taped { play } => play.size_hint(),
        }
    }
}

impl<B: Body> AttemptBody<B> {
    /// Whoever is given this may send another request after it, and nobody would see that: no error about a stream
    /// proves anything about this one.
    #[cfg(feature = "reqwest")]
    pub(crate) fn may_be_followed(&self) {
        if let Some(reading) = &self.reading {
            reading.may_be_followed();
        }
    }

    fn look_at(&self) {
        if let Some(reading) = &self.reading {
            reading.look_at();
        }
    }
}

impl<B: Body + Default> Default for AttemptBody<B> {
    fn default() -> Self {
        Self::once(B::default())
    }
}

impl<B: Body> fmt::Debug for AttemptBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptBody").finish_non_exhaustive()
    }
}

impl<B: Replay> Body for AttemptBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        if let Some(reading) = this.reading {
            reading.poll();
        }
        let frame = ready!(match this.kind.as_mut().project() {
            KindProj::Whole { body } => {
                body.poll_frame(cx).map_err(|error| BodyFailed::new(error.into()).into())
            }
            KindProj::Doubtful { body, watch } => {
                body.as_mut().poll_frame(cx).map_err(|error| watch.failed(BodyFailed::new(error.into())).into())
            }
            KindProj::Taped { play } => play.poll_frame(cx),
        });
        match this.promise.take(&frame) {
            Ok(()) => Poll::Ready(frame),
            Err(broken) => {
                let failed = BodyFailed::new(broken.into());
                match this.kind.project() {
                    KindProj::Whole { .. } => {}
                    KindProj::Doubtful { watch, .. } => drop(watch.failed(failed.clone())),
                    KindProj::Taped { play } => play.fail(&failed),
                }
                Poll::Ready(Some(Err(failed.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.look_at();
        self.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.look_at();
        self.size()
    }
}

#[cfg(test)]
mod tests;
