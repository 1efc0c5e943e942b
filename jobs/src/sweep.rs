//! One sweep, and who makes it when.

use serde::Serialize;

use crate::{Burial, Error, Plan, Recovery, RecoveryStore, Stuck, plan};

/// The name of the tick that sweeps share.
const TICK: &str = "sweep";

/// Sweeps a store: ghosts and failures in one pass (J7).
///
/// For a scheduler of your own, such as cron or a Kubernetes job, [`run_once`](Self::run_once) is one pass. Any number of
/// them may run at once.
#[derive(Clone, Debug)]
pub struct Sweeper<S> {
    store: S,
    recovery: Recovery,
}

impl<S: RecoveryStore> Sweeper<S> {
    /// Sweeps this store by these settings.
    ///
    /// # Errors
    ///
    /// A setting cannot be worked by ([`Recovery::check`]).
    pub fn new(store: S, recovery: Recovery) -> Result<Self, Error> {
        recovery.check()?;
        Ok(Self { store, recovery })
    }

    /// What a pass would do now, without doing it.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn plan(&self) -> Result<Plan, Error> {
        Ok(plan(self.store.candidates(&self.recovery).await?, &self.recovery))
    }

    /// One pass. Each target that is given up is one ERROR: let the pass end, for what it had given up before it was dropped
    /// is not told of.
    ///
    /// # Errors
    ///
    /// The store fails; the next pass makes up for it.
    pub async fn run_once(&self) -> Result<Swept, Error> {
        let plan = self.plan().await?;
        let swept = self.store.apply(&plan).await?;
        swept.observe();
        Ok(swept)
    }

    /// One pass, if none was made by anybody within the interval ([`Recovery::sweep_every`]): many instances that ask
    /// make one pass together.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub async fn run_if_due(&self) -> Result<Option<Swept>, Error> {
        match self.store.tick(TICK, self.recovery.sweep_interval()).await? {
            true => self.run_once().await.map(Some),
            false => Ok(None),
        }
    }

    /// By which settings is swept.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Swept {
    /// Successors that were enqueued.
    pub recovered: u32,
    /// Ghosts among those in whose place that was, or that were closed.
    pub ghosts: u32,
    /// Targets that were given up.
    pub buried: Vec<Burial>,
    /// Failures of targets that have a later job.
    pub superseded: u32,
    /// Those that wait for a later sweep.
    pub waiting: u32,
    /// Steps that no longer held when they were carried out: another sweeper, or the worker itself, was faster.
    pub overtaken: u32,
    /// Jobs that have been claimable for too long.
    pub stuck: Vec<Stuck>,
}

impl Swept {
    /// Nothing done yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn observe(&self) {
        crate::observe::swept(self);
        for burial in &self.buried {
            let job = &burial.job;
            tracing::error!(
                target: "redial_jobs",
                id = job.id.0,
                job_type = %job.job_type,
                job_target = %job.target,
                provider = job.provider.as_deref(),
                reason = burial.reason.as_str(),
                failures = job.failures,
                ghosts = job.ghosts,
                "a job is DEAD: recovery has given its target up",
            );
        }
        for stuck in &self.stuck {
            tracing::warn!(
                target: "redial_jobs",
                id = stuck.id.0,
                job_type = %stuck.job_type,
                job_target = %stuck.target,
                waited_s = stuck.waited.as_secs(),
                "a job is claimable and nobody claims it: does a worker handle its type?",
            );
        }
        if self.recovered > 0 || self.ghosts > 0 {
            tracing::info!(
                target: "redial_jobs",
                recovered = self.recovered,
                ghosts = self.ghosts,
                superseded = self.superseded,
                waiting = self.waiting,
                "jobs were recovered",
            );
        }
    }
}
