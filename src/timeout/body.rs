//! The response body, bounded in total and between frames.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::Timer;
use crate::{BoxError, Error, deadline::later, error::Limit};

pin_project! {
    /// A response body that ends with an error when it takes too long in total, or stays silent too long.
    ///
    /// The body is polled before the timer of its silence, so that a slow reader is not punished for it; the total is the
    /// reader's time too. Its error is [`redial::Error`](crate::Error), with the inner body's own untouched in `source()`.
    pub struct TimeoutBody<B> {
        #[pin]
        body: B,
        // Made when a frame has first to be waited for. Boxed, so that readers may move the body: `BodyExt::frame` and
        // most others ask for `Unpin`.
        timer: Option<Pin<Box<Timer>>>,
        total: Option<(Instant, Duration)>,
        idle: Option<Duration>,
        // What a frame is being waited for until.
        next: Option<(Instant, Limit)>,
        over: bool,
    }
}

impl<B> TimeoutBody<B> {
    pub(super) fn new(body: B, total: Option<(Instant, Duration)>, idle: Option<Duration>) -> Self {
        TimeoutBody { body, timer: None, total, idle, next: None, over: false }
    }

    /// The inner body, unlimited.
    pub fn into_inner(self) -> B {
        self.body
    }
}

impl<B: fmt::Debug> fmt::Debug for TimeoutBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutBody").field("body", &self.body).field("over", &self.over).finish_non_exhaustive()
    }
}

impl<B> Body for TimeoutBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, Error>>> {
        let this = self.project();
        if *this.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.next = None;
            // A body that always has a frame ready is over in time too; its end is not cut off.
            let late = this.total.filter(|(at, _)| matches!(frame, Some(Ok(_))) && Instant::now() >= *at);
            if let Some((_, total)) = late {
                *this.over = true;
                return Poll::Ready(Some(Err(Error::limit(Limit::Total(total)))));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(|error| Error::body(error.into()))));
        }
        let next = this.next.or_else(|| {
            let total = this.total.map(|(at, total)| (at, Limit::Total(total)));
            let idle = this.idle.map(|idle| (later(Instant::now(), idle), Limit::BodyIdle(idle)));
            total.into_iter().chain(idle).min_by_key(|(at, _)| *at)
        });
        *this.next = next;
        let Some((at, limit)) = next else { return Poll::Pending };
        let timer = this.timer.get_or_insert_with(|| Box::pin(Timer::new()));
        ready!(timer.as_mut().poll_until(cx, at));
        *this.over = true;
        Poll::Ready(Some(Err(Error::limit(limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
