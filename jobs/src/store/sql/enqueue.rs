//! Jobs come in.

use std::time::Duration;

use uuid::Uuid;

use crate::{Enqueued, Error, JobId, NewJob, Unique};

use super::{SqlStore, Value, db::SqlTransaction, import::IMPORTING};

/// How often an insert and the look at what was in its way are tried: each time another process must have enqueued a job
/// and ended it in between.
const TRIES: usize = 20;

/// What [`Unique::ActiveOrCompleted`] means by its time: longer than any clock has run.
const EVER: i64 = 1 << 52;

/// The job stands in for the target's newest one where that has failed: so that one and the same failure has one
/// successor, whether a sweep or somebody else enqueues it. With another payload it is other work, under other keys.
/// Keys have no age (0) until they can have been sent: the first claim of their chain says when.
///
/// `$8`: how long ago a COMPLETED one must be. Where that is asked, an active one is looked for as well: it may complete
/// while this statement runs. `$10`: 1 for a batch, which leaves a failure that recovery is to repair.
const INSERT: &str = "
INSERT INTO {jobs} (job_type, target, payload, state, provider, origin, once, unique_ms, attempt, run_at,
    parent_id, root_id, chain, chain_at, unknown_before, trace, created_at)
SELECT $1, $2, $3, 'PENDING', $4, 'ENQUEUED', $5, COALESCE($8, 0), COALESCE(p.attempt, 0) + 1,
    {max}({now} + $6, COALESCE(p.not_before, 0)),
    p.id, COALESCE(p.root_id, p.id),
    CASE WHEN p.payload = $3 THEN p.chain ELSE $7 END, CASE WHEN p.payload = $3 THEN p.chain_at ELSE 0 END,
    COALESCE(p.outcome_unknown, 0), $9, {now}
FROM (SELECT 1 AS one) AS o
LEFT JOIN (SELECT * FROM {jobs} WHERE job_type = $1 AND target = $2 ORDER BY id DESC LIMIT 1) AS p
    ON p.state IN ('FAILED', 'DEAD')
WHERE ($8 IS NULL OR NOT EXISTS (
        SELECT 1 FROM {jobs} AS c WHERE c.job_type = $1 AND c.target = $2
            AND (c.state IN ('PENDING', 'PROCESSING') OR (c.state = 'COMPLETED' AND c.finished_at > {now} - $8))))
    AND ($10 = 0 OR p.retry_at IS NULL)
ON CONFLICT DO NOTHING
RETURNING id, parent_id";

/// The intent to repair the failure is fulfilled.
const TAKEN_OVER: &str = "UPDATE {jobs} SET retry_at = NULL WHERE id = $1 AND retry_at IS NOT NULL";

const IN_THE_WAY: &str = "
SELECT id, state FROM {jobs}
WHERE job_type = $1 AND target = $2
    AND (state IN ('PENDING', 'PROCESSING') OR (state = 'COMPLETED' AND finished_at > {now} - $3)
        OR (state = 'FAILED' AND retry_at IS NOT NULL AND $4 = 1))
ORDER BY CASE state WHEN 'COMPLETED' THEN 1 WHEN 'FAILED' THEN 2 ELSE 0 END, id DESC LIMIT 1";

impl SqlStore {
    /// `None`: the tick is not due.
    pub(super) async fn enqueue_on_tick(
        &self,
        tick: Option<(&str, Duration)>,
        jobs: &[NewJob],
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        let enqueued = self.enqueue_synced(tick, jobs).await;
        // It is enqueued or not, whatever comes of this.
        let _ = self.0.db.end_synced(self.0.own_file).await;
        enqueued
    }

    async fn enqueue_synced(
        &self,
        tick: Option<(&str, Duration)>,
        jobs: &[NewJob],
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        let failed = |error| Error::store("enqueue", error);
        let mut tx = self.0.db.begin_synced(self.0.own_file).await.map_err(failed)?;
        let mut enqueued = Vec::with_capacity(jobs.len());
        {
            let mut connection = tx.connection();
            if let Some((name, every)) = tick
                && !self.take_tick_in(&mut connection, name, every).await.map_err(failed)?
            {
                return Ok(None);
            }
            self.shared_lock(&mut connection, IMPORTING).await.map_err(failed)?;
            // Always in the same order: two that enqueue the same targets wait for each other, and never in a circle.
            let mut order: Vec<_> = jobs.iter().enumerate().collect();
            order.sort_by(|(_, a), (_, b)| (&a.job_type, &a.target).cmp(&(&b.job_type, &b.target)));
            for (place, job) in order {
                enqueued.push((place, self.enqueue_one(&mut connection, job, tick.is_some()).await?));
            }
            if enqueued.iter().any(|(_, each)| each.is_new()) {
                self.tell(&mut connection).await.map_err(failed)?;
            }
        }
        tx.commit().await.map_err(failed)?;
        self.0.waker.wake();
        enqueued.sort_unstable_by_key(|(place, _)| *place);
        Ok(Some(enqueued.into_iter().map(|(_, each)| each).collect()))
    }

    /// Enqueues a job in a transaction of yours: it is there if and only if that commits.
    ///
    /// Other workers of this process hear of it when they next look, or at once by [`wake`](Self::wake) after the commit;
    /// in PostgreSQL the commit itself tells them.
    ///
    /// # Errors
    ///
    /// The transaction is one of another database, or it fails.
    pub async fn enqueue_in<'t>(&self, tx: impl Into<SqlTransaction<'t>>, job: &NewJob) -> Result<Enqueued, Error> {
        let mut tx = tx.into();
        if tx.engine() != self.0.dialect.engine() {
            return Err(Error::invalid(format!(
                "enqueue_in was given a transaction of {:?}, and these jobs are in {:?}",
                tx.engine(),
                self.0.dialect.engine()
            )));
        }
        self.shared_lock(&mut tx, IMPORTING).await.map_err(|error| Error::store("enqueue", error))?;
        let enqueued = self.enqueue_one(&mut tx, job, false).await?;
        if enqueued.is_new() {
            self.tell(&mut tx).await.map_err(|error| Error::store("enqueue", error))?;
        }
        Ok(enqueued)
    }

    /// `batch`: the failures that recovery is to repair are left to it. A batch comes again and again, and would else spend
    /// in minutes what recovery spreads over hours.
    async fn enqueue_one(&self, tx: &mut SqlTransaction<'_>, job: &NewJob, batch: bool) -> Result<Enqueued, Error> {
        let failed = |error| Error::store("enqueue", error);
        let dialect = &self.0.dialect;
        let (once, apart) = apart(job.unique);
        let chain = Uuid::now_v7().to_string();
        for _ in 0..TRIES {
            let values = [
                Value::Text(&job.job_type),
                Value::Text(&job.target),
                Value::Text(&job.payload),
                Value::MaybeText(job.provider.as_deref()),
                Value::Int(once),
                Value::Int(ms(job.delay)),
                Value::Text(&chain),
                Value::MaybeInt(apart),
                Value::MaybeText(job.trace.as_deref()),
                Value::Int(i64::from(batch)),
            ];
            let rows = tx.fetch(dialect.render(INSERT), &values).await.map_err(failed)?;
            if let Some(row) = rows.first() {
                if let Some(parent) = row.maybe_int(1).map_err(failed)? {
                    tx.fetch(dialect.render(TAKEN_OVER), &[Value::Int(parent)]).await.map_err(failed)?;
                }
                return Ok(Enqueued::New(JobId(row.int(0).map_err(failed)?)));
            }
            let values = [
                Value::Text(&job.job_type),
                Value::Text(&job.target),
                Value::MaybeInt(apart),
                Value::Int(i64::from(batch)),
            ];
            let rows = tx.fetch(dialect.render(IN_THE_WAY), &values).await.map_err(failed)?;
            if let Some(row) = rows.first() {
                let id = JobId(row.int(0).map_err(failed)?);
                return Ok(match row.text(1).map_err(failed)?.as_str() {
                    "COMPLETED" => Enqueued::AlreadyCompleted(id),
                    // A FAILED one as well: recovery has it.
                    _ => Enqueued::AlreadyActive(id),
                });
            }
        }
        Err(Error::store("enqueue", format!("a job of `{}` was in the way {TRIES} times, and gone", job.job_type)))
    }

    /// PostgreSQL tells other processes at the commit.
    pub(super) async fn tell(&self, tx: &mut SqlTransaction<'_>) -> sqlx::Result<()> {
        let Some(sql) = self.0.dialect.engine().notify() else { return Ok(()) };
        tx.fetch(sql.to_owned(), &[Value::Text(self.0.waker.channel())]).await.map(drop)
    }
}

/// Whether one that COMPLETED is enough for ever, and how long ago it must be otherwise.
pub(super) fn apart(unique: Unique) -> (i64, Option<i64>) {
    match unique {
        Unique::Active => (0, None),
        Unique::ActiveOrCompleted => (1, Some(EVER)),
        Unique::Within(time) => (0, Some(ms(time))),
    }
}

/// Milliseconds, rounded up: no wait is shorter than it was asked for.
pub(super) fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(EVER).min(EVER)
}
