//! Where apalis' worker takes its tasks from: our store.
//!
//! It never fails, since an error would end the worker: a database that is away is waited for here.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::{Task, builder::TaskBuilder},
    worker::context::WorkerContext,
};
use tokio::{
    sync::Semaphore,
    task::JoinError,
    time::{Instant, sleep},
};
use tower::layer::util::Identity;

use super::{
    backoff::{Backoff, persist},
    desk::{Desk, Run},
    guard::AbortOnDrop,
    limits::Limits,
};
use crate::{Claim, JobStore, Kind, Lease};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) struct Source<S> {
    desk: Arc<Desk<S>>,
    kinds: Arc<[Kind]>,
    slots: Arc<Semaphore>,
    claimed: VecDeque<Run>,
    /// The next batches, each in a task of its own: they are on their way while the last one runs.
    claiming: Vec<AbortOnDrop<VecDeque<Run>>>,
    /// The last one was as large as it may be: there are more.
    is_flowing: bool,
    releasing: Option<Boxed<()>>,
}

impl<S: JobStore> Source<S> {
    pub(super) fn new(desk: Arc<Desk<S>>, kinds: Vec<Kind>, slots: Arc<Semaphore>) -> Self {
        let kinds = kinds.into();
        Self { desk, kinds, slots, claimed: VecDeque::new(), claiming: Vec::new(), is_flowing: false, releasing: None }
    }

    /// Whether to ask now. Without a batch, not before there is a slot for what comes.
    fn is_low(&self) -> bool {
        let enough = self.desk.limits.batch.map_or(0, |batch| batch as usize / 2);
        self.claimed.len() <= enough
    }

    /// Asks for jobs, and while they flow for a second batch as well: the database commits a claim only so fast, and two at
    /// once as fast as one.
    fn claim(&mut self, worker: &WorkerContext) {
        let at_once = if self.is_flowing { 2 } else { 1 };
        while self.is_low() && self.claiming.len() < at_once {
            // One is enough to wait where there are none.
            let waits = self.claiming.is_empty();
            let name = worker.name().to_owned();
            let claim = claim(self.desk.clone(), self.kinds.clone(), self.slots.clone(), name, waits);
            self.claiming.push(AbortOnDrop(tokio::spawn(claim)));
        }
    }

    /// Takes what has arrived.
    fn take(&mut self, cx: &mut Context<'_>) {
        let (claimed, is_flowing, batch) = (&mut self.claimed, &mut self.is_flowing, self.desk.limits.batch);
        self.claiming.retain_mut(|claiming| {
            let Poll::Ready(batch_of_jobs) = Pin::new(&mut claiming.0).poll(cx) else { return true };
            // None, where the runner stops: what closes it follows.
            let jobs = arrived(batch_of_jobs);
            *is_flowing = batch.is_some_and(|batch| jobs.len() >= batch as usize);
            claimed.extend(jobs);
            false
        });
    }
}

impl<S: JobStore> Backend for Source<S> {
    type Task = Task<Run>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        loop {
            self.claim(worker);
            self.take(cx);
            match self.claimed.pop_front() {
                Some(run) => return Poll::Ready(Some(Ok(TaskBuilder::new(run).build()))),
                None if self.claiming.is_empty() && !self.desk.stopping.is_raised() => {}
                None => return Poll::Pending,
            }
        }
    }

    /// Gives back what was claimed and not begun.
    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        self.take(cx);
        if !self.claiming.is_empty() {
            return Poll::Pending;
        }
        let claimed = std::mem::take(&mut self.claimed);
        if !claimed.is_empty() {
            self.releasing = Some(Box::pin(release(self.desk.clone(), claimed)));
        }
        if let Some(releasing) = &mut self.releasing {
            ready!(releasing.as_mut().poll(cx));
            self.releasing = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> BackendConfig for Source<S> {
    type Args = Run;
    type Id = i64;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}

/// What a task claimed.
fn arrived(claimed: Result<VecDeque<Run>, JoinError>) -> VecDeque<Run> {
    claimed.unwrap_or_else(|error| match error.try_into_panic() {
        // The store's own: whoever runs the runner is to know.
        Ok(panic) => resume_unwind(panic),
        // The runtime is shutting down.
        Err(_) => VecDeque::new(),
    })
}

/// How many jobs are asked for: as many as may run, or the batch.
fn room(limits: &Limits, slots: &Semaphore) -> u32 {
    // The worker holds a slot already for the task that it asks for.
    let free = u32::try_from(slots.available_permits() + 1).unwrap_or(u32::MAX);
    limits.batch.unwrap_or(free).max(1)
}

/// Asks until there are jobs, or the runner stops: then there may be none. Or once, where another one waits for them.
async fn claim<S: JobStore>(
    desk: Arc<Desk<S>>,
    kinds: Arc<[Kind]>,
    slots: Arc<Semaphore>,
    worker: String,
    waits: bool,
) -> VecDeque<Run> {
    let limits = &desk.limits;
    let mut backoff = Backoff::of("claim");
    let mut wakes = desk.store.wakes();
    while !desk.stopping.is_raised() {
        let claim = Claim { kinds: &kinds, worker: &worker, lease: limits.lease, max: room(limits, &slots) };
        let sent = Instant::now();
        match desk.store.claim(&claim).await {
            Ok(jobs) => {
                backoff.reset();
                if !jobs.is_empty() {
                    let taken = jobs.into_iter().map(|job| {
                        let hold = desk.holds.take(job.lease, sent, limits.lease);
                        Run { job: Arc::new(job), hold }
                    });
                    return taken.collect();
                }
                if !waits {
                    break;
                }
                tokio::select! {
                    () = wakes.woken() => {}
                    () = sleep(limits.poll) => {}
                    () = desk.stopping.raised() => {}
                }
            }
            // Whoever waits meets it as well, and says so.
            Err(_) if !waits => break,
            Err(error) => tokio::select! {
                () = backoff.wait(&error) => {}
                () = desk.stopping.raised() => {}
            },
        }
    }
    VecDeque::new()
}

async fn release<S: JobStore>(desk: Arc<Desk<S>>, claimed: VecDeque<Run>) {
    let leases: Vec<Lease> = claimed.iter().map(|run| run.hold.lease).collect();
    // Whose lease is lost was not begun: nothing is dropped.
    let _ = persist("release", || desk.store.release(&leases)).await;
    for lease in leases {
        desk.holds.forget(lease);
    }
}
