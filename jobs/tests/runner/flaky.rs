//! A store whose database goes away when the test says so.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redial_jobs::{
    Candidates, Claim, Claimed, Enqueued, Error, Failed, Failure, Filter, Held, ImportOptions, ImportSummary, Imported,
    JobId, JobRow, JobStore, Lease, NewJob, Pause, Plan, Recovery, RecoveryStore, Retention, Scope, SqlStore, Stats,
    Swept, Wakes,
};

/// What a database does when it is asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Answers,
    Fails,
    /// So many times, and then it answers.
    FailsTimes(u32),
    /// Once, by a panic of the store's own, and then it answers.
    PanicsOnce,
    /// Never answers.
    Hangs,
    /// Answers so much later.
    Late(Duration),
}

#[derive(Default)]
struct Moods {
    of_claim: Gate,
    of_renew: Gate,
    of_writes: Gate,
    of_sweeps: Gate,
}

struct Gate(Mutex<Mood>, AtomicU32);

impl Default for Gate {
    fn default() -> Self {
        Gate(Mutex::new(Mood::Answers), AtomicU32::new(0))
    }
}

impl Gate {
    async fn pass(&self) -> Result<(), Error> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let mood = {
            let mut mood = self.0.lock().unwrap();
            let now = *mood;
            if let Mood::FailsTimes(left) = now {
                *mood = if left > 1 { Mood::FailsTimes(left - 1) } else { Mood::Answers };
            }
            if now == Mood::PanicsOnce {
                *mood = Mood::Answers;
            }
            now
        };
        match mood {
            Mood::Answers => Ok(()),
            Mood::Fails | Mood::FailsTimes(_) => Err(Error::store("answer", "the database is away")),
            Mood::PanicsOnce => panic!("the store is broken"),
            Mood::Hangs => std::future::pending().await,
            Mood::Late(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }
}

#[derive(Clone)]
pub struct Flaky {
    inner: SqlStore,
    moods: Arc<Moods>,
}

impl Flaky {
    pub fn over(inner: &SqlStore) -> Self {
        Self { inner: inner.clone(), moods: Arc::default() }
    }

    pub fn claims(&self, mood: Mood) {
        *self.moods.of_claim.0.lock().unwrap() = mood;
    }

    pub fn renewals(&self, mood: Mood) {
        *self.moods.of_renew.0.lock().unwrap() = mood;
    }

    /// Of how a run ended.
    pub fn writes(&self, mood: Mood) {
        *self.moods.of_writes.0.lock().unwrap() = mood;
    }

    /// Of what a sweep has written.
    pub fn sweeps(&self, mood: Mood) {
        *self.moods.of_sweeps.0.lock().unwrap() = mood;
    }

    pub fn asked_to_claim(&self) -> u32 {
        self.moods.of_claim.1.load(Ordering::SeqCst)
    }

    pub fn asked_to_renew(&self) -> u32 {
        self.moods.of_renew.1.load(Ordering::SeqCst)
    }

    pub fn asked_to_write(&self) -> u32 {
        self.moods.of_writes.1.load(Ordering::SeqCst)
    }
}

impl RecoveryStore for Flaky {
    async fn candidates(&self, recovery: &Recovery) -> Result<Candidates, Error> {
        self.inner.candidates(recovery).await
    }

    async fn apply(&self, plan: &Plan) -> Result<Swept, Error> {
        let swept = self.inner.apply(plan).await?;
        self.moods.of_sweeps.pass().await?;
        Ok(swept)
    }

    async fn tick(&self, name: &str, every: Duration) -> Result<bool, Error> {
        self.inner.tick(name, every).await
    }
}

impl JobStore for Flaky {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
        self.inner.enqueue(jobs).await
    }

    async fn enqueue_every(
        &self,
        name: &str,
        every: Duration,
        jobs: &[NewJob],
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        self.inner.enqueue_every(name, every, jobs).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
        self.moods.of_claim.pass().await?;
        self.inner.claim(claim).await
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<Lease>, Error> {
        if !leases.is_empty() {
            self.moods.of_renew.pass().await?;
        }
        self.inner.renew(leases, lease).await
    }

    async fn complete(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.moods.of_writes.pass().await?;
        self.inner.complete(leases).await
    }

    async fn fail(&self, lease: Lease, failure: &Failure, recovery: &Recovery) -> Result<Failed, Error> {
        self.moods.of_writes.pass().await?;
        self.inner.fail(lease, failure, recovery).await
    }

    async fn snooze(&self, lease: Lease, wait: Duration) -> Result<Held, Error> {
        self.moods.of_writes.pass().await?;
        self.inner.snooze(lease, wait).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.moods.of_writes.pass().await?;
        self.inner.release(leases).await
    }

    async fn abandon(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.moods.of_writes.pass().await?;
        self.inner.abandon(leases).await
    }

    async fn revive(&self, id: JobId) -> Result<JobId, Error> {
        self.inner.revive(id).await
    }

    async fn pause(&self, scope: &Scope, time: Option<Duration>) -> Result<(), Error> {
        self.inner.pause(scope, time).await
    }

    async fn resume(&self, scope: &Scope) -> Result<bool, Error> {
        self.inner.resume(scope).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, Error> {
        self.inner.pauses().await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<JobRow>, Error> {
        self.inner.list(filter).await
    }

    async fn chain(&self, id: JobId) -> Result<Vec<JobRow>, Error> {
        self.inner.chain(id).await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        self.inner.stats().await
    }

    async fn backlog(&self) -> Result<Stats, Error> {
        self.inner.backlog().await
    }

    async fn prune(&self, retention: &Retention) -> Result<u64, Error> {
        self.inner.prune(retention).await
    }

    async fn import(&self, failures: &[Imported], options: &ImportOptions) -> Result<ImportSummary, Error> {
        self.inner.import(failures, options).await
    }

    fn wakes(&self) -> Wakes {
        self.inner.wakes()
    }
}
