//! The tape: what has streamed so far, kept so that it can be sent again.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use bytes::Buf;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::{BodyFailed, Replay, UploadRevoked};
use crate::BoxError;

/// How much is kept of a body that is not in memory already.
const CAP: usize = 64 * 1024;

/// How many frames are kept: a thousand tiny ones would hold far more memory than their bytes.
const FRAMES: usize = 1024;

/// One body, streaming through whichever attempt is the current one.
///
/// The tape, the body itself and the epoch live behind one lock, so that an attempt that is over can neither take a
/// frame from its successor nor put one on the tape twice.
pub(super) struct Tape<B: Body>(Arc<Mutex<Reel<B>>>);

struct Reel<B: Body> {
    source: Rest<B>,
    kept: Vec<Kept<B::Data>>,
    bytes: usize,
    /// The body outgrew the tape: nothing is kept, and it cannot be repeated.
    over: bool,
    /// The caller's body failed.
    failed: Option<BodyFailed>,
    /// Frames may have been taken from the source.
    started: bool,
    /// What the body said of itself before anything was taken from it. Each attempt begins with the same words, or it
    /// would be framed differently: a length is known once the body has ended, but was not in the first attempt.
    size: SizeHint,
    empty: bool,
    /// Which attempt may read. Raised to cut off an earlier one.
    epoch: u32,
    waker: Option<Waker>,
}

/// The rest of the caller's body.
enum Rest<B> {
    Here(Pin<Box<B>>),
    /// Being polled, outside the lock: the caller's code may do anything, panic or drop the call included.
    Out,
    /// It has ended or failed.
    Gone,
}

enum Kept<D> {
    Data(D),
    Trailers(HeaderMap),
}

impl<D: Clone> Kept<D> {
    fn to_frame(&self) -> Frame<D> {
        match self {
            Kept::Data(data) => Frame::data(data.clone()),
            Kept::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }
}

/// One attempt's reading of the tape, and then of the body.
pub(super) struct Play<B: Body> {
    reel: Arc<Mutex<Reel<B>>>,
    epoch: u32,
    /// The next kept frame to play.
    at: usize,
    begun: bool,
    /// Bytes that this attempt has taken.
    played: u64,
}

/// Of the caller's code only what tells and copies runs under the lock, never what polls or drops the body.
fn lock<B: Body>(reel: &Mutex<Reel<B>>) -> MutexGuard<'_, Reel<B>> {
    reel.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Replay> Tape<B> {
    pub(super) fn record(body: B) -> (Play<B>, Self) {
        let reel = Arc::new(Mutex::new(Reel {
            size: body.size_hint(),
            empty: body.is_end_stream(),
            source: Rest::Here(Box::pin(body)),
            kept: Vec::new(),
            bytes: 0,
            over: false,
            failed: None,
            started: false,
            epoch: 0,
            waker: None,
        }));
        (Play::of(&reel, 0), Tape(reel))
    }

    /// The same body from its start. Cuts off an earlier attempt.
    pub(super) fn replay(&self) -> Option<Play<B>> {
        self.revoke();
        let reel = lock(&self.0);
        reel.can_repeat().then(|| Play::of(&self.0, reel.epoch))
    }

    pub(super) fn revoke(&self) {
        let waker = {
            let mut reel = lock(&self.0);
            reel.epoch = reel.epoch.wrapping_add(1);
            reel.waker.take()
        };
        // Outside the lock: whoever is woken polls, and polling locks.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn can_repeat(&self) -> bool {
        lock(&self.0).can_repeat()
    }

    /// The error of the caller's body, where it failed.
    pub(super) fn failure(&self) -> Option<BodyFailed> {
        lock(&self.0).failed.clone()
    }

    pub(super) fn may_be_uploading(&self, surely_sent: u64) -> bool {
        let reel = lock(&self.0);
        reel.over || reel.bytes as u64 > surely_sent || !reel.source_ended()
    }
}

impl<B: Replay> Reel<B> {
    fn can_repeat(&self) -> bool {
        !self.over && self.failed.is_none()
    }

    fn source_ended(&self) -> bool {
        match &self.source {
            Rest::Here(source) => source.is_end_stream(),
            Rest::Out => false,
            Rest::Gone => true,
        }
    }

    /// Keeps a frame, or what was kept is given back, to be dropped.
    fn keep(&mut self, frame: &Frame<B::Data>, whole: bool) -> Vec<Kept<B::Data>> {
        if self.over {
            return Vec::new();
        }
        let size = frame.data_ref().map_or(0, Buf::remaining);
        self.bytes = self.bytes.saturating_add(size);
        let kept = match (frame.data_ref(), frame.trailers_ref()) {
            _ if !whole && (self.bytes > CAP || self.kept.len() >= FRAMES) => None,
            (Some(data), _) => Some(Kept::Data(data.clone())),
            (None, Some(trailers)) => Some(Kept::Trailers(trailers.clone())),
            // A kind of frame that we do not know cannot be copied.
            (None, None) => None,
        };
        match kept {
            Some(kept) => {
                self.kept.push(kept);
                Vec::new()
            }
            None => {
                self.over = true;
                std::mem::take(&mut self.kept)
            }
        }
    }
}

impl<B: Body> Play<B> {
    fn of(reel: &Arc<Mutex<Reel<B>>>, epoch: u32) -> Self {
        Play { reel: Arc::clone(reel), epoch, at: 0, begun: false, played: 0 }
    }
}

impl<B: Replay> Play<B> {
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let frame = ready!(self.poll_reel(cx));
        self.begun = true;
        if let Some(Ok(frame)) = &frame {
            let size = frame.data_ref().map_or(0, Buf::remaining);
            self.played = self.played.saturating_add(size as u64);
        }
        Poll::Ready(frame)
    }

    fn poll_reel(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut lease = {
            let mut reel = lock(&self.reel);
            if reel.epoch != self.epoch {
                return Poll::Ready(Some(Err(UploadRevoked.into())));
            }
            if let Some(failed) = &reel.failed {
                // Also where it failed in the hands of an attempt that was over: this is no end of the body.
                return Poll::Ready(Some(Err(failed.clone().into())));
            }
            if let Some(kept) = reel.kept.get(self.at) {
                self.at += 1;
                return Poll::Ready(Some(Ok(kept.to_frame())));
            }
            match std::mem::replace(&mut reel.source, Rest::Out) {
                Rest::Here(source) => Lease { reel: &self.reel, source: Some(source), polled: false },
                // An attempt that is over has it in hand just now, and wakes whoever waits here.
                Rest::Out => {
                    let before = reel.wake_later(cx);
                    drop(reel);
                    drop(before);
                    return Poll::Pending;
                }
                Rest::Gone => {
                    reel.source = Rest::Gone;
                    return Poll::Ready(None);
                }
            }
        };
        let (polled, size) = lease.poll_frame(cx);
        // What is replaced is dropped outside the lock: it is the caller's too.
        let mut before = (None, Vec::new());
        let mut reel = lock(&self.reel);
        // An attempt that is over hands nothing out; but what it took is on the tape for its successor.
        let over = reel.epoch != self.epoch;
        let result = match polled {
            Poll::Pending => {
                if !over {
                    before.0 = reel.wake_later(cx);
                }
                reel.take_back(lease.source.take());
                Poll::Pending
            }
            Poll::Ready(None) => {
                reel.take_back(None);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                let failed = BodyFailed::new(error.into());
                reel.failed = Some(failed.clone());
                reel.take_back(None);
                Poll::Ready(Some(Err(failed.into())))
            }
            Poll::Ready(Some(Ok(frame))) => {
                // A first frame that is the whole body is in memory already: kept whatever its size.
                let data = frame.data_ref().map(|data| data.remaining() as u64);
                let whole = !reel.started && data.is_some() && size == data;
                reel.started = true;
                before.1 = reel.keep(&frame, whole);
                if over && reel.over {
                    // It is on no tape: the attempt that goes on would be sent without it.
                    reel.failed =
                        Some(BodyFailed::new("the body outgrew what is kept of it between two attempts".into()));
                    reel.take_back(None);
                } else {
                    reel.take_back(lease.source.take());
                }
                self.at = reel.kept.len();
                Poll::Ready(Some(Ok(frame)))
            }
        };
        let waker = if over { reel.waker.take() } else { None };
        drop(reel);
        drop((lease, before));
        if let Some(waker) = waker {
            waker.wake();
        }
        if over { Poll::Ready(Some(Err(UploadRevoked.into()))) } else { result }
    }

    /// The body broke what its head had promised.
    pub(super) fn fail(&self, failed: &BodyFailed) {
        let source = {
            let mut reel = lock(&self.reel);
            if reel.epoch != self.epoch {
                return;
            }
            reel.failed = Some(failed.clone());
            std::mem::replace(&mut reel.source, Rest::Gone)
        };
        drop(source);
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let reel = lock(&self.reel);
        if !self.begun {
            return reel.empty;
        }
        reel.epoch == self.epoch && self.at >= reel.kept.len() && reel.source_ended()
    }

    /// What the body said at first, less what was taken since: exact where its own hint was.
    pub(super) fn size_hint(&self) -> SizeHint {
        let size = lock(&self.reel).size;
        let mut hint = SizeHint::new();
        hint.set_lower(size.lower().saturating_sub(self.played));
        if let Some(upper) = size.upper() {
            hint.set_upper(upper.saturating_sub(self.played));
        }
        hint
    }
}

impl<B: Body> Reel<B> {
    /// Returns the waker before: to drop it may drop a task.
    fn wake_later(&mut self, cx: &Context<'_>) -> Option<Waker> {
        match &self.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => self.waker.replace(cx.waker().clone()),
        }
    }

    /// The body comes back from being polled; `None`: it has ended.
    fn take_back(&mut self, source: Option<Pin<Box<B>>>) {
        self.source = source.map_or(Rest::Gone, Rest::Here);
    }
}

/// The body, taken off the reel to be polled.
struct Lease<'a, B: Body> {
    reel: &'a Mutex<Reel<B>>,
    source: Option<Pin<Box<B>>>,
    /// The poll has returned.
    polled: bool,
}

/// What the body yields, and the exact size that it gave before.
type Polled<B> = (Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>, Option<u64>);

impl<B: Body> Lease<'_, B> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Polled<B> {
        let Some(source) = self.source.as_mut() else { return (Poll::Ready(None), None) };
        let size = source.size_hint().exact();
        let frame = source.as_mut().poll_frame(cx);
        self.polled = true;
        (frame, size)
    }
}

impl<B: Body> Drop for Lease<'_, B> {
    /// A poll that has not returned has panicked. What it would have yielded is lost, and a repeat would be sent without
    /// it.
    fn drop(&mut self) {
        if self.polled {
            return;
        }
        let waker = {
            let mut reel = lock(self.reel);
            reel.failed = Some(BodyFailed::new("the body panicked".into()));
            reel.source = Rest::Gone;
            reel.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
