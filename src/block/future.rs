//! The future: a block's attempts, and the waits between them.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::{Attempt, Failure};
use crate::{
    Deadline, Error, Plan, StandardPolicy,
    error::AttemptTimedOut,
    fault::Fault,
    hints::{InBlock, OutboundHints, Restore},
    observe::{self, Phase},
    policy::{Class, Verdict},
    retry::{
        AttemptOutcome, CallReport,
        after::{Failed, Next},
        course::Course,
    },
    timeout::{Expired, Timer},
};

pin_project! {
    /// A block and its repeats; made by awaiting a [`RetryBlock`](super::RetryBlock). Dropping it at any point releases all
    /// that it holds.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryBlockFuture<F, Fut> {
        #[pin]
        state: State<Fut>,
        #[pin]
        timer: Timer,
        block: F,
        policy: StandardPolicy,
        course: Course,
        // A call within came through a layer that would have repeated it.
        stacked: bool,
        report: Option<CallReport>,
    }

    impl<F, Fut> PinnedDrop for RetryBlockFuture<F, Fut> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(phase) = this.state.as_ref().get_ref().phase().filter(|_| !this.course.is_part()) {
                observe::cancelled(this.course.about(), this.course.attempt, phase);
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<Fut> {
        // Nothing has begun: it belongs to whichever task polls it first.
        New,
        Attempt { #[pin] future: Fut },
        Wait { resume: Instant },
        Done,
    }
}

impl<Fut> State<Fut> {
    /// What is lost when the call is dropped now, if anything.
    fn phase(&self) -> Option<Phase> {
        match self {
            State::Attempt { .. } => Some(Phase::InFlight),
            State::Wait { .. } => Some(Phase::Waiting),
            State::New | State::Done => None,
        }
    }
}

/// What follows an attempt.
enum End<T> {
    Return(Result<T, Error>),
    Wait { resume: Instant },
}

impl<F, Fut> RetryBlockFuture<F, Fut> {
    pub(super) fn new(policy: StandardPolicy, plan: Plan, deadline: Option<Deadline>, block: F) -> Self {
        let course = Course::of_block(plan, deadline);
        RetryBlockFuture { state: State::New, timer: Timer::new(), block, policy, course, stacked: false, report: None }
    }

    /// What happened, attempt by attempt, once the block has succeeded and not at its first try. Of one that failed, the
    /// error has the report.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let timeouts = redial::Timeouts { attempt: std::time::Duration::from_secs(2), total: std::time::Duration::from_secs(10) };
    /// # let policy = redial::StandardPolicy::new("reports", timeouts, redial::Transient::usual())?;
    /// let block = redial::retry(&policy, |attempt| async move {
    ///     if attempt.number() == 1 { Err(redial::Failure::transient("not yet")) } else { Ok(()) }
    /// });
    /// let mut block = std::pin::pin!(block.idempotent("it only reads").into_future());
    /// block.as_mut().await?;
    /// assert_eq!(block.report().map(|report| report.attempts().len()), Some(2));
    /// # Ok(()) }
    /// ```
    pub fn report(&self) -> Option<&CallReport> {
        self.report.as_ref()
    }
}

impl<F, Fut, T> Future for RetryBlockFuture<F, Fut>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, Failure>>,
{
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let course = this.course;
        loop {
            let output = match this.state.as_mut().project() {
                StateProj::New => {
                    course.heed_caller(&OutboundHints::current());
                    if course.may_not_start() {
                        this.state.set(State::Wait { resume: Instant::now() });
                        continue;
                    }
                    course.begin_first();
                    let future = begin(course, this.block, this.stacked);
                    this.state.set(State::Attempt { future });
                    continue;
                }
                StateProj::Attempt { future } => {
                    let polled = {
                        let scope = enter(course);
                        let polled = this.timer.as_mut().limit(cx, future, || course.attempt_ends());
                        *this.stacked |= scope.found_stacked();
                        polled
                    };
                    if course.is_part() {
                        let output = part(course, ready!(polled));
                        this.state.set(State::Done);
                        return Poll::Ready(output);
                    }
                    match settle(course, this.policy, *this.stacked, this.report, ready!(polled)) {
                        End::Return(output) => output,
                        End::Wait { resume } => {
                            // Drops the attempt: nothing of it is left when the wait begins.
                            this.state.set(State::Wait { resume });
                            continue;
                        }
                    }
                }
                StateProj::Wait { resume } => {
                    let resume = *resume;
                    ready!(this.timer.as_mut().poll_until(cx, resume));
                    match course.still_held() {
                        Ok(Some(resume)) => {
                            this.state.set(State::Wait { resume });
                            continue;
                        }
                        Ok(None) => match course.begin_in_time() {
                            Ok(()) => {
                                let future = begin(course, this.block, this.stacked);
                                this.state.set(State::Attempt { future });
                                continue;
                            }
                            Err(error) => Err(error),
                        },
                        Err(error) => Err(error),
                    }
                }
                // Polled after its end: it never ends again.
                StateProj::Done => return Poll::Pending,
            };
            this.state.set(State::Done);
            return Poll::Ready(output);
        }
    }
}

/// Within the guard, calls are attempts of this block, or of the one that it is part of (D34).
fn enter(course: &mut Course) -> Restore {
    let block = InBlock { attempt: course.attempt, ends: course.attempt_is_over_by() };
    let hints = OutboundHints::current().in_block(block);
    // What is noticed within a part is the outer block's.
    if course.is_part() { hints.enter() } else { hints.enter_block() }
}

fn begin<F: FnMut(Attempt) -> Fut, Fut>(course: &mut Course, block: &mut F, stacked: &mut bool) -> Fut {
    let attempt = Attempt {
        number: course.attempt,
        ends: Deadline::at(course.attempt_is_over_by()),
        earlier_unknown: course.earlier_unknown() || course.is_part() && course.attempt > 1,
    };
    let scope = enter(course);
    let future = block(attempt);
    // A call may be made before it is polled.
    *stacked |= scope.found_stacked();
    future
}

/// What the outer block gets of one that was part of it.
fn part<T>(course: &Course, result: Result<Result<T, Failure>, Expired>) -> Result<T, Error> {
    let result = result.unwrap_or_else(|Expired| Err(AttemptTimedOut(course.plan.timeouts().attempt).into()));
    result.map_err(|failure| {
        let fault = failure.fault();
        Error::block(failure.carried(), fault).sent_once(CallReport::of_stacked())
    })
}

/// An attempt has ended: what follows?
fn settle<T>(
    course: &mut Course,
    policy: &StandardPolicy,
    stacked: bool,
    report: &mut Option<CallReport>,
    result: Result<Result<T, Failure>, Expired>,
) -> End<T> {
    if stacked {
        course.found_stacked();
    }
    let (failure, fault, timed_out) = match result {
        Ok(Ok(value)) => {
            observe::attempted(&course.plan, AttemptOutcome::Done, &Verdict::success());
            *report = course.succeeded(AttemptOutcome::Done);
            return End::Return(Ok(value));
        }
        Ok(Err(failure)) => {
            let fault = failure.fault();
            (failure, fault, false)
        }
        Err(Expired) => {
            let error = AttemptTimedOut(course.plan.timeouts().attempt);
            (error.into(), Some(Fault::attempt_timeout()), true)
        }
    };
    let verdict = failure.judge(course, policy, fault);
    let outcome = failure.outcome(fault);
    observe::attempted(&course.plan, outcome, &verdict);
    let failed = Failed {
        verdict: &verdict,
        outcome,
        fault,
        timed_out,
        upgrade: false,
        of_one_request: false,
        of_another_host: false,
    };
    // A block can always be run again from its start.
    match course.failed(failed, || true) {
        Next::Again { resume, .. } => End::Wait { resume },
        Next::Stop { now, stop, over } => {
            let business = failure.is_business() && verdict.class() == Class::Permanent;
            let error = if over { course.over() } else { Error::block(failure.into_source(), fault) };
            let error = course.end(now, error, stop.reason, stop.not_before, verdict.class(), !business);
            End::Return(Err(error))
        }
        // Not for blocks, whose failures all have a report.
        Next::Answered => End::Return(Err(Error::block(failure.into_source(), fault))),
    }
}
