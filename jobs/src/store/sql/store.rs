//! The statements, as the traits name them.

use std::time::Duration;

use crate::{
    Candidates, Claim, Claimed, Enqueued, Error, Failed, Failure, Filter, Held, ImportOptions, ImportSummary, Imported,
    JobId, JobRow, JobStore, Lease, NewJob, Pause, Plan, Recovery, RecoveryStore, Retention, Scope, Stats, Swept,
    Wakes,
};

use super::{
    SqlStore,
    work::{ABANDON, RELEASE},
};

impl RecoveryStore for SqlStore {
    async fn candidates(&self, recovery: &Recovery) -> Result<Candidates, Error> {
        self.read_candidates(recovery).await
    }

    async fn apply(&self, plan: &Plan) -> Result<Swept, Error> {
        self.carry_out(plan).await
    }

    async fn tick(&self, name: &str, every: Duration) -> Result<bool, Error> {
        self.take_tick(name, every).await
    }
}

impl JobStore for SqlStore {
    async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, Error> {
        Ok(self.enqueue_on_tick(None, jobs).await?.unwrap_or_default())
    }

    async fn enqueue_every(
        &self,
        name: &str,
        every: Duration,
        jobs: &[NewJob],
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        self.enqueue_on_tick(Some((name, every)), jobs).await
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
        self.claim_jobs(claim).await
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<Lease>, Error> {
        self.renew_leases(leases, lease).await
    }

    async fn complete(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.complete_jobs(leases).await
    }

    async fn fail(&self, lease: Lease, failure: &Failure, recovery: &Recovery) -> Result<Failed, Error> {
        self.fail_job(lease, failure, recovery).await
    }

    async fn snooze(&self, lease: Lease, wait: Duration) -> Result<Held, Error> {
        self.snooze_job(lease, wait).await
    }

    async fn release(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.give_back(RELEASE, leases).await
    }

    async fn abandon(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.give_back(ABANDON, leases).await
    }

    async fn revive(&self, id: JobId) -> Result<JobId, Error> {
        self.revive_job(id).await
    }

    async fn pause(&self, scope: &Scope, time: Option<Duration>) -> Result<(), Error> {
        self.pause_scope(scope, time).await
    }

    async fn resume(&self, scope: &Scope) -> Result<bool, Error> {
        self.resume_scope(scope).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>, Error> {
        self.read_pauses().await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<JobRow>, Error> {
        self.list_jobs(filter).await
    }

    async fn chain(&self, id: JobId) -> Result<Vec<JobRow>, Error> {
        self.chain_of(id).await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        self.read_stats(true).await
    }

    async fn backlog(&self) -> Result<Stats, Error> {
        self.read_stats(false).await
    }

    async fn prune(&self, retention: &Retention) -> Result<u64, Error> {
        self.prune_jobs(retention).await
    }

    async fn import(&self, failures: &[Imported], options: &ImportOptions) -> Result<ImportSummary, Error> {
        self.import_failures(failures, options).await
    }

    fn wakes(&self) -> Wakes {
        self.wakes_of()
    }
}
