//! The future: attempts, and what lies between them.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::{AttemptBody, Replay, call::Call, guard, report::mark_stacked, settle::End};
use crate::{
    BoxError, Error, Policy,
    observe::{self, Phase},
    policy::Plan,
    timeout::Timer,
};

pin_project! {
    /// One call through a [`Retry`](super::Retry) service. Dropping it at any point releases all that it holds.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<S, P, B, RB>
    where
        S: Service<Request<AttemptBody<B>>>,
        B: Replay,
    {
        #[pin]
        state: State<S::Future, RB>,
        #[pin]
        timer: Timer,
        // `None` when the call is over: a service that was made ready and not called may hold a permit.
        service: Option<S>,
        policy: P,
        // `None`: the request is not this layer's to repeat.
        call: Option<Call<B>>,
    }

    impl<S, P, B, RB> PinnedDrop for RetryFuture<S, P, B, RB>
    where
        S: Service<Request<AttemptBody<B>>>,
        B: Replay,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let (Some(call), Some(phase)) = (this.call, this.state.as_ref().get_ref().phase()) {
                observe::cancelled(call.about(), call.attempt, phase);
                call.source.revoke();
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, RB> {
        // An attempt is in flight.
        Attempt { #[pin] response: F },
        // A failed response is let go: read to its end where that is soon, so that its connection is free again.
        Drain { #[pin] body: RB, left: usize, until: Instant, resume: Instant },
        Wait { resume: Instant },
        // Readiness is taken after the wait: a permit taken before would be held through it.
        Ready,
        // Stacked: sent once, with nothing of the policy applied.
        PassOnce { #[pin] response: F },
        // Stacked, and told to refuse that.
        Refused { error: Option<Error> },
        Done,
    }
}

impl<F, RB> State<F, RB> {
    /// What is lost when the call is dropped now, if anything.
    fn phase(&self) -> Option<Phase> {
        match self {
            State::Attempt { .. } => Some(Phase::InFlight),
            State::Drain { .. } => Some(Phase::Draining),
            State::Wait { .. } => Some(Phase::Waiting),
            State::Ready => Some(Phase::Readying),
            State::PassOnce { .. } | State::Refused { .. } | State::Done => None,
        }
    }
}

/// How much of a failed response is read to free its connection. A larger one is dropped with its connection.
pub(super) const DRAIN: usize = 1024 * 1024;

/// What a frame costs at least: endless empty frames end too.
const FRAME: usize = 64;

/// A call that this layer may repeat.
pub(super) fn start<S, P, B, RB>(mut service: S, policy: P, plan: Plan, request: Request<B>) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>> + Clone,
    B: Replay,
{
    let (mut call, mut request) = Call::new(plan, request);
    let state = if call.may_not_start() {
        // The readiness that the caller waited for is given back: it may be a permit.
        service = service.clone();
        State::Wait { resume: Instant::now() }
    } else {
        guard::mark(request.extensions_mut(), 1);
        call.attempt = 1;
        call.tell_end(request.extensions_mut());
        let response = call.reading.during(|| service.call(request));
        State::Attempt { response }
    };
    RetryFuture { state, timer: Timer::new(), service: Some(service), policy, call: Some(call) }
}

/// A request that an outer retry layer repeats already.
pub(super) fn pass_once<S, P, B, RB>(mut service: S, policy: P, request: Request<B>) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>>,
    B: Replay,
{
    let response = service.call(request.map(AttemptBody::once));
    RetryFuture { state: State::PassOnce { response }, timer: Timer::new(), service: Some(service), policy, call: None }
}

/// A request that an outer retry layer repeats already, and that was not to come here.
pub(super) fn refuse<S, P, B, RB>(service: S, policy: P, error: Error) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>>,
    B: Replay,
{
    RetryFuture {
        state: State::Refused { error: Some(error) },
        timer: Timer::new(),
        service: Some(service),
        policy,
        call: None,
    }
}

impl<S, P, B, RB> Future for RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    P: Policy,
    B: Replay,
    RB: Body,
{
    type Output = Result<Response<RB>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call else {
            let output = match this.state.as_mut().project() {
                StateProj::PassOnce { response } => mark_stacked(ready!(response.poll(cx)).map_err(Into::into)),
                StateProj::Refused { error } => Err(error.take().unwrap_or_else(Error::stacked)),
                _ => return finished(),
            };
            this.state.set(State::Done);
            return Poll::Ready(output);
        };
        loop {
            match this.state.as_mut().project() {
                StateProj::Attempt { response } => {
                    let polled = {
                        let _current = call.reading.enter();
                        this.timer.as_mut().limit(cx, response, || call.attempt_ends())
                    };
                    let result = ready!(polled);
                    let result = result.map(|result| result.map_err(Into::into));
                    match call.settle(this.policy, result) {
                        End::Return(output) => {
                            this.state.set(State::Done);
                            return Poll::Ready(output);
                        }
                        // Replacing the state drops the attempt: nothing of it is left when the wait begins.
                        End::Drain { body, until, resume } => {
                            this.state.set(State::Drain { body, left: DRAIN, until, resume });
                        }
                        End::Wait { resume } => this.state.set(State::Wait { resume }),
                    }
                }
                StateProj::Drain { body, left, until, resume } => {
                    let until = *until;
                    let drained = drain(body, left, cx).is_ready();
                    if !drained {
                        ready!(this.timer.as_mut().poll_until(cx, || until));
                    }
                    let resume = *resume;
                    this.timer.as_mut().disarm();
                    this.state.set(State::Wait { resume });
                }
                StateProj::Wait { resume } => {
                    let resume = *resume;
                    ready!(this.timer.as_mut().poll_until(cx, || resume));
                    match call.still_held() {
                        Ok(None) => this.state.set(State::Ready),
                        Ok(Some(resume)) => this.state.set(State::Wait { resume }),
                        Err(error) => {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                StateProj::Ready => {
                    let Some(service) = this.service.as_mut() else { return finished() };
                    let refusal = match service.poll_ready(cx) {
                        Poll::Ready(Ok(())) => {
                            this.timer.as_mut().disarm();
                            match call.next() {
                                Ok(request) => {
                                    let response = call.reading.during(|| service.call(request));
                                    this.state.set(State::Attempt { response });
                                    continue;
                                }
                                Err(error) => error,
                            }
                        }
                        Poll::Ready(Err(error)) => call.not_ready(error.into()),
                        Poll::Pending => {
                            ready!(this.timer.as_mut().poll_until(cx, || call.deadline()));
                            call.out_of_time()
                        }
                    };
                    this.state.set(State::Done);
                    *this.service = None;
                    return Poll::Ready(Err(refusal));
                }
                StateProj::PassOnce { .. } | StateProj::Refused { .. } | StateProj::Done => return finished(),
            }
        }
    }
}

/// For a future that is polled after its end: it never ends again.
fn finished<T>() -> Poll<T> {
    Poll::Pending
}

/// Reads a failed response to its end, unless it is too large.
fn drain<RB: Body>(mut body: Pin<&mut RB>, left: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        match ready!(body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, Buf::remaining).max(FRAME);
                match left.checked_sub(size) {
                    Some(rest) => *left = rest,
                    None => return Poll::Ready(()),
                }
                if body.is_end_stream() {
                    return Poll::Ready(());
                }
            }
            Some(Err(_)) | None => return Poll::Ready(()),
        }
    }
}
