//! Response bodies that are counted while somebody holds them.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A response body: a text, and then what follows.
#[derive(Clone, Debug, Default)]
pub struct ScriptBody {
    text: Bytes,
    then: Then,
    pub(super) held: Option<Arc<Held>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Then {
    #[default]
    End,
    Silence,
    Failure,
    /// Frame after frame.
    More,
}

impl ScriptBody {
    pub fn text(text: &'static str) -> Self {
        ScriptBody { text: Bytes::from_static(text.as_bytes()), ..Self::default() }
    }

    /// Never ends.
    pub fn silent() -> Self {
        ScriptBody { then: Then::Silence, ..Self::default() }
    }

    /// Never ends, and never rests.
    pub fn endless() -> Self {
        ScriptBody { then: Then::More, ..Self::default() }
    }

    /// Says nothing more after its text.
    pub fn stalling(mut self) -> Self {
        self.then = Then::Silence;
        self
    }

    /// Breaks after its text.
    pub fn failing(mut self) -> Self {
        self.then = Then::Failure;
        self
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(text))));
        }
        match self.then {
            Then::End => Poll::Ready(None),
            Then::Silence => Poll::Pending,
            Then::Failure => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Then::More => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 4096]))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty() && self.then == Then::End
    }

    fn size_hint(&self) -> SizeHint {
        if self.then == Then::End { SizeHint::with_exact(self.text.len() as u64) } else { SizeHint::default() }
    }
}

/// Counts something while it lives.
#[derive(Debug)]
pub struct Held(Arc<AtomicUsize>);

impl Held {
    pub(super) fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Held(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
