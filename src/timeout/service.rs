//! The service.

use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::{TimeoutBody, TimeoutFuture, future::HeadEnds, layer::Limited};
use crate::{BoxError, Deadline, Error, OutboundHints};
#[cfg(feature = "contract")]
use crate::{RequestHead, contract::Contract};

/// A service whose calls are bounded in time; made by [`TimeoutLayer`](crate::TimeoutLayer).
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
    limits: Limited,
    #[cfg(feature = "contract")]
    contract: Option<Contract>,
}

impl<S> Timeout<S> {
    pub(super) fn new(inner: S, limits: Limited, #[cfg(feature = "contract")] contract: Option<Contract>) -> Self {
        Timeout {
            inner,
            limits,
            #[cfg(feature = "contract")]
            contract,
        }
    }

    /// The limits of this request.
    #[cfg(feature = "contract")]
    fn limits<B>(&self, request: &Request<B>) -> Limited {
        let Some(contract) = &self.contract else { return self.limits };
        let (head, body_idle) = contract.limits(&RequestHead::of(request));
        let Limited { head: own_head, total, body_idle: own_body_idle } = self.limits;
        Limited { head: own_head.or(Some(head)), total, body_idle: own_body_idle.or(body_idle) }
    }

    #[cfg(not(feature = "contract"))]
    fn limits<B>(&self, _: &Request<B>) -> Limited {
        self.limits
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to be changed in place.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service, taken out.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, RB> Service<Request<B>> for Timeout<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Response = Response<TimeoutBody<RB>>;
    type Error = Error;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(|error| Error::not_ready(error.into()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let started = Instant::now();
        let hinted = OutboundHints::of(request.extensions()).deadline();
        let outer = [request.extensions().get().copied(), hinted].into_iter().flatten().min();
        let outer = outer.map(Deadline::instant);
        let limits = self.limits(&request);
        let head = HeadEnds::of(limits, started, outer);
        // What comes too late is not sent.
        let late = head.is_some_and(|head| head.at() <= started);
        // Whatever is inside stops early by itself, instead of being cut off.
        if let Some(HeadEnds::ByLimit(at, _)) = head {
            request.extensions_mut().insert(Deadline::at(at));
        }
        let inner = (!late).then(|| self.inner.call(request));
        TimeoutFuture::new(inner, limits, started, head)
    }
}
