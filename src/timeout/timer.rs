//! The one timer: lazy, reusable, and never armed while nothing has to be waited for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

pin_project! {
    /// A timer that costs nothing until it is first waited for, and is re-used for whatever comes next.
    pub(crate) struct Timer {
        #[pin]
        sleep: Option<Sleep>,
    }
}

/// The limit passed before the future was ready.
pub(crate) struct Expired;

impl Timer {
    pub(crate) const fn new() -> Self {
        Timer { sleep: None }
    }

    /// Waits until then: whoever goes on waiting says the same instant again.
    pub(crate) fn poll_until(self: Pin<&mut Self>, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let mut sleep = self.project().sleep;
        if sleep.as_ref().get_ref().as_ref().is_none_or(|sleep| sleep.deadline() != at) {
            if sleep.is_none() {
                sleep.set(Some(tokio::time::sleep_until(at)));
            }
            if let Some(sleep) = sleep.as_mut().as_pin_mut() {
                // Registers it, which a first `poll` would not do without a budget; see below.
                sleep.reset(at);
            }
        }
        let Some(sleep) = sleep.as_pin_mut() else { return Poll::Ready(()) };
        // Asked first: `poll` says "pending" in a task that has used up its cooperative budget, and one that is always
        // busy would never be timed out.
        if sleep.is_elapsed() { Poll::Ready(()) } else { sleep.poll(cx) }
    }

    /// Polls a future, and the timer only where the future is not ready: none is armed for an answer at once.
    #[inline]
    pub(crate) fn limit<F: Future>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        future: Pin<&mut F>,
        at: impl FnOnce() -> Instant,
    ) -> Poll<Result<F::Output, Expired>> {
        match future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_until(cx, at()).map(|()| Err(Expired)),
        }
    }
}
