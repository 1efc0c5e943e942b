//! Bodies that can be sent again.

use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{
    Either, Empty, Full, StreamBody,
    combinators::{BoxBody, UnsyncBoxBody},
};
use pin_project_lite::pin_project;

use super::tape::{self, Tape};
use crate::BoxError;

/// A request body that may enter a [`RetryLayer`](crate::RetryLayer).
///
/// Open to every body: a type of your own opts in with one line, `impl Replay for MyBody {}`, and is then taped as it
/// streams, up to 64 KiB; a longer one still streams, once, and its request is not repeated. A body that already is
/// in memory answers [`try_clone`](Self::try_clone) and is never taped. A foreign type is wrapped in [`Streamed`].
///
/// What is erased but in memory (a boxed `Full`, tonic's, axum's or reqwest's body) is repeatable at any size: its
/// first frame is the whole body, and is kept by reference.
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
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B>
    where
        B: Body,
    {
        Whole { #[pin] body: B, polled: Option<Polled> },
        Taped { play: tape::Play<B> },
    }
}

impl<B: Body> AttemptBody<B> {
    /// A body that is sent once.
    pub(super) fn once(body: B) -> Self {
        AttemptBody { kind: Kind::Whole { body, polled: None } }
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
        match self.project().kind.project() {
            KindProj::Whole { body, polled } => {
                if let Some(polled) = polled.take() {
                    polled.set();
                }
                body.poll_frame(cx).map_err(|error| BodyFailed(error.into()).into())
            }
            KindProj::Taped { play } => play.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole { body, .. } => body.is_end_stream(),
            Kind::Taped { play } => play.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole { body, .. } => body.size_hint(),
            Kind::Taped { play } => play.size_hint(),
        }
    }
}

/// Whether the client has begun to read an attempt's body: what makes a `GOAWAY` a proof
/// (see [`Fault::read_attempt`](crate::Fault::read_attempt)).
#[derive(Clone)]
pub(super) struct Polled(Arc<[AtomicU8]>);

impl Polled {
    pub(super) fn new() -> Self {
        Polled(Arc::new([AtomicU8::new(0)]))
    }

    /// The first byte of a longer allocation.
    pub(super) fn first_of(bytes: Arc<[AtomicU8]>) -> Self {
        Polled(bytes)
    }

    fn set(&self) {
        if let Some(flag) = self.0.first() {
            flag.store(1, Ordering::Release);
        }
    }

    fn get(&self) -> bool {
        self.0.first().is_some_and(|flag| flag.load(Ordering::Acquire) == 1)
    }
}

/// Where the bodies of a call's attempts come from.
pub(super) enum Source<B: Body> {
    /// In memory: cloned by reference count. With a flag, where it matters whether the client began to read it.
    Whole { body: B, polled: Option<Polled> },
    /// Taped as it streams.
    Taped(Tape<B>),
}

/// An upload of at most this size was surely handed over whole when its answer came: it fits into a socket's buffers.
const SURELY_SENT: u64 = 64 * 1024;

impl<B: Replay> Source<B> {
    /// The first attempt's body, and where those of later ones come from.
    pub(super) fn split(body: B, polled: Option<Polled>) -> (AttemptBody<B>, Self) {
        match body.try_clone() {
            Some(copy) => {
                let first = AttemptBody { kind: Kind::Whole { body, polled: polled.clone() } };
                (first, Source::Whole { body: copy, polled })
            }
            None => {
                let (play, tape) = Tape::record(body);
                (AttemptBody { kind: Kind::Taped { play } }, Source::Taped(tape))
            }
        }
    }

    /// Whether another attempt could have the same body.
    pub(super) fn can_repeat(&self) -> bool {
        match self {
            Source::Whole { body, .. } => body.try_clone().is_some(),
            Source::Taped(tape) => tape.can_repeat(),
        }
    }

    /// The body of another attempt. Cuts off an earlier attempt's upload, should it still be running.
    pub(super) fn again(&mut self) -> Option<AttemptBody<B>> {
        match self {
            Source::Whole { body, polled } => {
                let body = body.try_clone()?;
                *polled = polled.take().map(|_| Polled::new());
                Some(AttemptBody { kind: Kind::Whole { body, polled: polled.clone() } })
            }
            Source::Taped(tape) => tape.replay().map(|play| AttemptBody { kind: Kind::Taped { play } }),
        }
    }

    /// Whether the client has begun to read the current attempt's body. `false` also where nobody asked to know.
    pub(super) fn polled(&self) -> bool {
        match self {
            Source::Whole { polled, .. } => polled.as_ref().is_some_and(Polled::get),
            Source::Taped(tape) => tape.polled(),
        }
    }

    /// Cuts off the current attempt's upload: its next poll fails, so that the client drops that connection or
    /// stream. An answer can come early, and hyper goes on polling the old upload long after.
    pub(super) fn revoke(&self) {
        if let Source::Taped(tape) = self {
            tape.revoke();
        }
    }

    /// Whether the caller's body itself failed.
    pub(super) fn failed(&self) -> bool {
        matches!(self, Source::Taped(tape) if tape.failed())
    }

    /// Whether the current attempt's upload may still be on its way. Waiting for the end of its answer could then
    /// take for ever, and would not free the connection.
    pub(super) fn may_be_uploading(&self) -> bool {
        match self {
            Source::Whole { body, .. } => body.size_hint().upper().is_none_or(|size| size > SURELY_SENT),
            Source::Taped(tape) => tape.may_be_uploading(SURELY_SENT),
        }
    }
}

/// The caller's body failed: the caller's own fault, whatever its error looks like.
#[derive(Debug)]
pub(crate) struct BodyFailed(pub(crate) BoxError);

impl fmt::Display for BodyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body failed")
    }
}

impl StdError for BodyFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

/// The upload of an attempt that is over was cut off.
#[derive(Debug)]
pub(crate) struct UploadRevoked;

impl fmt::Display for UploadRevoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the attempt that this upload belongs to is over")
    }
}

impl StdError for UploadRevoked {}

#[cfg(test)]
mod tests;
