//! Below the retry layer: one attempt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::{
    Commit, RequestBody, ResponseBody,
    boxed::boxed,
    headers::{self, Asked},
    reading::Reading,
};
use crate::{
    AttemptBody, BoxError,
    fault::{Links, peek},
    policy::GrpcCode,
    retry::AttemptEnds,
    timeout::Timer,
};

/// By so little the clocks of two timers that were set for one instant may differ.
const SAME_INSTANT: Duration = Duration::from_millis(10);

/// One attempt: its headers, its body boxed, and its answer read until it is the caller's.
#[derive(Clone, Debug)]
pub struct Attempt<S> {
    inner: S,
}

impl<S> Attempt<S> {
    pub(super) fn new(inner: S) -> Self {
        Attempt { inner }
    }

    pub(super) fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, RB> Service<Request<AttemptBody<RequestBody>>> for Attempt<S>
where
    S: Service<Request<tonic::body::Body>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Response = Response<ResponseBody<RB>>;
    type Error = BoxError;
    type Future = AttemptFuture<S::Future, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<AttemptBody<RequestBody>>) -> Self::Future {
        let commit = request.extensions().get().copied().unwrap_or(Commit::Head);
        let ends = request.extensions().get().map(|AttemptEnds(ends)| *ends);
        let asked = request.extensions().get().map(|Asked(asked)| *asked);
        let told = headers::set(&mut request, commit, ends);
        let response = self.inner.call(request.map(boxed));
        AttemptFuture { state: State::Calling { response }, timer: Timer::new(), commit, ends, asked, told }
    }
}

pin_project! {
    /// The call of an [`Attempt`].
    #[must_use = "futures do nothing unless polled"]
    pub struct AttemptFuture<F, RB> {
        #[pin]
        state: State<F, RB>,
        #[pin]
        timer: Timer,
        commit: Commit,
        ends: Option<Instant>,
        // By the caller itself.
        asked: Option<Instant>,
        // What the peer was told of when the time is up.
        told: Option<Instant>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, RB> {
        Calling { #[pin] response: F },
        // The head is there, and what follows is read until the answer is the caller's.
        Reading { reading: Option<Reading<RB>> },
        // Somebody else's timer went off at the time that was told. The retry layer's own, set for then or earlier, is
        // about to.
        TimedOut,
    }
}

type Answer<RB> = Result<Response<ResponseBody<RB>>, BoxError>;

impl<F, RB, E> Future for AttemptFuture<F, RB>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Output = Answer<RB>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer<RB>> {
        let mut this = self.project();
        loop {
            let answer = match this.state.as_mut().project() {
                StateProj::Calling { response } => match ready!(response.poll(cx)) {
                    Ok(response) => {
                        let reading = Reading::new(response, *this.ends, *this.asked);
                        if *this.commit == Commit::Head || reading.is_known() {
                            Ok(reading.hand_on())
                        } else {
                            this.state.set(State::Reading { reading: Some(reading) });
                            continue;
                        }
                    }
                    Err(error) => Err(error.into()),
                },
                StateProj::Reading { reading } => {
                    let Some(now) = reading else { return Poll::Pending };
                    let end = match now.poll(*this.commit, cx) {
                        Poll::Ready(end) => end,
                        Poll::Pending if *this.commit == Commit::Message => {
                            let until = now.patient_until;
                            ready!(this.timer.as_mut().poll_until(cx, until));
                            Ok(())
                        }
                        Poll::Pending => return Poll::Pending,
                    };
                    let Some(reading) = reading.take() else { return Poll::Pending };
                    end.map(|()| reading.hand_on())
                }
                StateProj::TimedOut => return Poll::Pending,
            };
            if is_timeout(&answer) && is_now(*this.told) {
                this.state.set(State::TimedOut);
                return Poll::Pending;
            }
            return Poll::Ready(answer);
        }
    }
}

/// Whether the time was up, by tonic's timer or the server's: both were set by our own `grpc-timeout`.
fn is_timeout<RB>(answer: &Answer<RB>) -> bool {
    match answer {
        Ok(response) => {
            matches!(GrpcCode::said(response.headers()), Some(GrpcCode::Cancelled | GrpcCode::DeadlineExceeded))
        }
        Err(error) => Links::of(&**error).any(|link| peek::<tonic::TimeoutExpired>(link).is_some()),
    }
}

fn is_now(told: Option<Instant>) -> bool {
    told.is_some_and(|told| told.saturating_duration_since(Instant::now()) < SAME_INSTANT)
}
