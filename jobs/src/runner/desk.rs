//! One job from its claim to what its row says of it.

use std::{
    collections::HashMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Extensions;
use redial::Deadline;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Limits,
    backoff::persist,
    complete::Done,
    context::JobContext,
    guard::{End, guard},
    handler::{Handler, Undecodable},
    hold::{Hold, Holds},
    limits::SHORTEST_SNOOZE,
    panics::text_of,
    signal::Signal,
};
use crate::{
    Claimed, Death, Failed, Failure, FailureClass, Held, JobStore, Recovery, Verified, job_error::Ending, observe,
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
        // It waited here for a slot, and the database was away meanwhile.
        if run.hold.is_lost() || run.hold.ends_within(self.limits.lease / 8) {
            return End::Lost;
        }
        let Some(handler) = self.handlers.get(&job.job_type) else {
            let reason = format!("no handler takes the type `{}`", job.job_type);
            return End::Failed(Failure::new(FailureClass::UnknownType, reason));
        };
        let deadline = Deadline::after(handler.max_runtime);
        let cx = JobContext::new(job.clone(), run.hold.clone(), deadline, self.shared.clone(), self.stopping.clone());
        let key_is_old = key_is_old(job, handler.key_valid_for);
        let mut in_doubt = job.unknown_before;
        if key_is_old || in_doubt {
            match self.verify(run, handler, &cx, deadline).await {
                Ok(Ok(Verified::Done)) => return End::DoneBefore,
                Ok(Ok(Verified::NotDone)) => in_doubt = false,
                Ok(Ok(Verified::Unsupported)) if key_is_old => {
                    let reason = "the provider no longer honours this job's idempotency keys, and its type has no \
                                  `verify`: a repeat could do the work twice. Look whether it is done; where it is \
                                  not, revive the job";
                    return End::Failed(Failure::new(FailureClass::Business, reason).unknown(true));
                }
                Ok(Ok(Verified::Unsupported)) => {}
                Ok(Err(failure)) => return End::Failed(failure),
                Err(end) => return end,
            }
        }
        let ended = self.guarded(run, deadline, {
            let (handler, job, cx) = (handler.clone(), job.clone(), cx.clone());
            async move {
                match handler.run(&job.payload, cx) {
                    // Read here: an error that cannot be shown is a failure of its handler.
                    Ok(running) => Ok(running.await.map_err(|error| Ending::of(&*error))),
                    Err(undecodable) => Err(undecodable),
                }
            }
        });
        let mut doubtful = false;
        let end = match ended.await {
            Ok(Ok(Ok(()))) => End::Done,
            Ok(Ok(Err(Ending::Failed(failure)))) => End::Failed(failure),
            Ok(Ok(Err(Ending::Doubtful(failure)))) => {
                doubtful = true;
                End::Failed(failure)
            }
            Ok(Ok(Err(Ending::Snoozed(wait)))) => self.put_off(job, wait),
            Ok(Err(Undecodable(reason))) => End::Failed(Failure::new(FailureClass::Undecodable, reason)),
            Err(end) => end,
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
            None => End::Snoozed(wait.max(SHORTEST_SNOOZE)),
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
            Ok(Ok(Verified::Done)) => End::DoneBefore,
            Ok(Ok(Verified::NotDone | Verified::Unsupported)) => End::Failed(failure),
            // Nobody knows, so nobody may close it: its successor asks again. Whether there is one, the store decides, which
            // counts the failures.
            Ok(Err(asked)) | Err(End::Failed(asked)) if business => End::Failed(in_vain(&failure, &asked)),
            Err(end @ (End::Cancelled | End::Lost | End::Hung)) => end,
            Ok(Err(_)) | Err(_) => End::Failed(failure),
        }
    }

    async fn guarded<T: Send + 'static>(
        &self,
        run: &Run,
        deadline: Deadline,
        code: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, End> {
        guard(run, deadline, self.limits.lease, &self.cancel, code).await
    }

    async fn verify(
        &self,
        run: &Run,
        handler: &Handler,
        cx: &JobContext,
        deadline: Deadline,
    ) -> Result<Result<Verified, Failure>, End> {
        let (handler, job, cx) = (handler.clone(), run.job.clone(), cx.clone());
        let verifying = async move {
            match handler.verify(&job.payload, cx) {
                Ok(verifying) => Ok(verifying.await.map_err(|error| Ending::of_verify(&*error))),
                Err(undecodable) => Err(undecodable),
            }
        };
        match self.guarded(run, deadline, verifying).await {
            Ok(Ok(verified)) => {
                observe::verified(&run.job, verified.as_ref().ok());
                Ok(verified)
            }
            Ok(Err(Undecodable(reason))) => Err(End::Failed(Failure::new(FailureClass::Undecodable, reason))),
            Err(end) => Err(end),
        }
    }

    async fn write(&self, run: Run, end: End) {
        let Run { job, hold } = run;
        let lease = hold.lease;
        hold.closes();
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
                match persist("release", || self.store.abandon(std::slice::from_ref(&hold.lease))).await.is_empty() {
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
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(death))) {
                observe::hook_panicked(death, &text_of(panic));
            }
        }
    }
}

/// A failure of which a look was to say whether the work was done all the same, and how that look failed.
fn in_vain(failure: &Failure, asked: &Failure) -> Failure {
    let reason = format!("{}; {}", failure.reason(), asked.reason());
    let both = Failure::new(FailureClass::Unverified, reason).attempts(failure.history().to_vec()).unknown(true);
    match asked.earliest() {
        Some(earliest) => both.not_before(earliest),
        None => both,
    }
}

/// Whether the provider may have forgotten the keys of this chain. By our clock and that of the row, whichever is later.
fn key_is_old(job: &Claimed, valid_for: Option<Duration>) -> bool {
    let Some(valid_for) = valid_for else { return false };
    // The first claim of the chain: none was sent, however long the job has waited.
    if job.claimed_at == job.chain_started {
        return false;
    }
    let now = SystemTime::now().max(job.claimed_at);
    now.duration_since(job.chain_started).is_ok_and(|age| age > valid_for)
}
