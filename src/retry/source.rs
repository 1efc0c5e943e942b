//! Where the bodies of a call's attempts come from.

use std::sync::Arc;

use http_body::{Body, SizeHint};

use super::{
    AttemptBody, Replay,
    failure::{BodyFailed, Watch},
    promise::Promise,
    reading::Reading,
    replay::Kind,
    tape::Tape,
};

pub(super) enum Source<B: Body> {
    /// In memory: cloned by reference count. With what is promised of it.
    Whole { body: B, promise: Promise },
    /// The same for one that may fail.
    Doubtful { body: Box<B>, promise: Promise, watch: Arc<Watch> },
    /// Taped as it streams.
    Taped { tape: Tape<B>, promise: Promise },
}

/// An upload of at most this size was surely handed over whole when its answer came: it fits into a socket's buffers.
const SURELY_SENT: u64 = 64 * 1024;

impl<B: Replay> Source<B> {
    /// The first attempt's body, and where those of later ones come from.
    ///
    /// `content_length`: what the request's head says.
    pub(super) fn split(body: B, content_length: Option<u64>, reading: Reading) -> (AttemptBody<B>, Self) {
        let size = body.size_hint();
        let promise = Promise::of(content_length.or(size.exact()));
        let (kind, source) = match body.try_clone() {
            None => {
                let (play, tape) = Tape::record(body);
                (Kind::Taped { play }, Source::Taped { tape, promise })
            }
            Some(copy) if may_fail::<B>(content_length, &size) => {
                let watch = Arc::<Watch>::default();
                let kind = Kind::Doubtful { body: Box::pin(body), watch: Arc::clone(&watch) };
                (kind, Source::Doubtful { body: Box::new(copy), promise, watch })
            }
            Some(copy) => (Kind::Whole { body }, Source::Whole { body: copy, promise }),
        };
        (AttemptBody { kind, promise, reading: Some(reading) }, source)
    }

    /// Whether another attempt could have the same body.
    pub(super) fn can_repeat(&self) -> bool {
        match self {
            Source::Whole { body, promise } => copy(body, *promise).is_some(),
            Source::Doubtful { body, promise, watch } => watch.failure().is_none() && copy(&**body, *promise).is_some(),
            Source::Taped { tape, .. } => tape.can_repeat(),
        }
    }

    /// The body of another attempt. Cuts off an earlier attempt's upload, should it still be running.
    pub(super) fn again(&mut self, reading: Reading) -> Option<AttemptBody<B>> {
        let (kind, promise) = match self {
            Source::Whole { body, promise } => (Kind::Whole { body: copy(body, *promise)? }, promise),
            Source::Doubtful { body, promise, watch } => {
                let body = Box::pin(copy(&**body, *promise)?);
                // A new one: what becomes of the old upload is not this attempt's failure.
                *watch = Arc::default();
                (Kind::Doubtful { body, watch: Arc::clone(watch) }, promise)
            }
            Source::Taped { tape, promise } => (Kind::Taped { play: tape.replay()? }, promise),
        };
        Some(AttemptBody { kind, promise: *promise, reading: Some(reading) })
    }

    /// Cuts off the current attempt's upload: its next poll fails, so that the client drops that connection or
    /// stream. An answer can come early, and hyper goes on polling the old upload long after.
    pub(super) fn revoke(&self) {
        if let Source::Taped { tape, .. } = self {
            tape.revoke();
        }
    }

    /// The error of the caller's body, where it failed in the current attempt.
    pub(super) fn failure(&self) -> Option<BodyFailed> {
        match self {
            Source::Whole { .. } => None,
            Source::Doubtful { watch, .. } => watch.failure(),
            Source::Taped { tape, .. } => tape.failure(),
        }
    }

    /// Whether the current attempt's upload may still be on its way. Waiting for the end of its answer could then
    /// take for ever, and would not free the connection.
    pub(super) fn may_be_uploading(&self) -> bool {
        let size = match self {
            Source::Whole { body, .. } => body.size_hint(),
            Source::Doubtful { body, .. } => body.size_hint(),
            Source::Taped { tape, .. } => return tape.may_be_uploading(SURELY_SENT),
        };
        size.upper().is_none_or(|size| size > SURELY_SENT)
    }
}

/// A body in memory once more, unless it cannot be cloned after all or is not as long as the first was: a head that
/// promises more than its body holds would leave the server waiting.
fn copy<B: Replay>(body: &B, promise: Promise) -> Option<B> {
    body.try_clone().filter(|body| body.size_hint().exact().is_none_or(|size| Promise::of(Some(size)) == promise))
}

/// Whether a body may end otherwise than as promised. What cannot fail pays for no place to keep a failure in: an
/// `Option` of an error type without values has no size.
fn may_fail<B: Body>(content_length: Option<u64>, size: &SizeHint) -> bool {
    size_of::<Option<B::Error>>() > 0 || content_length.is_some_and(|length| size.exact() != Some(length))
}
