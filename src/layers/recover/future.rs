//! The future: the call, and what is made of its failure.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Method, Response, Uri};
use pin_project_lite::pin_project;

use super::{Failure, RecoverBody, Which};
use crate::{BoxError, Error};

pin_project! {
    /// The call of a [`Recover`](super::Recover) service.
    #[must_use = "futures do nothing unless polled"]
    pub struct RecoverFuture<F, H> {
        #[pin]
        state: State<F>,
        handler: H,
        which: Which,
        method: Method,
        uri: Uri,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Call { #[pin] inner: F },
        NotReady { error: Option<Error> },
    }
}

impl<F, H> RecoverFuture<F, H> {
    pub(super) fn new(inner: Result<F, Error>, handler: H, which: Which, method: Method, uri: Uri) -> Self {
        let state = match inner {
            Ok(inner) => State::Call { inner },
            Err(error) => State::NotReady { error: Some(error) },
        };
        RecoverFuture { state, handler, which, method, uri }
    }
}

impl<F, H, RB, IE, E> Future for RecoverFuture<F, H>
where
    F: Future<Output = Result<Response<RB>, IE>>,
    IE: Into<BoxError>,
    H: Fn(Failure<RB>) -> Result<Response<RecoverBody<RB>>, E>,
{
    type Output = Result<Response<RecoverBody<RB>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match this.state.project() {
            StateProj::Call { inner } => ready!(inner.poll(cx)).map_err(|error| Error::of_inner(error.into())),
            // After its end it never ends again.
            StateProj::NotReady { error } => Err(ready!(error.take().map_or(Poll::Pending, Poll::Ready))),
        };
        Poll::Ready(match Failure::of(result, *this.which, this.method.clone(), this.uri.clone()) {
            Ok(failure) => (this.handler)(failure),
            Err(answer) => Ok(answer.map(RecoverBody::inner)),
        })
    }
}
