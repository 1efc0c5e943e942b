//! Workers: what takes jobs from a store and does them.

mod backoff;
mod complete;
mod context;
mod desk;
mod guard;
mod handler;
mod hold;
mod housekeeping;
mod limits;
mod panics;
mod renew;
mod run;
mod shelf;
mod signal;
mod source;
mod worker;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::Future,
    sync::Arc,
    time::Duration,
};

use http::Extensions;

pub use context::JobContext;

use crate::{BoxError, Death, Error, Job, JobStore, Jobs, Kind, Recovery, Retention};
use desk::Hook;
use handler::Handler;
use housekeeping::Tick;
use limits::Limits;

/// Takes jobs from a store and does them: the worker.
///
/// It runs on the worker runtime of [apalis](https://docs.rs/apalis-core). Each job runs in a task of its own, which is
/// cancelled when it runs longer than [`Job::MAX_RUNTIME`]. Whatever its handler returns, panics with or hangs in, the
/// job's row says how it ended: COMPLETED, FAILED (recovery enqueues a successor), or DEAD, which is one ERROR and the
/// hooks of [`on_dead`](Self::on_dead).
///
/// A look by [`Job::verify`] before the work shares that time.
///
/// A database that is away does not end it: it waits, with jitter, up to five seconds between two tries.
///
/// ```no_run
/// # use std::time::Duration;
/// # use redial_jobs::{Job, JobContext, JobError, JobStore, Jobs, Recovery, Runner};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct CommitTil { user: u64 }
/// # impl Job for CommitTil {
/// #     const TYPE: &'static str = "commit-til";
/// #     const MAX_RUNTIME: Duration = Duration::from_secs(60);
/// #     fn target(&self) -> String { self.user.to_string() }
/// # }
/// # async fn put_contents(_: CommitTil, _: http::HeaderValue) -> Result<(), JobError> { Ok(()) }
/// # async fn serve(jobs: Jobs<impl JobStore>) -> Result<(), redial_jobs::Error> {
/// Runner::new(jobs)
///     .on(|job: CommitTil, cx: JobContext| async move { put_contents(job, cx.key("put")).await })
///     .concurrency(8)
///     .recovery(Recovery::default())
///     .run_until(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
///     .await
/// # }
/// ```
///
/// # Right and wrong
///
/// - A handler looks at the answer it got: a call whose attempts are spent on a 503 *returns* that 503.
///   [`JobError::of_answer`](crate::JobError::of_answer) does it.
/// - Work that blocks goes into `tokio::task::spawn_blocking`, with [`JobContext::lost`] to tell it to end. A handler that
///   blocks its thread cannot be cancelled, and if it does so on every thread of the runtime, nothing renews its lease.
/// - A handler does not retry by itself: the HTTP level did so already, and the job level will.
/// - What is sent depends on the job alone, or is stored before it is sent: [`JobContext::key`] says why.
pub struct Runner<S> {
    jobs: Jobs<S>,
    handlers: HashMap<String, Handler>,
    kinds: Vec<Kind>,
    twice: Option<&'static str>,
    concurrency: usize,
    limits: Limits,
    name: String,
    recovery: Recovery,
    sweeps: bool,
    refuses_unknown: bool,
    retention: Option<Retention>,
    ticks: Vec<Tick<S>>,
    shared: Extensions,
    hooks: Vec<Hook>,
}

impl<S: JobStore> Runner<S> {
    /// A worker of these jobs, which handles none yet.
    pub fn new(jobs: Jobs<S>) -> Self {
        Self {
            jobs,
            handlers: HashMap::new(),
            kinds: Vec::new(),
            twice: None,
            concurrency: 8,
            limits: Limits::default(),
            name: format!("{}-{}", std::process::id(), uuid::Uuid::now_v7().simple()),
            recovery: Recovery::default(),
            sweeps: true,
            refuses_unknown: false,
            retention: None,
            ticks: Vec::new(),
            shared: Extensions::new(),
            hooks: Vec::new(),
        }
    }

    /// What is done with the jobs of this type. Any error, a panic and a run that lasts too long make it FAILED, or DEAD;
    /// [`JobError`](crate::JobError) says which errors mean what.
    ///
    /// A type whose [`MAX_RUNTIME`](Job::MAX_RUNTIME) is zero does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use std::time::Duration;
    /// # use redial_jobs::{BoxError, Job, JobContext, JobStore, Runner};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Endless;
    ///
    /// impl Job for Endless {
    ///     const TYPE: &'static str = "endless";
    ///     const MAX_RUNTIME: Duration = Duration::ZERO;
    ///     fn target(&self) -> String {
    ///         "the only one".into()
    ///     }
    /// }
    ///
    /// fn add<S: JobStore>(runner: Runner<S>) -> Runner<S> {
    ///     runner.on(|_: Endless, _: JobContext| async { Ok::<_, BoxError>(()) })
    /// }
    /// # type Store = redial_jobs::SqlStore;
    /// # fn main() { let _: fn(Runner<Store>) -> Runner<Store> = add; }
    /// ```
    pub fn on<J, F, Fut, E>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        match self.handlers.insert(J::TYPE.to_owned(), Handler::of(handler)) {
            Some(_) => self.twice = Some(J::TYPE),
            None => self.kinds.push(Kind::of::<J>()),
        }
        self
    }

    /// How many jobs run at once. 8 by default, 1 to 10 000.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs;
        self
    }

    /// How many jobs one claim takes. By default as many as there are free slots, so that none waits here that another
    /// worker could begin; a batch is faster where jobs are short, and as long as each is full, up to two of them are on
    /// their way while the last one runs. 1 to 1000.
    pub fn batch(mut self, jobs: u32) -> Self {
        self.limits.batch = Some(jobs);
        self
    }

    /// How long a job is held without renewing: after that time a dead worker's jobs are ghosts. 30 s by default, a second
    /// to a day. Renewed every third of it.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.limits.lease = lease;
        self
    }

    /// How often the table is looked at while nothing wakes the worker. 500 ms by default; more than zero. Jobs that were
    /// enqueued in this process, and with PostgreSQL in any, are picked up at once.
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.limits.poll = interval;
        self
    }

    /// How long running jobs are given when the runner shuts down. Those that have not ended by then are cancelled and
    /// given back, without counting as an attempt. 25 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// How often a job may be put off before it is DEAD. No limit by default.
    pub fn max_snoozes(mut self, snoozes: u32) -> Self {
        self.limits.max_snoozes = Some(snoozes);
        self
    }

    /// For how long a job may be put off, counted from when it was enqueued, before it is DEAD. No limit by default.
    pub fn max_snooze_age(mut self, age: Duration) -> Self {
        self.limits.max_snooze_age = Some(age);
        self
    }

    /// The worker's name in the table, of which 100 bytes are stored; without control characters. Random by default, with the number of its process.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How failed jobs are repaired. By default they are as by [`Recovery::default`]; of many runners, one sweeps at a
    /// time.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self.sweeps = true;
        self
    }

    /// Sweeps nothing: a scheduler of yours calls [`Sweeper::run_once`](crate::Sweeper::run_once). Failures are still
    /// counted against the limits of these settings.
    pub fn recovery_elsewhere(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self.sweeps = false;
        self
    }

    /// Jobs of a type that this runner does not handle are DEAD, once a sweep finds them. Only for a runner that is the
    /// only kind of worker on its table: one of an older release would else kill the jobs of a newer one. By default they
    /// wait, and are reported once they have waited for [`Recovery::stuck_after`].
    pub fn refuse_unknown_types(mut self) -> Self {
        self.refuses_unknown = true;
        self
    }

    /// Deletes ended jobs, once an hour. By default nothing is deleted.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Enqueues a batch every so often: of many runners, one does so each time. The first time at once. The name stands for
    /// the interval in the table, and is no other batch's.
    ///
    /// Each job is enqueued as [`Jobs::enqueue_if_absent`] does, so that a batch may name what is active already, but for
    /// targets whose newest job is FAILED: recovery has those, at its own pace. A DEAD one is tried again, which is an ERROR
    /// each time that it dies, so that a batch is for intervals of hours or days.
    ///
    /// It is made more often than it is enqueued, by every runner, so making it must change nothing. One that cannot be
    /// made, or panics, is tried again, after growing waits, until it is.
    pub fn every<J, F, Fut, E>(mut self, name: impl Into<String>, interval: Duration, batch: F) -> Self
    where
        J: Job,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<J>, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.ticks.push(Tick::of(name.into(), interval, batch));
        self
    }

    /// A value for all handlers and for [`Job::verify`], such as a client. One of each type.
    pub fn share<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.shared.insert(value);
        self
    }

    /// Called for each job that this runner's writes and sweeps make DEAD, after its ERROR. It must not block.
    pub fn on_dead(mut self, hook: impl Fn(&Death) + Send + Sync + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Runs until `shutdown` ends: then nothing more is claimed, what was claimed and not begun is given back, running jobs
    /// and a sweep under way have their [`grace`](Self::grace), and the jobs that have not ended by then are given back as
    /// well. Drop this before it ends, and what it held is found as ghosts.
    ///
    /// # Errors
    ///
    /// A setting breaks a rule; nothing was run. Neither a job nor the database ends it.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        self.check()?;
        run::run(self, shutdown).await
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(job_type) = self.twice {
            return Err(Error::invalid(format!("the type `{job_type}` has two handlers: give it one")));
        }
        if self.kinds.is_empty() {
            return Err(Error::invalid("the runner handles no type of jobs: give it a handler with `on`"));
        }
        if self.kinds.len() > 64 {
            let count = self.kinds.len();
            return Err(Error::invalid(format!("the runner handles {count} types: it may handle 64, so make it two")));
        }
        if !(1..=10_000).contains(&self.concurrency) {
            return Err(Error::invalid(format!("Runner::concurrency is {}: it must be 1 to 10000", self.concurrency)));
        }
        if self.name.chars().any(char::is_control) {
            return Err(Error::invalid(format!("Runner::name is {:?}: it must have no control characters", self.name)));
        }
        if let Some(retention) = &self.retention {
            retention.check()?;
        }
        self.limits.check()?;
        self.ticks.iter().try_for_each(Tick::check)?;
        let mut names = HashSet::new();
        if let Some(twice) = self.ticks.iter().find(|tick| !names.insert(tick.name())) {
            let name = twice.name();
            return Err(Error::invalid(format!(
                "two batches are called `{name}`: one of them would never be enqueued, so give each a name of its own"
            )));
        }
        self.recovery.check()
    }
}

impl<S> fmt::Debug for Runner<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("concurrency", &self.concurrency)
            .field("recovery", &self.recovery)
            .finish_non_exhaustive()
    }
}
