//! Above the retry layer: the service that a generated client is given.

use std::{
    fmt,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tonic::Status;
use tower_layer::Layer;
use tower_service::Service;

use super::{Commit, RequestBody, ResponseBody, RetryChannelFuture, attempt::Attempt, headers::Asked, timeout};
use crate::{
    AnswerBody, BoxError, Deadline, Plan, Policy, RequestHead, RetryLayer, Verdict, attempt_number, policy::Outcome,
    retry::Retry,
};

/// Puts a channel under a retry layer, for a generated client: `OrdersClient::new(redial::grpc::channel(channel,
/// policy))`. See [the module](super) for what it does.
pub fn channel<S, P: Clone>(channel: S, policy: P) -> RetryChannel<S, P> {
    RetryChannel { retry: RetryLayer::new(OverGrpc(policy)).layer(Attempt::new(channel)), commit: None }
}

/// A channel that repeats calls; made by [`channel`].
///
/// A service over tonic's body whose error is a [`Status`]. Cheap to clone where its channel and policy are.
#[derive(Clone)]
pub struct RetryChannel<S, P> {
    retry: Retry<Attempt<S>, OverGrpc<P>>,
    commit: Option<Commit>,
}

impl<S, P> RetryChannel<S, P> {
    /// From when on an answer is the caller's, for the requests that do not say so themselves: [`Commit::Status`] for a
    /// service whose methods all answer with one message. Default: it follows from the request, see [`Commit`].
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = Some(commit);
        self
    }

    /// The channel below.
    pub fn get_ref(&self) -> &S {
        self.retry.get_ref().get_ref()
    }
}

impl<S, P> fmt::Debug for RetryChannel<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryChannel").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl<S, P, RB> Service<Request<tonic::body::Body>> for RetryChannel<S, P>
where
    S: Service<Request<tonic::body::Body>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: Policy + Clone,
    RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Response = Response<AnswerBody<ResponseBody<RB>>>;
    type Error = Status;
    type Future = RetryChannelFuture<S, P, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.retry.poll_ready(cx).map_err(Status::from)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        if attempt_number(request.extensions()).is_some() {
            // Within another's attempt, which has said and will read all of this.
            return RetryChannelFuture::stacked(self.retry.call(request.map(RequestBody::unseen)));
        }
        let (mut head, body) = request.into_parts();
        if let Some(timeout) = timeout::read(&head.headers) {
            let asked = Deadline::after(timeout);
            let outer = head.extensions.get().map_or(asked, |outer| asked.min(*outer));
            head.extensions.insert(outer);
            head.extensions.insert(Asked(asked.instant()));
        }
        let body = RequestBody::look(body);
        let by_request = if body.is_whole() { Commit::Message } else { Commit::Head };
        let commit = head.extensions.get().copied().or(self.commit).unwrap_or(by_request);
        head.extensions.insert(commit);
        RetryChannelFuture::new(self.retry.call(Request::from_parts(head, body)))
    }
}

/// A policy whose plans are for calls of gRPC.
#[derive(Clone)]
pub struct OverGrpc<P>(P);

impl<P: Policy> Policy for OverGrpc<P> {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        self.0.plan(head).over_grpc()
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        self.0.judge(plan, outcome)
    }
}
