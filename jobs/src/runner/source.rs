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
    /// The next batch, in a task of its own: it is on its way while the last one runs.
    claiming: Option<AbortOnDrop<VecDeque<Run>>>,
    releasing: Option<Boxed<()>>,
}

impl<S: JobStore> Source<S> {
    pub(super) fn new(desk: Arc<Desk<S>>, kinds: Vec<Kind>, slots: Arc<Semaphore>) -> Self {
        let kinds = kinds.into();
        Self { desk, kinds, slots, claimed: VecDeque::new(), claiming: None, releasing: None }
    }

    /// Whether to ask now. Without a batch, not before there is a slot for what comes.
    fn is_low(&self) -> bool {
        let enough = self.desk.limits.batch.map_or(0, |batch| batch as usize / 2);
        self.claimed.len() <= enough
    }

    fn claim(&mut self, worker: &WorkerContext) {
        let claim = claim(self.desk.clone(), self.kinds.clone(), self.slots.clone(), worker.name().to_owned());
        self.claiming = Some(AbortOnDrop(tokio::spawn(claim)));
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
        if self.claiming.is_none() && self.is_low() {
            self.claim(worker);
        }
        if let Some(claiming) = &mut self.claiming
            && let Poll::Ready(claimed) = Pin::new(&mut claiming.0).poll(cx)
        {
            self.claiming = None;
            // None, where the runner stops: what closes it follows.
            self.claimed.extend(arrived(claimed));
        }
        match self.claimed.pop_front() {
            Some(run) => Poll::Ready(Some(Ok(TaskBuilder::new(run).build()))),
            None => Poll::Pending,
        }
    }

    /// Gives back what was claimed and not begun.
    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        if let Some(claiming) = &mut self.claiming {
            let late = ready!(Pin::new(&mut claiming.0).poll(cx));
            self.claimed.extend(arrived(late));
            self.claiming = None;
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

/// Asks until there are jobs, or the runner stops: then there may be none.
async fn claim<S: JobStore>(
    desk: Arc<Desk<S>>,
    kinds: Arc<[Kind]>,
    slots: Arc<Semaphore>,
    worker: String,
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
                tokio::select! {
                    () = wakes.woken() => {}
                    () = sleep(limits.poll) => {}
                    () = desk.stopping.raised() => {}
                }
            }
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
