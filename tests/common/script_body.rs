//! Response bodies that are counted while somebody holds them.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A response body: a text, and then its end, or silence.
#[derive(Clone, Debug, Default)]
pub struct ScriptBody {
    text: Bytes,
    silent: bool,
    pub(super) held: Option<Arc<Held>>,
}

impl ScriptBody {
    pub fn text(text: &'static str) -> Self {
        ScriptBody { text: Bytes::from_static(text.as_bytes()), ..Self::default() }
    }

    /// Never ends.
    pub fn silent() -> Self {
        ScriptBody { silent: true, ..Self::default() }
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::mem::take(&mut self.text) {
            text if !text.is_empty() => Poll::Ready(Some(Ok(Frame::data(text)))),
            _ if self.silent => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty() && !self.silent
    }

    fn size_hint(&self) -> SizeHint {
        if self.silent { SizeHint::default() } else { SizeHint::with_exact(self.text.len() as u64) }
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
