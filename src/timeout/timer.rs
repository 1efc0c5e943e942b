//! The one timer: lazy, reusable, and never armed while nothing has to be waited for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

pin_project! {
    /// A timer that costs nothing until it is first waited for, and is re-used for whatever comes next.
    pub(crate) struct Timer {
        #[pin]
        sleep: Option<Sleep>,
        armed: bool,
    }
}

/// The limit passed before the future was ready.
pub(crate) struct Expired;

impl Timer {
    pub(crate) const fn new() -> Self {
        Timer { sleep: None, armed: false }
    }

    /// Waits until then. `at` is asked once; call [`disarm`](Self::disarm) before waiting for something else.
    pub(crate) fn poll_until(self: Pin<&mut Self>, cx: &mut Context<'_>, at: impl FnOnce() -> Instant) -> Poll<()> {
        let mut this = self.project();
        if !*this.armed {
            let at = at();
            if this.sleep.is_none() {
                this.sleep.set(Some(tokio::time::sleep_until(at)));
            }
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                // Registers it, which a first `poll` would not do without a budget; see below.
                sleep.reset(at);
            }
            *this.armed = true;
        }
        let Some(sleep) = this.sleep.as_pin_mut() else { return Poll::Ready(()) };
        // Asked first: `poll` says "pending" in a task that has used up its cooperative budget, and one that is always
        // busy would never be timed out.
        if !sleep.is_elapsed() {
            ready!(sleep.poll(cx));
        }
        *this.armed = false;
        Poll::Ready(())
    }

    /// Polls a future, and the timer only where the future is not ready: none is armed for an answer at once.
    pub(crate) fn limit<F: Future>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        future: Pin<&mut F>,
        at: impl FnOnce() -> Instant,
    ) -> Poll<Result<F::Output, Expired>> {
        match future.poll(cx) {
            Poll::Ready(output) => {
                self.disarm();
                Poll::Ready(Ok(output))
            }
            Poll::Pending => self.poll_until(cx, at).map(|()| Err(Expired)),
        }
    }

    pub(crate) fn disarm(self: Pin<&mut Self>) {
        *self.project().armed = false;
    }
}
