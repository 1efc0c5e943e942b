//! Futures that run with hints of their own.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use crate::hints::OutboundHints;

pin_project! {
    /// A future within which other [`OutboundHints`] hold: made by [`OutboundHints::scope`] and [`independent`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Scoped<F> {
        #[pin]
        future: F,
        scope: Scope,
    }
}

#[derive(Debug)]
enum Scope {
    /// Beside what holds already.
    Tightened(OutboundHints),
    /// Instead of what holds already.
    NewPath(OutboundHints),
    Independent,
}

impl<F> Scoped<F> {
    pub(crate) fn tightened(hints: OutboundHints, future: F) -> Self {
        Scoped { future, scope: Scope::Tightened(hints) }
    }

    pub(crate) fn new_path(hints: OutboundHints, future: F) -> Self {
        Scoped { future, scope: Scope::NewPath(hints) }
    }
}

/// Excepts calls from whatever path they are made on: a [`redial::retry`](fn@crate::retry) around them, or a caller that
/// retries by itself ([`OutboundHints`]). They repeat by themselves, by their own policy and budget; a caller's
/// deadline still holds.
///
/// For what serves more than the path it was needed on, such as the fetch of a token:
///
/// ```
/// # async fn fetch_token() -> Result<String, redial::Error> { Ok(String::new()) }
/// # async fn example() -> Result<(), redial::Error> {
/// let token = redial::independent(async { fetch_token().await }).await?;
/// # Ok(()) }
/// ```
///
/// What counts is where the layer is called. `service.oneshot(request)` calls it when it is polled, and may be given as
/// it is; `service.call(request)` calls it at once, before this could except it: write it within an `async` block.
pub fn independent<F: Future>(future: F) -> Scoped<F> {
    Scoped { future, scope: Scope::Independent }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let hints = match this.scope {
            Scope::Tightened(hints) => OutboundHints::current().and(*hints),
            Scope::NewPath(hints) => *hints,
            Scope::Independent => OutboundHints::current().independent(),
        };
        let _restore = hints.enter();
        this.future.poll(cx)
    }
}
