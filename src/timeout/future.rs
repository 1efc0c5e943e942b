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
use crate::{BoxError, Deadline, Error, deadline::later, error::Limit};

pin_project! {
    /// The call of a [`Timeout`](super::Timeout) service.
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<F> {
        #[pin]
        inner: F,
        #[pin]
        timer: Timer,
        limits: Limited,
        started: Instant,
        outer: Option<Deadline>,
    }
}

impl<F> TimeoutFuture<F> {
    pub(super) fn new(inner: F, limits: Limited, started: Instant, outer: Option<Deadline>) -> Self {
        TimeoutFuture { inner, timer: Timer::new(), limits, started, outer }
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
        let this = self.project();
        let Limited { head, total, body_idle } = *this.limits;
        let own = match (head, total) {
            (Some(head), Some(total)) if total <= head => Some(Limit::Total(total)),
            (Some(head), _) => Some(Limit::Head(head)),
            (None, Some(total)) => Some(Limit::Total(total)),
            (None, None) => None,
        };
        let own = own.map(|limit| (later(*this.started, limit.time()), limit));
        let outer = this.outer.map(Deadline::instant).filter(|outer| own.is_none_or(|(own, _)| *outer < own));
        let result = match outer.or(own.map(|(at, _)| at)) {
            None => ready!(this.inner.poll(cx)),
            Some(at) => match ready!(this.timer.limit(cx, this.inner, || at)) {
                Ok(result) => result,
                Err(_) => {
                    let own = own.filter(|_| outer.is_none());
                    return Poll::Ready(Err(own.map_or_else(Error::deadline, |(_, limit)| Error::limit(limit))));
                }
            },
        };
        let total = total.map(|total| (later(*this.started, total), total));
        Poll::Ready(match result {
            Ok(response) => Ok(response.map(|body| TimeoutBody::new(body, total, body_idle))),
            Err(error) => Err(Error::of_inner(error.into())),
        })
    }
}
