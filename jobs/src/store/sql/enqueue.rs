//! Jobs come in.

use std::time::Duration;

use uuid::Uuid;

use crate::{Enqueued, Error, JobId, Lease, NewJob, Unique};

use super::{SqlStore, Value, db::Row, import::IMPORTING, transaction::SqlTransaction};

/// How often an insert and the look at what was in its way are tried: each time another process must have enqueued a job
/// and ended it in between.
const TRIES: usize = 20;

/// What [`Unique::ActiveOrCompleted`] means by its time: longer than any clock has run.
const EVER: i64 = 1 << 52;

/// How many rows one statement has at most, and how many bytes of payload. What somebody else does to their targets while it
/// runs, it does not see: so it is short.
pub(super) const ROWS: usize = 100;
const BYTES: usize = 4 * 1024 * 1024;

/// The job stands in for the target's newest one where that has failed: so that one and the same failure has one
/// successor, whether a sweep or somebody else enqueues it. With another payload it is other work, under other keys.
/// Keys have no age (0) until they can have been sent: the first claim of their chain says when.
///
/// `apart`: how long ago a COMPLETED one must be. Where that is asked, an active one is looked for as well: it may complete
/// while this statement runs. `$1`: 1 for a batch, which leaves a failure that recovery is to repair: a batch comes again
/// and again, and would else spend in minutes what recovery spreads over hours.
const INSERT: &str = "
WITH r AS MATERIALIZED ({incoming2})
INSERT INTO {jobs} (job_type, target, payload, state, provider, origin, once, unique_ms, attempt, run_at,
    parent_id, root_id, chain, chain_at, unknown_before, trace, created_at)
SELECT r.job_type, r.target, r.payload, 'PENDING', r.provider, 'ENQUEUED', r.once, COALESCE(r.apart, 0),
    COALESCE(p.attempt, 0) + 1, {max}({now} + r.delay, COALESCE(p.not_before, 0)), p.id, COALESCE(p.root_id, p.id),
    CASE WHEN p.payload = r.payload THEN p.chain ELSE r.chain END,
    CASE WHEN p.payload = r.payload THEN p.chain_at ELSE 0 END,
    COALESCE(p.outcome_unknown, 0), r.trace, {now}
FROM r
LEFT JOIN {jobs} AS p ON p.state IN ('FAILED', 'DEAD')
    AND p.id = (SELECT max(n.id) FROM {jobs} AS n WHERE n.job_type = r.job_type AND n.target = r.target)
WHERE (r.apart IS NULL OR NOT EXISTS (
        SELECT 1 FROM {jobs} AS c WHERE c.job_type = r.job_type AND c.target = r.target
            AND (c.state IN ('PENDING', 'PROCESSING') OR (c.state = 'COMPLETED' AND c.finished_at > {now} - r.apart))))
    AND ($1 = 0 OR p.retry_at IS NULL)
ORDER BY r.place
ON CONFLICT DO NOTHING
RETURNING id, job_type, target, parent_id";

/// The intent to repair these failures is fulfilled.
const TAKEN_OVER: &str = "UPDATE {jobs} SET retry_at = NULL
WHERE id IN (SELECT l.id FROM {leases1}) AND retry_at IS NOT NULL";

const IN_THE_WAY: &str = "
WITH r AS MATERIALIZED ({incoming2})
SELECT w.id, w.job_type, w.target, w.state FROM r
JOIN {jobs} AS w ON w.id = (
    SELECT i.id FROM {jobs} AS i WHERE i.job_type = r.job_type AND i.target = r.target
        AND (i.state IN ('PENDING', 'PROCESSING') OR (i.state = 'COMPLETED' AND i.finished_at > {now} - r.apart)
            OR (i.state = 'FAILED' AND i.retry_at IS NOT NULL AND $1 = 1))
    ORDER BY CASE i.state WHEN 'COMPLETED' THEN 1 WHEN 'FAILED' THEN 2 ELSE 0 END, i.id DESC LIMIT 1)";

/// A job that comes in, with what its row says beside it.
#[derive(Debug)]
pub(super) struct Incoming<'j> {
    pub(super) job: &'j NewJob,
    pub(super) once: i64,
    pub(super) apart: Option<i64>,
    pub(super) delay: i64,
    pub(super) chain: String,
    /// In the order of those that were asked for.
    place: usize,
}

impl<'j> Incoming<'j> {
    pub(super) fn new((place, job): (usize, &'j NewJob)) -> Self {
        let (once, apart) = apart(job.unique);
        Self { job, once, apart, delay: ms(job.delay), chain: Uuid::now_v7().to_string(), place }
    }

    pub(super) fn key(&self) -> (&'j str, &'j str) {
        (&self.job.job_type, &self.job.target)
    }
}

/// What one statement takes: as many as it may, and of each target one, where those of a target stand together.
/// `most`: how many rows.
pub(super) fn groups<R>(rows: &[R], most: usize, job: impl Fn(&R) -> &NewJob) -> Vec<&[R]> {
    let (mut groups, mut first, mut bytes) = (Vec::new(), 0, 0);
    let key = |at: usize| (&job(&rows[at]).job_type, &job(&rows[at]).target);
    for at in 0..rows.len() {
        let size = job(&rows[at]).payload.len();
        let is_again = at > first && key(at - 1) == key(at);
        if at > first && (is_again || at - first == most || bytes + size > BYTES) {
            groups.push(&rows[first..at]);
            (first, bytes) = (at, 0);
        }
        bytes += size;
    }
    if first < rows.len() {
        groups.push(&rows[first..]);
    }
    groups
}

/// What came of asking once.
enum Asked {
    NotDue,
    Enqueued(Vec<Enqueued>),
    /// A job was in the way of one of them, and gone before it could be named.
    Overtaken,
}

impl SqlStore {
    /// `None`: the tick is not due.
    pub(super) async fn enqueue_on_tick(
        &self,
        tick: Option<(&str, Duration)>,
        jobs: &[NewJob],
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        // Always in the same order: two that enqueue the same targets wait for each other, and never in a circle. For the
        // same reason one that is overtaken begins anew.
        let mut sorted: Vec<_> = jobs.iter().enumerate().map(Incoming::new).collect();
        sorted.sort_by(|a, b| a.key().cmp(&b.key()));
        for _ in 0..TRIES {
            match self.ask(tick, &sorted).await? {
                Asked::NotDue => return Ok(None),
                Asked::Enqueued(each) => return Ok(Some(each)),
                Asked::Overtaken => {}
            }
        }
        Err(overtaken())
    }

    async fn ask(&self, tick: Option<(&str, Duration)>, sorted: &[Incoming<'_>]) -> Result<Asked, Error> {
        let failed = |error| Error::store("enqueue", error);
        let mut tx = self.0.db.begin_synced().await.map_err(failed)?;
        let mut enqueued = Vec::with_capacity(sorted.len());
        {
            let mut connection = tx.connection();
            if let Some((name, every)) = tick
                && !self.take_tick_in(&mut connection, name, every).await.map_err(failed)?
            {
                return Ok(Asked::NotDue);
            }
            self.shared_lock(&mut connection, IMPORTING).await.map_err(failed)?;
            for group in groups(sorted, ROWS, |row| row.job) {
                match self.enqueue_group(&mut connection, group, tick.is_some()).await.map_err(failed)? {
                    Some(each) => enqueued.extend(group.iter().map(|row| row.place).zip(each)),
                    None => return Ok(Asked::Overtaken),
                }
            }
            if enqueued.iter().any(|(_, each)| each.is_new()) {
                self.tell(&mut connection).await.map_err(failed)?;
            }
        }
        tx.commit().await.map_err(failed)?;
        self.0.waker.wake();
        enqueued.sort_unstable_by_key(|(place, _)| *place);
        Ok(Asked::Enqueued(enqueued.into_iter().map(|(_, each)| each).collect()))
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
        let rows = [Incoming::new((0, job))];
        let mut enqueued = None;
        for _ in 0..TRIES {
            let each =
                self.enqueue_group(&mut tx, &rows, false).await.map_err(|error| Error::store("enqueue", error))?;
            enqueued = each.and_then(|each| each.first().copied());
            if enqueued.is_some() {
                break;
            }
        }
        let enqueued = enqueued.ok_or_else(overtaken)?;
        if enqueued.is_new() {
            self.tell(&mut tx).await.map_err(|error| Error::store("enqueue", error))?;
        }
        Ok(enqueued)
    }

    /// Of each target one, in the order of the targets. `None`: a job was in the way of one of them, and is gone.
    async fn enqueue_group(
        &self,
        tx: &mut SqlTransaction<'_>,
        group: &[Incoming<'_>],
        batch: bool,
    ) -> sqlx::Result<Option<Vec<Enqueued>>> {
        let dialect = &self.0.dialect;
        let place = |row: &Row| -> sqlx::Result<Option<usize>> {
            let (job_type, target) = (row.text(1)?, row.text(2)?);
            Ok(group.binary_search_by(|each| each.key().cmp(&(&job_type, &target))).ok())
        };
        let mut each = vec![None; group.len()];
        let mut parents = Vec::new();
        let batch = Value::Int(i64::from(batch));
        for row in tx.fetch(dialect.render(INSERT), &[batch.clone(), Value::Incoming(group)]).await? {
            if let Some(place) = place(&row)? {
                each[place] = Some(Enqueued::New(JobId(row.int(0)?)));
            }
            if let Some(parent) = row.maybe_int(3)? {
                parents.push(Lease { id: JobId(parent), token: 0 });
            }
        }
        if !parents.is_empty() {
            tx.fetch(dialect.render(TAKEN_OVER), &[Value::Leases(&parents)]).await?;
        }
        if each.contains(&None) {
            for row in tx.fetch(dialect.render(IN_THE_WAY), &[batch, Value::Incoming(group)]).await? {
                let id = JobId(row.int(0)?);
                let known = match row.text(3)?.as_str() {
                    "COMPLETED" => Enqueued::AlreadyCompleted(id),
                    // A FAILED one as well: recovery has it.
                    _ => Enqueued::AlreadyActive(id),
                };
                if let Some(place) = place(&row)? {
                    each[place].get_or_insert(known);
                }
            }
        }
        Ok(each.into_iter().collect())
    }

    /// PostgreSQL tells other processes at the commit.
    pub(super) async fn tell(&self, tx: &mut SqlTransaction<'_>) -> sqlx::Result<()> {
        let Some(sql) = self.0.dialect.engine().notify() else { return Ok(()) };
        tx.fetch(sql.to_owned(), &[Value::Text(self.0.waker.channel())]).await.map(drop)
    }
}

fn overtaken() -> Error {
    Error::store("enqueue", format!("a job was in the way {TRIES} times, and gone"))
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
