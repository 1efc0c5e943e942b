//! The future: attempts, and what lies between them.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::{
    AnswerBody, AttemptBody, Replay,
    call::Call,
    drain::{self, drain},
    report::mark_stacked,
    settle::End,
};
use crate::{
    BoxError, Error, Policy,
    hints::OutboundHints,
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
        RB: Body,
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
        RB: Body,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let (Some(call), Some(phase)) = (this.call, this.state.as_ref().get_ref().phase()) {
                if !call.course.is_part() {
                    observe::cancelled(call.course.about(), call.course.attempt, phase);
                }
                call.source.revoke();
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, RB>
    where
        RB: Body,
    {
        // An attempt is in flight.
        Attempt { #[pin] response: F },
        // It was answered, and the policy asks for the beginning of the answer's body.
        Look { response: Option<Box<Response<AnswerBody<RB>>>> },
        // A failed response is let go: read to its end where that is soon, so that its connection is free again.
        Drain { #[pin] body: AnswerBody<RB>, left: usize, until: Instant, resume: Instant },
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

impl<F, RB: Body> State<F, RB> {
    /// What is lost when the call is dropped now, if anything.
    fn phase(&self) -> Option<Phase> {
        match self {
            State::Attempt { .. } | State::Look { .. } => Some(Phase::InFlight),
            State::Drain { .. } => Some(Phase::Draining),
            State::Wait { .. } => Some(Phase::Waiting),
            State::Ready => Some(Phase::Readying),
            State::PassOnce { .. } | State::Refused { .. } | State::Done => None,
        }
    }
}

/// A call that this layer may repeat.
#[inline]
pub(super) fn start<S, P, B, RB>(
    mut service: S,
    policy: P,
    plan: Plan,
    hints: &OutboundHints,
    request: Request<B>,
) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>> + Clone,
    B: Replay,
    RB: Body,
{
    let (parts, body) = request.into_parts();
    let (mut call, body) = Call::new(plan, &parts, body, hints);
    if call.course.may_not_start() {
        // The readiness that the caller waited for is given back: it may be a permit.
        let (service, state) = (service.clone(), State::Wait { resume: Instant::now() });
        return RetryFuture { state, timer: Timer::new(), service: Some(service), policy, call: Some(call) };
    }
    let mut request = Request::from_parts(parts, body);
    call.begin(request.extensions_mut());
    let _current = call.enter();
    RetryFuture {
        // Made where it will be: futures are large.
        state: State::Attempt { response: service.call(request) },
        timer: Timer::new(),
        service: Some(service),
        policy,
        call: Some(call),
    }
}

/// A request that an outer retry layer repeats already.
pub(super) fn pass_once<S, P, B, RB>(mut service: S, policy: P, request: Request<B>) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>>,
    B: Replay,
    RB: Body,
{
    let response = service.call(request.map(AttemptBody::once));
    let state = State::PassOnce { response };
    RetryFuture { state, timer: Timer::new(), service: Some(service), policy, call: None }
}

/// A request that an outer retry layer repeats already, and that was not to come here.
pub(super) fn refuse<S, P, B, RB>(service: S, policy: P, error: Error) -> RetryFuture<S, P, B, RB>
where
    S: Service<Request<AttemptBody<B>>>,
    B: Replay,
    RB: Body,
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
    type Output = Result<Response<AnswerBody<RB>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(call) = this.call else {
            let output = match this.state.as_mut().project() {
                StateProj::PassOnce { response } => {
                    mark_stacked(ready!(response.poll(cx)).map_err(Into::into)).map(with_body)
                }
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
                        let _current = call.enter();
                        response.poll(cx)
                    };
                    let end = match polled {
                        Poll::Ready(Ok(mut response)) => match call.answered(this.policy, &mut response) {
                            None => {
                                this.state.set(State::Done);
                                return Poll::Ready(Ok(with_body(response)));
                            }
                            Some(verdict) => call.declined(with_body(response), verdict),
                        },
                        Poll::Ready(Err(error)) => call.unanswered(this.policy, error.into()),
                        Poll::Pending => {
                            // Armed only now: an answer at once needs no timer.
                            ready!(this.timer.as_mut().poll_until(cx, call.course.attempt_ends()));
                            call.timed_out(this.policy)
                        }
                    };
                    if let Some(output) = State::after(this.state.as_mut(), end) {
                        return Poll::Ready(output);
                    }
                }
                StateProj::Look { response } => {
                    let Some(looked) = response.as_mut() else { return finished() };
                    if looked.body_mut().poll_look(cx).is_pending() {
                        // As much of the attempt's time as is left: what came until then is what is known.
                        ready!(this.timer.as_mut().poll_until(cx, call.course.attempt_ends()));
                    }
                    let Some(looked) = response.take() else { return finished() };
                    if let Some(output) = State::after(this.state.as_mut(), call.looked(this.policy, *looked)) {
                        return Poll::Ready(output);
                    }
                }
                StateProj::Drain { body, left, until, resume } => {
                    let until = *until;
                    let drained = drain(body, left, cx).is_ready();
                    if !drained {
                        ready!(this.timer.as_mut().poll_until(cx, until));
                    }
                    let resume = *resume;
                    this.state.set(State::Wait { resume });
                }
                StateProj::Wait { resume } => {
                    let resume = *resume;
                    ready!(this.timer.as_mut().poll_until(cx, resume));
                    match call.course.still_held() {
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
                        Poll::Ready(Ok(())) => match call.next() {
                            Ok(request) => {
                                let response = {
                                    let _current = call.enter();
                                    service.call(request)
                                };
                                this.state.set(State::Attempt { response });
                                continue;
                            }
                            Err(error) => error,
                        },
                        Poll::Ready(Err(error)) => call.not_ready(error.into()),
                        Poll::Pending => {
                            ready!(this.timer.as_mut().poll_until(cx, call.course.deadline()));
                            call.course.out_of_time()
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

fn with_body<RB: Body>(response: Response<RB>) -> Response<AnswerBody<RB>> {
    response.map(AnswerBody::whole)
}

impl<F, RB: Body> State<F, RB> {
    /// What follows the end of an attempt. Replacing the state drops it: nothing of it is left when the wait begins.
    fn after(mut state: Pin<&mut Self>, end: End<RB>) -> Option<Result<Response<AnswerBody<RB>>, Error>> {
        let (next, output) = match end {
            End::Return(output) => (State::Done, Some(output)),
            End::Look(response) => (State::Look { response: Some(response) }, None),
            End::Drain { body, until, resume } => (State::Drain { body, left: drain::MOST, until, resume }, None),
            End::Wait { resume } => (State::Wait { resume }, None),
        };
        state.set(next);
        output
    }
}

/// For a future that is polled after its end: it never ends again.
fn finished<T>() -> Poll<T> {
    Poll::Pending
}
