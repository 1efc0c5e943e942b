//! The service.

use std::{
    mem,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::{AnswerBody, AttemptBody, CallReport, Replay, RetryFuture, future, guard, layer::OnStacking};
use crate::{BoxError, Error, Policy, hints::OutboundHints, policy::RequestHead};

/// A service that repeats requests; made by [`RetryLayer`](crate::RetryLayer).
#[derive(Clone, Debug)]
pub struct Retry<S, P> {
    inner: S,
    policy: P,
    on_stacking: OnStacking,
}

impl<S, P> Retry<S, P> {
    pub(super) fn new(inner: S, policy: P, on_stacking: OnStacking) -> Self {
        Retry { inner, policy, on_stacking }
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

impl<S, P, B, RB> Service<Request<B>> for Retry<S, P>
where
    S: Service<Request<AttemptBody<B>>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: Policy + Clone,
    B: Replay,
    RB: Body,
{
    type Response = Response<AnswerBody<RB>>;
    type Error = Error;
    type Future = RetryFuture<S, P, B, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(|error| Error::not_ready(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The instance that was made ready is the one that is called; a clone, not ready yet, takes its place.
        let clone = self.inner.clone();
        let service = mem::replace(&mut self.inner, clone);
        if guard::is_marked(request.extensions()) {
            return self.stacked(service, request);
        }
        let hints = OutboundHints::of(request.extensions());
        let head = RequestHead::of(&request);
        let plan = self.policy.plan(&head).held_to(&head);
        future::start(service, self.policy.clone(), plan, &hints, request)
    }
}

impl<S, P: Policy + Clone> Retry<S, P> {
    /// A request that another layer repeats already.
    #[cold]
    fn stacked<B, RB>(&self, service: S, request: Request<B>) -> RetryFuture<S, P, B, RB>
    where
        S: Service<Request<AttemptBody<B>>>,
        B: Replay,
        RB: Body,
    {
        match &self.on_stacking {
            OnStacking::Refuse => {
                let plan = self.policy.plan(&RequestHead::of(&request));
                let error = Error::stacked().with_call(plan, CallReport::of_stacked());
                future::refuse(service, self.policy.clone(), error)
            }
            OnStacking::PassOnce { .. } => {
                self.on_stacking.notice(&self.policy, &request);
                // The outer layer heeds a deadline among the extensions.
                future::pass_once(service, self.policy.clone(), request)
            }
        }
    }
}
