//! Jobs to try with, and a runner that ends when the test says so.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redial_jobs::{
    BoxError, Filter, Job, JobId, JobRow, JobStore, Jobs, Recovery, Runner, State, Verified, VerifyContext,
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// Work that says nothing of whether it is done.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plain {
    pub name: String,
}

impl Job for Plain {
    const TYPE: &'static str = "plain";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);

    fn target(&self) -> String {
        self.name.clone()
    }
}

pub fn plain(name: &str) -> Plain {
    Plain { name: name.to_owned() }
}

/// Work that may run for 300 ms.
#[derive(Debug, Serialize, Deserialize)]
pub struct Short;

impl Job for Short {
    const TYPE: &'static str = "short";
    const MAX_RUNTIME: Duration = Duration::from_millis(300);

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

/// Work that can be looked at: the test says what is found there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Looked;

impl Job for Looked {
    const TYPE: &'static str = "looked";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);

    fn target(&self) -> String {
        "the only one".to_owned()
    }

    async fn verify(&self, cx: &VerifyContext) -> Result<Verified, BoxError> {
        look(cx)
    }
}

/// The same, with a provider that forgets keys at once.
#[derive(Debug, Serialize, Deserialize)]
pub struct Forgotten;

impl Job for Forgotten {
    const TYPE: &'static str = "forgotten";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);
    const KEY_VALID_FOR: Option<Duration> = Some(Duration::from_millis(1));

    fn target(&self) -> String {
        "the only one".to_owned()
    }

    async fn verify(&self, cx: &VerifyContext) -> Result<Verified, BoxError> {
        look(cx)
    }
}

/// The same, without a look.
#[derive(Debug, Serialize, Deserialize)]
pub struct Blind;

impl Job for Blind {
    const TYPE: &'static str = "blind";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);
    const KEY_VALID_FOR: Option<Duration> = Some(Duration::from_millis(1));

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

fn look(cx: &VerifyContext) -> Result<Verified, BoxError> {
    cx.get::<Look>().ok_or("no look was shared")?.take()
}

/// What looking finds, in order; the last of it from then on.
#[derive(Clone)]
pub struct Look {
    found: Arc<[Found]>,
    looks: Arc<AtomicU32>,
}

#[derive(Clone, Copy, Debug)]
pub enum Found {
    Done,
    NotDone,
    Nothing,
    Error,
}

impl Look {
    pub fn finds(found: impl Into<Arc<[Found]>>) -> Self {
        Self { found: found.into(), looks: Arc::default() }
    }

    fn take(&self) -> Result<Verified, BoxError> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst) as usize;
        match self.found[look.min(self.found.len() - 1)] {
            Found::Done => Ok(Verified::Done),
            Found::NotDone => Ok(Verified::NotDone),
            Found::Nothing => Ok(Verified::Unsupported),
            Found::Error => Err("the provider is down".into()),
        }
    }

    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::SeqCst)
    }
}

/// Counts.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicU32>);

impl Count {
    /// Counts one, and says which it is; the first is 1.
    pub fn one(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Failures are repaired within the blink of an eye.
pub fn quick() -> Recovery {
    let tick = Duration::from_millis(20);
    Recovery::default().every(Duration::from_millis(1)).jitter(Duration::ZERO).ghost_wait(tick).sweep_every(tick)
}

/// A runner at work.
pub struct Team {
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), redial_jobs::Error>>,
}

impl Team {
    pub fn start<S: JobStore>(runner: Runner<S>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(runner.run_until(async { stopped.await.unwrap_or_default() }));
        Self { stop: Some(stop), running }
    }

    /// Tells it to shut down, and does not wait.
    pub fn shut_down(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub fn has_ended(&self) -> bool {
        self.running.is_finished()
    }

    pub async fn end(mut self) {
        if self.stop.is_some() {
            self.shut_down();
        }
        self.running.await.unwrap().unwrap();
    }
}

/// Waits until this holds, for 30 s.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until as many jobs are in this state, and returns all jobs, the oldest first.
pub async fn until_state<S: JobStore>(store: &S, state: State, count: usize) -> Vec<JobRow> {
    let start = Instant::now();
    loop {
        let rows = all(store).await;
        if rows.iter().filter(|row| row.state == state).count() >= count {
            return rows;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain for {count} {state}: {rows:#?}");
        sleep(Duration::from_millis(5)).await;
    }
}

pub async fn all<S: JobStore>(store: &S) -> Vec<JobRow> {
    let mut rows = store.list(&Filter { limit: Some(1000), ..Filter::default() }).await.unwrap();
    rows.reverse();
    rows
}

pub fn states(rows: &[JobRow]) -> Vec<State> {
    rows.iter().map(|row| row.state).collect()
}

pub async fn add<S: JobStore, J: Job>(store: &S, job: &J) -> JobId {
    Jobs::new(store.clone()).enqueue_if_absent(job).await.unwrap().id()
}

/// A runner that looks often and is not in the way.
pub fn runner<S: JobStore>(store: &S) -> Runner<S> {
    Runner::new(Jobs::new(store.clone()))
        .recovery(quick())
        .poll_every(Duration::from_millis(20))
        .lease(Duration::from_secs(5))
}
