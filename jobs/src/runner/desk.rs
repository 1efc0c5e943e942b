//! One job from its claim to what its row says of it.

use std::{
    any::Any,
    collections::HashMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Extensions;
use redial::Deadline;
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    Limits,
    backoff::persist,
    complete::Done,
    context::JobContext,
    handler::{Handler, Undecodable},
    hold::{Hold, Holds},
    signal::Signal,
};
use crate::{
    BoxError, Claimed, Death, Failed, Failure, FailureClass, Held, JobStore, Recovery, Verified, job_error::Ending,
    observe,
};

/// What is done when a job becomes DEAD.
pub(super) type Hook = Arc<dyn Fn(&Death) + Send + Sync>;

/// What all runs share.
pub(super) struct Desk<S> {
    pub(super) store: S,
    pub(super) handlers: HashMap<String, Handler>,
    pub(super) recovery: Recovery,
    pub(super) limits: Limits,
    pub(super) shared: Arc<Extensions>,
    pub(super) hooks: Vec<Hook>,
    pub(super) holds: Arc<Holds>,
    pub(super) done: mpsc::Sender<Done>,
    /// The runner shuts down.
    pub(super) stopping: Signal,
    /// What has not ended by now is cancelled.
    pub(super) cancel: Signal,
}

/// A job that was claimed.
pub(super) struct Run {
    pub(super) job: Arc<Claimed>,
    pub(super) hold: Arc<Hold>,
}

/// How a run ended.
enum End {
    Done,
    /// It was done before: verified, not run.
    DoneBefore,
    Failed(Failure),
    Snoozed(Duration),
    /// Cancelled by a shutdown.
    Cancelled,
    /// Cancelled, since somebody else has the job.
    Lost,
    /// Cancelled, but it runs on: it blocks its thread.
    Hung,
}

/// How a piece of the caller's code ended.
enum Ended<T> {
    With(T),
    Otherwise(End),
}

impl<S: JobStore> Desk<S> {
    /// Does this job, and writes how it ended.
    pub(super) async fn work(&self, run: Run) {
        let started = Instant::now();
        let end = self.run(&run).await;
        observe::ran(&run.job.job_type, started.elapsed());
        self.write(run, end).await;
    }

    async fn run(&self, run: &Run) -> End {
        let job = &run.job;
        let Some(handler) = self.handlers.get(&job.job_type) else {
            let reason = format!("no handler takes the type `{}`", job.job_type);
            return End::Failed(Failure::new(FailureClass::UnknownType, reason));
        };
        let deadline = Deadline::after(handler.max_runtime);
        let cx = JobContext::new(job.clone(), run.hold.clone(), deadline, self.shared.clone(), self.stopping.clone());
        let key_is_old = key_is_old(job, handler.key_valid_for);
        let mut in_doubt = super::may_have_taken_effect(job);
        if key_is_old || in_doubt {
            match self.verify(run, handler, &cx, deadline).await {
                Ended::With(Ok(Verified::Done)) => return End::DoneBefore,
                Ended::With(Ok(Verified::NotDone)) => in_doubt = false,
                Ended::With(Ok(Verified::Unsupported)) if key_is_old => {
                    let reason = "the provider no longer honours this job's idempotency keys, and its type has no \
                                  `verify`: a repeat could do the work twice";
                    return End::Failed(Failure::new(FailureClass::Business, reason).unknown(true));
                }
                Ended::With(Ok(Verified::Unsupported)) => {}
                Ended::With(Err(error)) => return End::Failed(Ending::of_verify(&*error)),
                Ended::Otherwise(end) => return end,
            }
        }
        let ended = self.guarded(run, deadline, {
            let (handler, job, cx) = (handler.clone(), job.clone(), cx.clone());
            async move {
                match handler.run(&job.payload, cx) {
                    Ok(running) => Ok(running.await),
                    Err(undecodable) => Err(undecodable),
                }
            }
        });
        let mut doubtful = false;
        let end = match ended.await {
            Ended::With(Ok(Ok(()))) => End::Done,
            Ended::With(Ok(Err(error))) => match Ending::of(&*error) {
                Ending::Failed(failure) => End::Failed(failure),
                Ending::Doubtful(failure) => {
                    doubtful = true;
                    End::Failed(failure)
                }
                Ending::Snoozed(wait) => self.put_off(job, wait),
            },
            Ended::With(Err(Undecodable(reason))) => End::Failed(Failure::new(FailureClass::Undecodable, reason)),
            Ended::Otherwise(end) => end,
        };
        match end {
            End::Failed(failure) => {
                // Nobody has cleared up what an earlier run left in doubt: the successor is to know.
                let in_doubt = in_doubt || failure.outcome_unknown();
                self.before_closing(run, handler, &cx, failure.unknown(in_doubt), doubtful).await
            }
            end => end,
        }
    }

    fn put_off(&self, job: &Claimed, wait: Duration) -> End {
        match self.limits.put_off(job) {
            Some(reason) => End::Failed(Failure::new(FailureClass::PutOff, reason)),
            None => End::Snoozed(wait),
        }
    }

    /// What may have been done already is looked at before it is given up: "409, because my first PUT had worked" is a
    /// success (J13 before J9). `doubtful`: the handler asks for it.
    async fn before_closing(
        &self,
        run: &Run,
        handler: &Handler,
        cx: &JobContext,
        failure: Failure,
        doubtful: bool,
    ) -> End {
        let business = failure.class() == FailureClass::Business;
        // Chains count ghosts as well, so this is true too early at worst.
        let last = run.job.attempt >= self.recovery.max_failures();
        let closes = doubtful || business || last && failure.class() != FailureClass::Undecodable;
        if !failure.outcome_unknown() || !closes {
            return End::Failed(failure);
        }
        let deadline = Deadline::after(self.limits.lease / 2);
        match self.verify(run, handler, cx, deadline).await {
            Ended::With(Ok(Verified::Done)) => End::DoneBefore,
            Ended::With(Ok(Verified::NotDone | Verified::Unsupported)) => End::Failed(failure),
            // Whether the work was done is asked again by the successor; the last one has none.
            Ended::With(Err(error)) if business && !last => {
                let asked = Ending::of_verify(&*error);
                let reason = format!("{}; {}", failure.reason(), asked.reason());
                let both = Failure::new(FailureClass::Unverified, reason).attempts(failure.history().to_vec());
                let both = both.unknown(true);
                End::Failed(asked.earliest().map_or(both.clone(), |earliest| both.not_before(earliest)))
            }
            Ended::Otherwise(end @ (End::Cancelled | End::Lost | End::Hung)) => end,
            Ended::With(Err(_)) | Ended::Otherwise(_) => End::Failed(failure),
        }
    }

    async fn verify(
        &self,
        run: &Run,
        handler: &Handler,
        cx: &JobContext,
        deadline: Deadline,
    ) -> Ended<Result<Verified, BoxError>> {
        let (handler, job, cx) = (handler.clone(), run.job.clone(), cx.clone());
        let verifying = async move {
            match handler.verify(&job.payload, cx) {
                Ok(verifying) => Ok(verifying.await),
                Err(undecodable) => Err(undecodable),
            }
        };
        match self.guarded(run, deadline, verifying).await {
            Ended::With(Ok(verified)) => {
                observe::verified(&run.job, verified.as_ref().ok());
                Ended::With(verified)
            }
            Ended::With(Err(Undecodable(reason))) => {
                Ended::Otherwise(End::Failed(Failure::new(FailureClass::Undecodable, reason)))
            }
            Ended::Otherwise(end) => Ended::Otherwise(end),
        }
    }

    /// The caller's code, in a task of its own, until it ends, panics, runs too long, or has lost its lease.
    async fn guarded<T: Send + 'static>(
        &self,
        run: &Run,
        deadline: Deadline,
        code: impl Future<Output = T> + Send + 'static,
    ) -> Ended<T> {
        let mut task = AbortOnDrop(tokio::spawn(observe::in_span(&run.job, code)));
        let margin = self.limits.lease / 8;
        tokio::select! {
            biased;
            ended = &mut task.0 => ended_with(ended),
            () = sleep_until(deadline.instant()) => {
                // It is ours until the lease ends, which gives it time to end.
                run.hold.renew_no_more();
                let reason = "ran longer than its type's `MAX_RUNTIME`, and was cancelled";
                let failure = Failure::new(FailureClass::Timeout, reason).unknown(true);
                self.stop(task, run.hold.ended(), End::Failed(failure)).await
            }
            () = run.hold.lost(margin) => {
                // The handler was told, and has a moment to end by itself. What it says is written as always: where the
                // lease is lost, the store refuses it.
                tokio::select! {
                    ended = &mut task.0 => ended_with(ended),
                    () = sleep(margin) => self.stop(task, std::future::ready(()), End::Lost).await,
                }
            }
            () = self.cancel.raised() => self.stop(task, run.hold.ended(), End::Cancelled).await,
        }
    }

    /// Cancels it. Whoever blocks his thread cannot be: then nobody else may have the job while its lease lasts.
    async fn stop<T>(&self, mut task: AbortOnDrop<T>, patience: impl Future<Output = ()>, end: End) -> Ended<T> {
        task.0.abort();
        tokio::select! {
            biased;
            ended = &mut task.0 => match ended {
                Ok(ended) => Ended::With(ended),
                Err(_) => Ended::Otherwise(end),
            },
            () = patience => match end {
                End::Lost => Ended::Otherwise(End::Lost),
                _ => Ended::Otherwise(End::Hung),
            },
        }
    }

    async fn write(&self, run: Run, end: End) {
        let Run { job, hold } = run;
        let lease = hold.lease;
        match end {
            End::Done | End::DoneBefore => {
                if matches!(end, End::DoneBefore) {
                    observe::done_before(&job);
                }
                // Fails only where the runner is gone.
                let _ = self.done.send(Done { job }).await;
                return;
            }
            End::Failed(failure) => match persist("fail", || self.store.fail(lease, &failure, &self.recovery)).await {
                Failed::Recoverable { failures } => observe::failed(&job, &failure, failures),
                Failed::Dead { reason, failures } => {
                    observe::dead(&job, &failure, reason, failures);
                    self.tell(&Death::of(&job, reason, failure.reason()));
                }
                Failed::Lost => observe::dropped(&job, "FAILED"),
            },
            End::Snoozed(wait) => match persist("snooze", || self.store.snooze(lease, wait)).await {
                Held::Yes => observe::snoozed(&job, wait),
                Held::Lost => observe::dropped(&job, "put off"),
            },
            End::Cancelled => {
                match persist("release", || self.store.release(std::slice::from_ref(&hold.lease))).await.is_empty() {
                    false => observe::released(&job),
                    true => observe::dropped(&job, "given back"),
                }
            }
            End::Lost => observe::dropped(&job, "cancelled"),
            End::Hung => observe::hung(&job),
        }
        self.holds.forget(lease);
    }

    /// Tells the hooks. One that panics is no reason to lose a worker.
    pub(super) fn tell(&self, death: &Death) {
        for hook in &self.hooks {
            if catch_unwind(AssertUnwindSafe(|| hook(death))).is_err() {
                observe::hook_panicked(death);
            }
        }
    }
}

fn ended_with<T>(ended: Result<T, tokio::task::JoinError>) -> Ended<T> {
    match ended {
        Ok(ended) => Ended::With(ended),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => {
                let reason = format!("panicked: {}", redial::redacted(panic_text(&*panic)));
                Ended::Otherwise(End::Failed(Failure::new(FailureClass::Panic, reason).unknown(true)))
            }
            // The runtime is shutting down.
            Err(_) => Ended::Otherwise(End::Cancelled),
        },
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// Whether the provider may have forgotten the keys of this chain. By our clock and that of the row, whichever is later.
fn key_is_old(job: &Claimed, valid_for: Option<Duration>) -> bool {
    let Some(valid_for) = valid_for else { return false };
    let now = SystemTime::now().max(job.created_at);
    now.duration_since(job.chain_started).is_ok_and(|age| age > valid_for)
}

/// A task that ends with what waits for it.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
