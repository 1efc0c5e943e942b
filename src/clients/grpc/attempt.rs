//! Below the retry layer: one attempt.

use std::{
    cell::Cell,
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Request, Response, response::Parts};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::{
    Commit, RequestBody,
    answer::{self, AnswerBody, AnswerFailed, GRPC_STATUS},
    commit::{HELD, PATIENCE},
    timeout::{self, GRPC_TIMEOUT},
};
use crate::{
    AttemptBody, BoxError, attempt_number,
    fault::{Links, peek},
    policy::GrpcCode,
    retry::AttemptEnds,
    timeout::Timer,
};

const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// What an empty frame costs of what may be held.
const FRAME: usize = 64;

/// By so little the clocks of two timers that were set for one instant may differ.
const SAME_INSTANT: Duration = Duration::from_millis(10);

/// When the caller's own `grpc-timeout` is over.
#[derive(Clone, Copy)]
pub(super) struct Asked(pub(super) Instant);

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
    type Response = Response<AnswerBody<RB>>;
    type Error = BoxError;
    type Future = AttemptFuture<S::Future, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<AttemptBody<RequestBody>>) -> Self::Future {
        let commit = request.extensions().get().copied().unwrap_or(Commit::Head);
        let ends = request.extensions().get().map(|AttemptEnds(ends)| *ends);
        let told = set_headers(&mut request, commit, ends);
        let response = self.inner.call(request.map(boxed));
        AttemptFuture { state: State::Calling { response }, timer: Timer::new(), commit, told }
    }
}

/// What this attempt says of itself; among it, when its time is up.
fn set_headers<B>(request: &mut Request<B>, commit: Commit, ends: Option<Instant>) -> Option<Instant> {
    let asked = request.extensions().get().map(|Asked(asked)| *asked);
    let previous = attempt_number(request.extensions()).unwrap_or(1).saturating_sub(1);
    let told = match commit {
        Commit::Status => ends.into_iter().chain(asked).min(),
        // The attempt ends with the head, or the first message; the server would stop the stream that follows.
        Commit::Head | Commit::Message => asked,
    };
    let headers = request.headers_mut();
    match told {
        Some(told) => {
            drop(headers.insert(GRPC_TIMEOUT, timeout::print(told.saturating_duration_since(Instant::now()))))
        }
        None => drop(headers.remove(GRPC_TIMEOUT)),
    }
    match previous {
        0 => drop(headers.remove(PREVIOUS_ATTEMPTS)),
        previous => drop(headers.insert(PREVIOUS_ATTEMPTS, previous.into())),
    }
    told
}

/// tonic's channel takes one type of body.
fn boxed(body: AttemptBody<RequestBody>) -> tonic::body::Body {
    tonic::body::Body::new(Unasked { body, asked: Cell::new(false) })
}

pin_project! {
    // tonic asks a body whether it has ended when it boxes it. An attempt's body takes that for a look by somebody who may
    // send it, after which no error proves that it was never sent: so that one question is not passed on.
    struct Unasked {
        #[pin]
        body: AttemptBody<RequestBody>,
        asked: Cell<bool>,
    }
}

impl Body for Unasked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.asked.replace(true) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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

struct Reading<RB> {
    head: Parts,
    held: VecDeque<Frame<Bytes>>,
    cost: usize,
    rest: RB,
    since: Instant,
}

type Answer<RB> = Result<Response<AnswerBody<RB>>, BoxError>;

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
                        let reading = Reading::new(response);
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
                            let until = now.since + PATIENCE;
                            ready!(this.timer.as_mut().poll_until(cx, || until));
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

impl<RB: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Reading<RB> {
    fn new(response: Response<RB>) -> Self {
        let (head, rest) = response.into_parts();
        Reading { head, held: VecDeque::new(), cost: 0, rest, since: Instant::now() }
    }

    /// The head says all: a status alone, or one of HTTP that is somebody else's.
    fn is_known(&self) -> bool {
        self.head.status != http::StatusCode::OK || self.head.headers.contains_key(GRPC_STATUS)
    }

    /// Reads until the answer is the caller's.
    fn poll(&mut self, commit: Commit, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.rest).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Err(AnswerFailed::new(error).into())),
                None => {
                    if self.held.is_empty() {
                        answer::lift(&mut self.head, None);
                    }
                    return Poll::Ready(Ok(()));
                }
            };
            let size = frame.data_ref().map(Bytes::len);
            match (size, frame.trailers_ref()) {
                (_, Some(trailers)) => {
                    // Behind a message only for what they say of a failure: nobody asks them about a success.
                    let failed = GrpcCode::said(trailers).is_some_and(|code| code != GrpcCode::Ok);
                    if self.held.is_empty() || failed {
                        answer::lift(&mut self.head, Some(trailers));
                    }
                    self.held.push_back(frame);
                    return Poll::Ready(Ok(()));
                }
                (Some(size), _) => {
                    self.cost += size.max(FRAME);
                    // An empty frame is no message, and says nothing.
                    if size > 0 {
                        self.held.push_back(frame);
                    }
                    let is_message = size > 0 && commit != Commit::Status;
                    if is_message || self.cost > HELD {
                        return Poll::Ready(Ok(()));
                    }
                }
                (None, None) => {}
            }
        }
    }

    fn hand_on(self) -> Response<AnswerBody<RB>> {
        Response::from_parts(self.head, AnswerBody::new(self.held, self.rest))
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
