//! Through a runner: one, which runs eight jobs at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use redial_jobs::{BoxError, Job, JobContext, JobStore, Jobs, NewJob, Runner, SqlStore, State};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use crate::{
    JOBS, PAUSE, ROUNDS, WORKERS,
    figures::{self, Bars, median},
    place::Place,
};

#[derive(Serialize, Deserialize)]
struct Nothing {
    number: usize,
}

impl Job for Nothing {
    const TYPE: &'static str = "nothing";
    const MAX_RUNTIME: Duration = Duration::from_secs(60);

    fn target(&self) -> String {
        self.number.to_string()
    }
}

async fn fill(store: &SqlStore, round: usize) {
    let jobs: Vec<_> = (0..JOBS).map(|job| NewJob::of(&Nothing { number: round * JOBS + job }).unwrap()).collect();
    for chunk in jobs.chunks(1000) {
        store.enqueue(chunk).await.unwrap();
    }
}

/// From the runner's start until the last row says COMPLETED.
async fn drain(store: &SqlStore, batch: u32) -> Duration {
    let (left, all) = (Arc::new(AtomicUsize::new(JOBS)), Arc::new(Notify::new()));
    let told = all.clone();
    let runner = Runner::new(Jobs::new(store.clone())).concurrency(WORKERS).batch(batch);
    let runner = runner.on(move |_: Nothing, _: JobContext| {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            told.notify_one();
        }
        async { Ok::<_, BoxError>(()) }
    });
    let start = Instant::now();
    // It ends when what is done is written.
    runner.run_until(all.notified()).await.unwrap();
    start.elapsed()
}

/// Prints a line of the table.
pub async fn measure(name: &str, bars: Bars, (place, store): (Place, SqlStore)) {
    let (mut round, mut rates) = (0, [0.0; 2]);
    for (rate, batch) in rates.iter_mut().zip([10, 100]) {
        let mut each = Vec::new();
        for _ in 0..ROUNDS {
            fill(&store, round).await;
            round += 1;
            tokio::time::sleep(PAUSE).await;
            each.push(JOBS as f64 / drain(&store, batch).await.as_secs_f64());
            let done = store.stats().await.unwrap().count(State::Completed);
            assert_eq!(done, (round * JOBS) as u64, "all of them are written");
        }
        *rate = median(each);
    }
    figures::line(name, "empty table", None, None, rates, bars);
    drop(store);
    place.remove().await;
}

/// How long an idle runner takes to begin a job, from the answer that it is enqueued.
pub async fn pick_up(name: &str, (place, store): (Place, SqlStore)) {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let runner = Runner::new(Jobs::new(store.clone())).on(move |_: Nothing, _: JobContext| {
        let _ = begun.send(Instant::now());
        async { Ok::<_, BoxError>(()) }
    });
    let (stop, stopped) = oneshot::channel();
    let running = tokio::spawn(runner.run_until(async { stopped.await.unwrap_or_default() }));
    let mut each = Vec::new();
    for number in 0..100 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        store.enqueue(&[NewJob::of(&Nothing { number }).unwrap()]).await.unwrap();
        let enqueued = Instant::now();
        let begins = begins.recv().await.unwrap();
        each.push(begins.saturating_duration_since(enqueued).as_secs_f64() * 1000.0);
    }
    let _ = stop.send(());
    running.await.unwrap().unwrap();
    figures::pick_up(name, "enqueued … its handler begins", figures::PICK_UP, each);
    drop(store);
    place.remove().await;
}
