//! The future: up to the response head.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::{TimeoutBody, Timer, layer::Limited};
use crate::{BoxError, Error, deadline::later, error::Limit};

pin_project! {
    /// The call of a [`Timeout`](super::Timeout) service.
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<F> {
        // `None` where the call came too late, and when it is over.
        #[pin]
        inner: Option<F>,
        #[pin]
        timer: Timer,
        limits: Limited,
        started: Instant,
        head: Option<HeadEnds>,
    }
}

/// What ends the wait for a response head.
#[derive(Clone, Copy)]
pub(super) enum HeadEnds {
    ByLimit(Instant, Limit),
    /// An outer deadline comes before every limit of this layer.
    ByDeadline(Instant),
}

impl HeadEnds {
    pub(super) fn of(limits: Limited, started: Instant, outer: Option<Instant>) -> Option<Self> {
        let limits = [limits.total.map(Limit::Total), limits.head.map(Limit::Head)];
        let own = limits.into_iter().flatten().min_by_key(|limit| limit.time());
        let own = own.map(|limit| (later(started, limit.time()), limit));
        match (own, outer) {
            (Some((at, limit)), outer) if outer.is_none_or(|outer| at <= outer) => Some(HeadEnds::ByLimit(at, limit)),
            (_, outer) => outer.map(HeadEnds::ByDeadline),
        }
    }

    pub(super) fn at(self) -> Instant {
        match self {
            HeadEnds::ByLimit(at, _) | HeadEnds::ByDeadline(at) => at,
        }
    }

    fn error(self) -> Error {
        match self {
            HeadEnds::ByLimit(_, limit) => Error::limit(limit),
            HeadEnds::ByDeadline(_) => Error::deadline(),
        }
    }
}

impl<F> TimeoutFuture<F> {
    pub(super) fn new(inner: Option<F>, limits: Limited, started: Instant, head: Option<HeadEnds>) -> Self {
        TimeoutFuture { inner, timer: Timer::new(), limits, started, head }
    }
}

impl<F, RB, E> Future for TimeoutFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Output = Result<Response<TimeoutBody<RB>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(this.head.map_or_else(Error::deadline, HeadEnds::error)));
        };
        let result = match *this.head {
            None => Ok(ready!(inner.poll(cx))),
            Some(head) => ready!(this.timer.limit(cx, inner, || head.at())).map_err(|_| head.error()),
        };
        // Whatever the inner call holds is let go, however long this future is kept.
        this.inner.set(None);
        let Limited { total, body_idle, .. } = *this.limits;
        Poll::Ready(match (result, *this.head) {
            (Ok(Ok(response)), _) => {
                let total = total.map(|total| (later(*this.started, total), total));
                Ok(response.map(|body| TimeoutBody::new(body, total, body_idle)))
            }
            // A retry layer below ran into the deadline that this layer had set.
            (Ok(Err(error)), Some(HeadEnds::ByLimit(_, limit))) => Err(Error::of_inner(error.into()).by_limit(limit)),
            (Ok(Err(error)), _) => Err(Error::of_inner(error.into())),
            (Err(error), _) => Err(error),
        })
    }
}
