//! The future: up to the response head.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{ResumeBody, Settings, request::Asked};

pin_project! {
    /// The call of a [`Resume`](super::Resume) service.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResumeFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        response: S::Future,
        // `None`: this is none whose answer is resumed.
        again: Option<(S, Asked, Arc<Settings>)>,
    }
}

impl<S: Service<Request<B>>, B> ResumeFuture<S, B> {
    pub(super) fn new(response: S::Future, again: Option<(S, Asked, Arc<Settings>)>) -> Self {
        ResumeFuture { response, again }
    }
}

impl<S, B, RB> Future for ResumeFuture<S, B>
where
    S: Service<Request<B>, Response = Response<RB>>,
    RB: Body,
{
    type Output = Result<Response<ResumeBody<S, B, RB>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.response.poll(cx));
        let again = this.again.take();
        Poll::Ready(result.map(|response| ResumeBody::of(response, again)))
    }
}
