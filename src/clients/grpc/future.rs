//! The future of a call.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tonic::Status;
use tower_service::Service;

use super::{RequestBody, ResponseBody, answer, attempt::Attempt, channel::OverGrpc, status};
use crate::{AnswerBody, BoxError, CallReport, Policy, policy::GrpcCode, retry::RetryFuture};

pin_project! {
    /// One call through a [`RetryChannel`](super::RetryChannel). Dropping it at any point releases all that it holds.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryChannelFuture<S, P, RB>
    where
        S: Service<Request<tonic::body::Body>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        RB: Body<Data = Bytes>,
        RB::Error: Into<BoxError>,
        RB: Unpin,
    {
        #[pin]
        retry: RetryFuture<Attempt<S>, OverGrpc<P>, RequestBody, ResponseBody<RB>>,
        stacked: bool,
    }
}

impl<S, P, RB> RetryChannelFuture<S, P, RB>
where
    S: Service<Request<tonic::body::Body>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    pub(super) fn new(retry: RetryFuture<Attempt<S>, OverGrpc<P>, RequestBody, ResponseBody<RB>>) -> Self {
        RetryChannelFuture { retry, stacked: false }
    }

    pub(super) fn stacked(retry: RetryFuture<Attempt<S>, OverGrpc<P>, RequestBody, ResponseBody<RB>>) -> Self {
        RetryChannelFuture { retry, stacked: true }
    }
}

impl<S, P, RB> Future for RetryChannelFuture<S, P, RB>
where
    S: Service<Request<tonic::body::Body>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    P: Policy,
    RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Output = Result<Response<AnswerBody<ResponseBody<RB>>>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.retry.poll(cx)).map_err(Status::from);
        Poll::Ready(if *this.stacked { answer } else { answer.and_then(translate) })
    }
}

/// What the caller gets of an answer. One that failed and of which there is something to report becomes a status that
/// leads to the report: tonic's client makes a status of the headers alone, and drops what else an answer holds.
fn translate<RB>(response: Response<RB>) -> Result<Response<RB>, Status> {
    let (mut head, body) = response.into_parts();
    let failed = GrpcCode::said(&head.headers).filter(|code| *code != GrpcCode::Ok);
    match (failed, head.extensions.get::<CallReport>()) {
        (Some(code), Some(report)) => Err(status::answered(&mut head.headers, code, report.clone())),
        _ => {
            answer::unlift(&mut head);
            Ok(Response::from_parts(head, body))
        }
    }
}
