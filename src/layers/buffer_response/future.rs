//! The future: up to the end of the body, or to the limit.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body;
use pin_project_lite::pin_project;

use super::BufferedBody;
use crate::{BoxError, Error};

pin_project! {
    /// The call of a [`BufferResponse`](super::BufferResponse) service.
    #[must_use = "futures do nothing unless polled"]
    pub struct BufferResponseFuture<F, RB>
    where
        RB: Body,
    {
        #[pin]
        state: State<F, RB>,
        // How much may still be kept. `None`: nothing is buffered.
        left: Option<usize>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, RB>
    where
        RB: Body,
    {
        Head { #[pin] response: F },
        Body { response: Option<Response<BufferedBody<RB>>> },
    }
}

impl<F, RB: Body> BufferResponseFuture<F, RB> {
    pub(super) fn new(response: F, limit: Option<usize>) -> Self {
        BufferResponseFuture { state: State::Head { response }, left: limit }
    }
}

impl<F, RB, E> Future for BufferResponseFuture<F, RB>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Result<Response<BufferedBody<RB>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Head { response } => {
                    let result = ready!(response.poll(cx)).map(|response| response.map(BufferedBody::unread));
                    if let (Ok(response), Some(limit)) = (&result, *this.left) {
                        *this.left = is_to_be_read(response, limit).then_some(limit);
                    }
                    // Whatever the inner call holds is let go before the body is waited for.
                    match result {
                        Ok(response) => this.state.set(State::Body { response: Some(response) }),
                        Err(error) => {
                            this.state.set(State::Body { response: None });
                            return Poll::Ready(Err(Error::of_attempt(error.into())));
                        }
                    }
                }
                StateProj::Body { response } => {
                    if let (Some(filling), Some(left)) = (response.as_mut(), this.left.as_mut()) {
                        if let Err(error) = ready!(filling.body_mut().poll_fill(left, cx)) {
                            *response = None;
                            return Poll::Ready(Err(Error::of_broken_attempt(error.into())));
                        }
                    }
                    // After its end it never ends again.
                    return response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)));
                }
            }
        }
    }
}

fn is_to_be_read<RB: Body>(response: &Response<BufferedBody<RB>>, limit: usize) -> bool {
    let told_to_wait = response.headers().contains_key(header::RETRY_AFTER);
    let fits = response.body().rest_is_at_least() <= limit as u64;
    response.status().is_success() && !told_to_wait && fits && !is_endless(response.headers())
}

/// Types of content that are sent for as long as somebody listens.
const ENDLESS: [&[u8]; 2] = [b"text/event-stream", b"multipart/x-mixed-replace"];

fn is_endless(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default().trim_ascii_start();
    ENDLESS.iter().any(|endless| kind.get(..endless.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(endless)))
}
