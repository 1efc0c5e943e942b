//! A runner at work, from its start to its shutdown.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
};

use apalis_core::worker::{builder::WorkerBuilder, context::WorkerContext};
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use tower::limit::GlobalConcurrencyLimitLayer;

use super::{
    Runner, backoff::again, complete, desk::Desk, hold::Holds, housekeeping, limits::Limits, renew, shelf::Shelf,
    signal::Signal, source::Source, worker::Worker,
};
use crate::{Error, JobStore};

/// Runs until `shutdown` ends, and then until all is written, or left.
pub(super) async fn run<S: JobStore>(runner: Runner<S>, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let (stop, stopping) = Signal::new();
    let (cancel, cancelled) = Signal::new();
    let (done, completions) = complete::channel();
    let Limits { lease, grace, .. } = runner.limits;
    let store = runner.jobs.store().clone();
    let holds = Arc::new(Holds::default());
    let desk = Arc::new(Desk {
        store: store.clone(),
        handlers: runner.handlers,
        recovery: runner.recovery,
        limits: runner.limits,
        shared: Arc::new(runner.shared),
        hooks: runner.hooks,
        holds: holds.clone(),
        done,
        stopping,
        cancel: cancelled,
    });

    // Dropped, they all end.
    let mut beside = JoinSet::new();
    let (renewed, renewing) = (store.clone(), holds.clone());
    beside.spawn(again("renew", move || renew::renew(renewed.clone(), renewing.clone(), lease)));
    let mut completing = JoinSet::new();
    completing.spawn(complete::complete(store, holds, completions));
    let mut sweeping = JoinSet::new();
    if runner.sweeps {
        let (desk, refuses_unknown) = (desk.clone(), runner.refuses_unknown);
        sweeping.spawn(again("sweep", move || housekeeping::sweep(desk.clone(), refuses_unknown)));
    }
    if let Some(retention) = runner.retention {
        let store = desk.store.clone();
        beside.spawn(again("prune", move || housekeeping::prune(store.clone(), retention)));
    }
    for tick in runner.ticks {
        let (jobs, tick) = (runner.jobs.clone(), Arc::new(tick));
        beside.spawn(again("make a batch", move || housekeeping::enqueue_regularly(jobs.clone(), tick.clone())));
    }

    let slots = Arc::new(Semaphore::new(runner.concurrency));
    let context = WorkerContext::new(&runner.name);
    let claimed = Shelf::default();
    let source = Source::new(desk.clone(), runner.kinds, slots.clone(), claimed.clone());
    let worker = WorkerBuilder::new(&context)
        .backend(source)
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(slots))
        .build(Worker(desk.clone()));
    let mut working = Box::pin(worker.run());

    tokio::select! {
        biased;
        // Neither its backend nor its service ever fails.
        ended = &mut working => return ended.map_err(|error| Error::store("keep its worker running", error)),
        () = shutdown => {}
    }
    stop.raise();
    context.stop().map_err(|error| Error::store("stop its worker", error))?;
    let stopped = desk.clone();
    let mut ending = Box::pin(async move {
        tokio::join!(working, claimed.give_back(&stopped), poll_fn(|cx| sweeping.poll_join_next(cx)))
    });
    if timeout(grace, &mut ending).await.is_err() {
        cancel.raise();
        // What cannot be written by then is left to be found as a ghost.
        let _ = timeout(lease, &mut ending).await;
    }
    drop((ending, beside));
    // All senders are gone with the desk: what is done is written, if the database lets it be.
    drop(desk);
    let _ = timeout(lease, poll_fn(|cx| completing.poll_join_next(cx))).await;
    Ok(())
}
