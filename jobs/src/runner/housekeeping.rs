//! What a runner does beside its jobs: sweeps, deletes what is old, enqueues batches.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    backoff::{Backoff, persist},
    desk::Desk,
};
use crate::{
    BoxError, Claim, Death, Error, Failed, Failure, FailureClass, Job, JobStore, Jobs, Kind, NewJob, Retention,
    Sweeper, observe,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// How many jobs of unknown types one sweep refuses.
const REFUSED: u32 = 100;

/// Sweeps, whenever nobody else has within the interval, until the runner stops. A pass that was begun is let end: what it
/// has buried is yet to be told of.
pub(super) async fn sweep<S: JobStore>(desk: Arc<Desk<S>>, refuses_unknown: bool) {
    let every = desk.recovery.sweep_interval();
    let mut backoff = Backoff::of("sweep");
    while !desk.stopping.is_raised() {
        let swept = pass(&desk, refuses_unknown).await;
        let wait = async {
            match swept {
                Ok(()) => {
                    backoff.reset();
                    sleep(every).await;
                }
                Err(error) => backoff.wait(&error).await,
            }
        };
        tokio::select! {
            () = wait => {}
            () = desk.stopping.raised() => {}
        }
    }
}

async fn pass<S: JobStore>(desk: &Desk<S>, refuses_unknown: bool) -> Result<(), Error> {
    let sweeper = Sweeper::new(desk.store.clone(), desk.recovery.clone())?;
    if let Some(swept) = sweeper.run_if_due().await? {
        for burial in &swept.buried {
            desk.tell(&Death::buried(burial));
        }
    }
    if refuses_unknown && !desk.stopping.is_raised() {
        refuse_unknown(desk).await?;
    }
    if cfg!(feature = "metrics") {
        observe::stats(&desk.store.backlog().await?);
    }
    Ok(())
}

/// Jobs of a type that nobody handles are DEAD.
async fn refuse_unknown<S: JobStore>(desk: &Desk<S>) -> Result<(), Error> {
    let stats = desk.store.backlog().await?;
    let unknown =
        stats.types.iter().filter(|(name, of_type)| of_type.pending > 0 && !desk.handlers.contains_key(*name));
    let kinds: Vec<Kind> = unknown.map(|(name, _)| Kind::named(name)).take(64).collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let claim = Claim { kinds: &kinds, worker: "refuses unknown types", lease: desk.limits.lease, max: REFUSED };
    for job in desk.store.claim(&claim).await? {
        let reason = format!("no handler takes the type `{}`", job.job_type);
        let failure = Failure::new(FailureClass::UnknownType, reason);
        match persist("fail", || desk.store.fail(job.lease, &failure, &desk.recovery)).await {
            Failed::Dead { reason, failures } => {
                observe::dead(&job, &failure, reason, failures);
                desk.tell(&Death::of(&job, reason, failure.reason()));
            }
            Failed::Recoverable { failures } => observe::failed(&job, &failure, failures),
            Failed::Lost => observe::dropped(&job, "DEAD"),
        }
    }
    Ok(())
}

/// Deletes what is old, once an hour, by one of many runners.
pub(super) async fn prune<S: JobStore>(store: S, retention: Retention) {
    loop {
        if persist("take its turn", || store.tick("prune", HOUR)).await {
            while persist("prune", || store.prune(&retention)).await >= u64::from(retention.batch.max(1)) {}
        }
        sleep(HOUR / 60).await;
    }
}

type Batch = Pin<Box<dyn Future<Output = Result<Vec<NewJob>, BoxError>> + Send>>;

/// A batch of jobs, again and again.
pub(super) struct Tick<S> {
    name: String,
    interval: Duration,
    batch: Box<dyn Fn() -> Batch + Send + Sync>,
    store: std::marker::PhantomData<fn() -> S>,
}

impl<S> Tick<S> {
    pub(super) fn of<J, F, Fut, E>(name: String, interval: Duration, batch: F) -> Self
    where
        J: Job,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<J>, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let batch = move || {
            let batch = batch();
            let boxed: Batch = Box::pin(async move {
                let jobs = batch.await.map_err(Into::into)?;
                Ok(jobs.iter().map(NewJob::of).collect::<Result<Vec<_>, _>>()?)
            });
            boxed
        };
        Self { name, interval, batch: Box::new(batch), store: std::marker::PhantomData }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        crate::enqueue::check("interval's name", &self.name, 100)?;
        match self.interval < Duration::from_millis(10) {
            true => Err(Error::invalid(format!(
                "the interval `{}` is {:?}: it must be at least 10ms",
                self.name, self.interval
            ))),
            false => Ok(()),
        }
    }
}

/// Enqueues the batch, whenever its turn has come and nobody else has.
pub(super) async fn enqueue_regularly<S: JobStore>(jobs: Jobs<S>, tick: Arc<Tick<S>>) {
    let store = jobs.store();
    // Of our own: sweeps and others have ticks as well.
    let name = format!("every {}", tick.name);
    loop {
        // Before it is known whether it is due: it is enqueued with its tick, so that no batch is lost between the two.
        let new = batch(&tick).await;
        match persist("enqueue", || store.enqueue_every(&name, tick.interval, &new)).await {
            Some(enqueued) => {
                let fresh = enqueued.iter().filter(|job| job.is_new()).count();
                observe::enqueued(&tick.name, fresh, enqueued.len());
                sleep(tick.interval).await;
            }
            // Somebody else did, who may not live until the next time.
            None => sleep((tick.interval / 20).clamp(Duration::from_millis(10), HOUR)).await,
        }
    }
}

async fn batch<S>(tick: &Tick<S>) -> Vec<NewJob> {
    let mut backoff = Backoff::of("make a batch");
    loop {
        match (tick.batch)().await {
            Ok(jobs) => return jobs,
            Err(error) => {
                let text = redial::redacted(&error.to_string());
                backoff.wait(&Error::store("make a batch", text)).await;
            }
        }
    }
}
