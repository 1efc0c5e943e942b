//! Where apalis' worker takes its tasks from: our store.
//!
//! It never fails, since an error would end the worker: a database that is away is waited for here.

use std::{
    convert::Infallible,
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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
    backoff::Backoff,
    desk::{Desk, Run},
    guard::AbortOnDrop,
    limits::Limits,
    shelf::Shelf,
};
use crate::{Claim, JobStore, Kind};

pub(super) struct Source<S> {
    desk: Arc<Desk<S>>,
    kinds: Arc<[Kind]>,
    slots: Arc<Semaphore>,
    claimed: Shelf,
    /// The next batches, each in a task of its own, which says how many jobs came: they are on their way while the last one
    /// runs.
    claiming: Vec<AbortOnDrop<usize>>,
    /// The last one was as large as it may be: there are more.
    is_flowing: bool,
}

impl<S: JobStore> Source<S> {
    pub(super) fn new(desk: Arc<Desk<S>>, kinds: Vec<Kind>, slots: Arc<Semaphore>, claimed: Shelf) -> Self {
        Self { desk, kinds: kinds.into(), slots, claimed, claiming: Vec::new(), is_flowing: false }
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
            let (desk, kinds, slots) = (self.desk.clone(), self.kinds.clone(), self.slots.clone());
            let claim = claim(desk, kinds, slots, self.claimed.clone(), name, waits);
            self.claiming.push(AbortOnDrop(tokio::spawn(claim)));
        }
    }

    /// Looks which claims have ended.
    fn take(&mut self, cx: &mut Context<'_>) {
        let (is_flowing, batch) = (&mut self.is_flowing, self.desk.limits.batch);
        self.claiming.retain_mut(|claiming| {
            let Poll::Ready(jobs) = Pin::new(&mut claiming.0).poll(cx) else { return true };
            // None, where the runner stops: what closes it follows.
            let jobs = arrived(jobs);
            *is_flowing = batch.is_some_and(|batch| jobs >= batch as usize);
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
            match self.claimed.next() {
                Some(run) => return Poll::Ready(Some(Ok(TaskBuilder::new(run).build()))),
                None if self.claiming.is_empty() && !self.desk.stopping.is_raised() => {}
                None => return Poll::Pending,
            }
        }
    }

    /// Nothing is claimed any more once this ends. Who stops the runner, and claims that end after that, give back what was
    /// not begun.
    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        self.take(cx);
        if self.claiming.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
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

/// How many jobs a task claimed.
fn arrived(claimed: Result<usize, JoinError>) -> usize {
    claimed.unwrap_or_else(|error| match error.try_into_panic() {
        // The store's own: whoever runs the runner is to know.
        Ok(panic) => resume_unwind(panic),
        // The runtime is shutting down.
        Err(_) => 0,
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
    claimed: Shelf,
    worker: String,
    waits: bool,
) -> usize {
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
                    let count = jobs.len();
                    claimed.put(jobs.into_iter().map(|job| {
                        let hold = desk.holds.take(job.lease, sent, limits.lease);
                        Run { job: Arc::new(job), hold }
                    }));
                    if desk.stopping.is_raised() {
                        claimed.give_back(&desk).await;
                    }
                    return count;
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
    0
}
