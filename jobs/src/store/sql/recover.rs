//! What a sweep reads, and what it writes.

use std::time::Duration;

use crate::{Burial, Candidate, Candidates, Error, Health, JobId, Plan, Recovery, Step, Stuck, Swept};

use super::{
    SqlStore, Value,
    columns::{count, read},
    db::Row,
    enqueue::ms,
    transaction::SqlTransaction,
    work::SINCE,
};

/// How many candidates are read beyond what may be recovered: those that are only to be buried or closed.
const BEYOND: u32 = 100;
/// How many types with a stuck job are reported.
const STUCK: i64 = 20;

/// The columns of a candidate, counted since the target's last COMPLETED. `{ghosts}`: whether it is one itself.
fn judged(from: &str, order: &str, is_ghost: i64) -> String {
    let counted = |ghosts: &str| {
        format!(
            "(SELECT count(*) FROM {{jobs}} AS h WHERE h.job_type = m.job_type AND h.target = m.target AND h.id < m.id
    AND h.state IN ('FAILED', 'DEAD') AND h.failure_class {ghosts} 'ghost' AND h.id > {SINCE})"
        )
    };
    format!(
        "
SELECT m.id, m.token, m.job_type, m.target, m.provider,
    (SELECT count(*) FROM (SELECT 1 AS one FROM {{jobs}} AS n
        WHERE n.job_type = m.job_type AND n.target = m.target AND n.id > m.id LIMIT 1) AS later),
    {} + {}, {} + {is_ghost}
FROM ({from}) AS m ORDER BY {order}",
        counted("<>"),
        1 - is_ghost,
        counted("="),
    )
}

/// Of each provider the longest due ones, so that those of one that waits do not hide another's. Only these are read from
/// the table: the index alone says which they are.
const DUE: &str = "
SELECT id, token, job_type, target, provider, retry_at FROM {jobs} WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY provider ORDER BY retry_at, id) AS place
        FROM {jobs} {by_due} WHERE state = 'FAILED' AND retry_at IS NOT NULL AND retry_at <= {now}) AS due
    WHERE place <= $1)";

const GHOSTS: &str = "
SELECT id, token, job_type, target, provider, lease_until FROM {jobs} WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY provider ORDER BY lease_until, id) AS place
        FROM {jobs} {by_lease} WHERE state = 'PROCESSING' AND lease_until < {now}) AS gone
    WHERE place <= $1)";

/// The newest result that tells something of the provider: not what the job itself, or its worker, did wrong.
const FAILING: &str = "
SELECT CASE state WHEN 'COMPLETED' THEN 'no' ELSE 'yes' END FROM {jobs}
WHERE provider = $1 AND finished_at IS NOT NULL AND (state = 'COMPLETED' OR (state IN ('FAILED', 'DEAD')
    AND failure_class IN ('exhausted', 'timeout', 'unclassified', 'unverified')))
ORDER BY finished_at DESC, id DESC LIMIT 1";

/// One that has not ended for so long tells nothing: nobody handles its type, say.
const CANARY: &str = "
SELECT count(*) FROM {jobs} WHERE provider = $1 AND origin = 'RECOVERED' AND state IN ('PENDING', 'PROCESSING')
    AND run_at > {now} - $2";

/// The longest claimable of each type.
const CLAIMABLE: &str = "
SELECT s.id, s.job_type, s.target, {now} - s.run_at
FROM (SELECT DISTINCT job_type FROM {jobs} WHERE state = 'PENDING') AS t
JOIN {jobs} AS s ON s.id = (SELECT f.id FROM {jobs} AS f WHERE f.state = 'PENDING' AND f.job_type = t.job_type
    ORDER BY f.run_at, f.id LIMIT 1)
WHERE s.run_at < {now} - $1 AND NOT EXISTS (SELECT 1 FROM {pauses} AS p
    WHERE (p.until_at IS NULL OR p.until_at > {now})
        AND ((p.scope = 'type' AND p.name = s.job_type) OR (p.scope = 'provider' AND p.name = s.provider)))
ORDER BY s.run_at, s.id LIMIT $2";

const NEWEST: &str = "NOT EXISTS (
    SELECT 1 FROM {jobs} AS n WHERE n.job_type = j.job_type AND n.target = j.target AND n.id > j.id)";

/// Under which a ghost is still one: its worker has not written, and has not renewed.
const STILL_A_GHOST: &str = "j.id = $1 AND j.token = $2 AND j.state || '' = 'PROCESSING' AND j.lease_until < {now}";
const STILL_DUE: &str = "j.id = $1 AND j.token = $2 AND j.state || '' = 'FAILED' AND j.retry_at IS NOT NULL";

/// Whether it did its work before it died, nobody can say.
const CLOSE_GHOST: &str = "
UPDATE {jobs} AS j SET state = $3, dead_reason = $4, failure_class = 'ghost', outcome_unknown = 1,
    error = 'its lease ran out: worker ' || COALESCE(j.worker, '?') || ' died or hung',
    failures = $5, ghosts = $6, finished_at = {now}, lease_until = NULL, retry_at = NULL
WHERE ";

/// Its row is history: what it says is not changed.
const CLOSE_DUE: &str = "UPDATE {jobs} AS j SET state = $3, dead_reason = $4, retry_at = NULL WHERE ";

/// Who revives a job has looked, and says: do it again. So the keys of its chain stay, which keep its steps from being done
/// twice where they are still honoured, and their age counts anew.
const SUCCESSOR: &str = "
INSERT INTO {jobs} (job_type, target, payload, state, provider, origin, once, unique_ms, attempt, run_at,
    parent_id, root_id, chain, chain_at, unknown_before, trace, created_at)
SELECT j.job_type, j.target, j.payload, 'PENDING', j.provider, $2, j.once, j.unique_ms, j.attempt + 1,
    {max}({now} + $3, COALESCE(j.not_before, 0)), j.id, COALESCE(j.root_id, j.id), j.chain,
    CASE WHEN $2 = 'REVIVED' THEN 0 ELSE j.chain_at END, j.outcome_unknown, j.trace, {now}
FROM {jobs} AS j WHERE j.id = $1 AND ";

impl SqlStore {
    pub(super) async fn read_candidates(&self, recovery: &Recovery) -> Result<Candidates, Error> {
        let doing = "plan a sweep";
        let most = Value::Int(i64::from(recovery.sweep_cap().saturating_add(BEYOND)));
        let ghosts = self.fetch(doing, &judged(GHOSTS, "m.lease_until, m.id", 1), std::slice::from_ref(&most)).await?;
        let ghosts = read(doing, &ghosts, candidate)?;
        let failures = self.fetch(doing, &judged(DUE, "m.retry_at, m.id", 0), &[most]).await?;
        let failures = read(doing, &failures, candidate)?;
        let mut names: Vec<_> = ghosts.iter().chain(&failures).filter_map(|job| job.provider.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        let mut providers = Vec::with_capacity(names.len());
        for name in names {
            providers.push(self.health(name, recovery).await?);
        }
        let values = [Value::Int(ms(recovery.stuck_limit())), Value::Int(STUCK)];
        let stuck = read(doing, &self.fetch(doing, CLAIMABLE, &values).await?, stuck)?;
        Ok(Candidates { ghosts, failures, providers, stuck })
    }

    async fn health(&self, provider: &str, recovery: &Recovery) -> Result<Health, Error> {
        let doing = "ask how a provider does";
        let failing = self.fetch(doing, FAILING, &[Value::Text(provider)]).await?;
        let failing = read(doing, &failing, |row| Ok(row.text(0)? == "yes"))?.contains(&true);
        let values = [Value::Text(provider), Value::Int(ms(recovery.stuck_limit()))];
        let out = self.fetch(doing, CANARY, &values).await?;
        let canary_out = read(doing, &out, |row| row.int(0))?.into_iter().any(|count| count > 0);
        Ok(Health { provider: provider.to_owned(), failing, canary_out })
    }

    /// Each step is a transaction: none waits for a lock while it holds another target's.
    pub(super) async fn carry_out(&self, plan: &Plan) -> Result<Swept, Error> {
        let mut swept = Swept { stuck: plan.stuck.clone(), ..Swept::default() };
        for (step, taken) in plan.steps.iter().zip(0_u32..) {
            match self.take_step(step).await {
                Ok(done) => tally(&mut swept, step, done),
                Err(error) if taken == 0 => return Err(Error::store("sweep", error)),
                // What was done must be told of. What was not is planned again.
                Err(error) => {
                    tracing::warn!(target: "redial_jobs", %error, taken, "a sweep was cut short");
                    swept.waiting += count(i64::try_from(plan.steps.len()).unwrap_or(i64::MAX)).saturating_sub(taken);
                    break;
                }
            }
        }
        if swept.recovered > 0 {
            self.0.waker.wake();
        }
        Ok(swept)
    }

    async fn take_step(&self, step: &Step) -> sqlx::Result<Done> {
        if let Step::Wait { .. } = step {
            return Ok(Done::Nothing);
        }
        let mut tx = self.0.db.begin().await?;
        let done = self.take_step_in(&mut tx.connection(), step).await?;
        tx.commit().await?;
        Ok(done)
    }

    async fn take_step_in(&self, tx: &mut SqlTransaction<'_>, step: &Step) -> sqlx::Result<Done> {
        match step {
            Step::Wait { .. } => Ok(Done::Nothing),
            Step::Supersede { job, ghost } => match self.close(tx, job, *ghost, None, false).await? {
                true => Ok(Done::Closed),
                false => Ok(Done::Overtaken),
            },
            Step::Bury(burial) => match self.close(tx, &burial.job, burial.ghost, Some(burial), true).await? {
                true => Ok(Done::Closed),
                false => Ok(Done::Overtaken),
            },
            Step::Recover { job, ghost: true, delay } => {
                if !self.close(tx, job, true, None, true).await? {
                    return Ok(Done::Overtaken);
                }
                let still = "j.state || '' = 'FAILED'";
                match self.succeed(tx, job.id, still, "RECOVERED", *delay).await? {
                    Some(_) => Ok(Done::Recovered),
                    None => Ok(Done::Closed),
                }
            }
            // In the order in which enqueueing takes the same locks: first the target, then the row.
            Step::Recover { job, ghost: false, delay } => {
                let still = "j.state || '' = 'FAILED' AND j.retry_at IS NOT NULL";
                if self.succeed(tx, job.id, still, "RECOVERED", *delay).await?.is_none() {
                    return Ok(Done::Overtaken);
                }
                self.close(tx, job, false, None, false).await?;
                Ok(Done::Recovered)
            }
        }
    }

    /// Closes the intent to repair a failure, or the ghost itself; says whether it was still open.
    async fn close(
        &self,
        tx: &mut SqlTransaction<'_>,
        job: &Candidate,
        ghost: bool,
        burial: Option<&Burial>,
        newest: bool,
    ) -> sqlx::Result<bool> {
        let state = if burial.is_some() { "DEAD" } else { "FAILED" };
        let mut values = vec![
            Value::Int(job.id.0),
            Value::Int(job.token),
            Value::Text(state),
            Value::MaybeText(burial.map(|burial| burial.reason.as_str())),
        ];
        let (what, still) = if ghost { (CLOSE_GHOST, STILL_A_GHOST) } else { (CLOSE_DUE, STILL_DUE) };
        if ghost {
            values.push(Value::Int(i64::from(job.failures)));
            values.push(Value::Int(i64::from(job.ghosts)));
        }
        let newest = if newest { format!(" AND {NEWEST}") } else { String::new() };
        let sql = self.0.dialect.render(&format!("{what}{still}{newest} RETURNING {{out}}id"));
        Ok(!tx.fetch(sql, &values).await?.is_empty())
    }

    /// Enqueues a successor, if the job `j` still is as this says. `None`: it is not, or a later job of the target exists.
    pub(super) async fn succeed(
        &self,
        tx: &mut SqlTransaction<'_>,
        id: JobId,
        still: &str,
        origin: &str,
        delay: Duration,
    ) -> sqlx::Result<Option<JobId>> {
        let sql = format!("{SUCCESSOR}{still} AND {NEWEST} ON CONFLICT DO NOTHING RETURNING id");
        let values = [Value::Int(id.0), Value::Text(origin), Value::Int(ms(delay))];
        let rows = tx.fetch(self.0.dialect.render(&sql), &values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        if delay.is_zero() {
            self.tell(tx).await?;
        }
        row.int(0).map(|id| Some(JobId(id)))
    }
}

/// What became of a step.
#[derive(Clone, Copy)]
enum Done {
    /// It waits.
    Nothing,
    /// Its row is closed, without a successor.
    Closed,
    Recovered,
    /// It no longer held.
    Overtaken,
}

fn tally(swept: &mut Swept, step: &Step, done: Done) {
    let is_ghost = match step {
        Step::Recover { ghost, .. } | Step::Supersede { ghost, .. } => *ghost,
        Step::Bury(burial) => burial.ghost,
        Step::Wait { .. } => false,
    };
    match (done, step) {
        (Done::Nothing, _) => swept.waiting += 1,
        (Done::Overtaken, _) => swept.overtaken += 1,
        (Done::Recovered, _) => swept.recovered += 1,
        (Done::Closed, Step::Bury(burial)) => swept.buried.push(burial.clone()),
        (Done::Closed, _) => swept.superseded += 1,
    }
    swept.ghosts += u32::from(is_ghost && matches!(done, Done::Closed | Done::Recovered));
}

fn candidate(row: &Row) -> sqlx::Result<Candidate> {
    Ok(Candidate {
        id: JobId(row.int(0)?),
        token: row.int(1)?,
        job_type: row.text(2)?,
        target: row.text(3)?,
        provider: row.maybe_text(4)?,
        newest: row.int(5)? == 0,
        failures: count(row.int(6)?),
        ghosts: count(row.int(7)?),
    })
}

fn stuck(row: &Row) -> sqlx::Result<Stuck> {
    Ok(Stuck {
        id: JobId(row.int(0)?),
        job_type: row.text(1)?,
        target: row.text(2)?,
        waited: Duration::from_millis(row.int(3)?.max(0).unsigned_abs()),
    })
}
