//! Through a store: jobs are claimed and completed by eight workers, which do nothing else.

use std::{
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use redial_jobs::{Claim, JobStore, Kind, NewJob, SqlStore};
use tokio::sync::oneshot;

use crate::{
    JOBS, PAUSE, ROUNDS, WORKERS,
    figures::{self, Bars, median},
    place::Place,
};

const LEASE: Duration = Duration::from_secs(60);
const TYPE: &str = "bench";

/// What is in the table before.
#[derive(Clone, Copy)]
pub enum Before {
    Nothing,
    Finished(usize),
    Backlog(usize),
}

impl Before {
    pub const ALL: [(&'static str, Before); 3] = [
        ("empty table", Before::Nothing),
        ("200 000 finished", Before::Finished(200_000)),
        ("backlog of 100 000", Before::Backlog(100_000)),
    ];
}

async fn enqueue(store: &SqlStore, from: usize, count: usize) -> Duration {
    let jobs: Vec<_> =
        (from..from + count).map(|target| NewJob::raw(TYPE, target.to_string(), "{}").unwrap()).collect();
    let start = Instant::now();
    for batch in jobs.chunks(1000) {
        store.enqueue(batch).await.unwrap();
    }
    start.elapsed()
}

/// Eight workers take and complete this many.
async fn drain(store: &SqlStore, batch: u32, count: usize) -> Duration {
    let left = Arc::new(AtomicUsize::new(count));
    let mut workers = tokio::task::JoinSet::new();
    let start = Instant::now();
    for worker in 0..WORKERS {
        let (store, left) = (store.clone(), left.clone());
        workers.spawn(async move {
            let (kinds, worker) = ([Kind::named(TYPE)], format!("worker {worker}"));
            while left.load(Ordering::Relaxed) > 0 {
                let wanted = Claim { kinds: &kinds, worker: &worker, lease: LEASE, max: batch };
                let leases: Vec<_> = store.claim(&wanted).await.unwrap().iter().map(|job| job.lease).collect();
                let done = store.complete(&leases).await.unwrap();
                assert_eq!(done.len(), leases.len());
                let _ = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(done.len())));
            }
        });
    }
    workers.join_all().await;
    start.elapsed()
}

/// Prints a line of the table, and returns its figures for batches of 10 and of 100.
pub async fn measure(
    name: &str,
    what: &str,
    before: Before,
    bars: Bars,
    (place, store): (Place, SqlStore),
) -> [f64; 2] {
    let mut next = 0;
    match before {
        Before::Nothing => {}
        Before::Finished(count) => place.finish(TYPE, count).await,
        Before::Backlog(count) => {
            enqueue(&store, 0, count).await;
            next = count;
        }
    }
    let mut in_by = Vec::new();
    let mut rates = [0.0; 3];
    for (rate, batch) in rates.iter_mut().zip([1, 10, 100]) {
        let mut out_by = Vec::new();
        for _ in 0..ROUNDS {
            let jobs = if batch == 1 { JOBS / 5 } else { JOBS };
            in_by.push(jobs as f64 / enqueue(&store, next, jobs).await.as_secs_f64());
            next += jobs;
            tokio::time::sleep(PAUSE).await;
            out_by.push(jobs as f64 / drain(&store, batch, jobs).await.as_secs_f64());
        }
        *rate = median(out_by);
    }
    let [one, ten, hundred] = rates;
    figures::line(name, what, Some(median(in_by)), Some(one), [ten, hundred], bars);
    drop(store);
    place.remove().await;
    [ten, hundred]
}

/// How long an idle worker takes to pick a job up, in the same process: from the answer that it is enqueued until it is
/// claimed. Before that answer it cannot be claimed, and what the commit takes is the disk's.
pub async fn pick_up(name: &str, (place, store): (Place, SqlStore)) {
    let mut wakes = store.wakes();
    tokio::time::timeout(Duration::from_secs(2), wakes.woken()).await.ok();
    let (mut commits, mut claims) = (Vec::new(), Vec::new());
    for target in 0..100 {
        let (enqueuer, start) = (store.clone(), Instant::now());
        let (answered, answer) = oneshot::channel();
        let job = tokio::spawn(async move {
            enqueue(&enqueuer, target, 1).await;
            let _ = answered.send(Instant::now());
        });
        let kinds = [Kind::named(TYPE)];
        loop {
            wakes.woken().await;
            let wanted = Claim { kinds: &kinds, worker: "idle", lease: LEASE, max: 1 };
            if !store.claim(&wanted).await.unwrap().is_empty() {
                break;
            }
        }
        let (claimed, enqueued) = (Instant::now(), answer.await.unwrap());
        commits.push(enqueued.duration_since(start).as_secs_f64() * 1000.0);
        claims.push(claimed.saturating_duration_since(enqueued).as_secs_f64() * 1000.0);
        job.await.unwrap();
    }
    figures::pick_up(name, "asked to enqueue … enqueued", None, commits);
    figures::pick_up(name, "enqueued … claimed", figures::PICK_UP, claims);
    drop(store);
    place.remove().await;
}
