//! Failures of an older system come in.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use crate::{DeadReason, Error, ImportOptions, ImportSummary, Imported, NewJob, observe};

use super::{
    SqlStore, Value,
    columns::at,
    db::Row,
    enqueue::{apart, groups, ms},
};

/// How many rows one statement has at most, which is a transaction: others who write wait for it, some tenths of a second in
/// a slow build. Enqueueing waits for its lock, so that it may have more than one of theirs.
const ROWS: usize = 1000;

/// A target that has a job already is left out, searched by its index, one by one: PostgreSQL would else read the whole
/// table for each group. No failure is later than now: until then it would pass for the newest word on its provider.
/// `due`: after which time it is due; none for one that is DEAD.
const IMPORT: &str = "
WITH r AS MATERIALIZED ({old1})
INSERT INTO {jobs} (job_type, target, payload, state, provider, origin, once, unique_ms, run_at, failure_class, error,
    failures, dead_reason, retry_at, chain, chain_at, trace, created_at, finished_at)
SELECT r.job_type, r.target, r.payload, CASE WHEN r.dead IS NULL THEN 'FAILED' ELSE 'DEAD' END, r.provider, 'IMPORTED',
    r.once, r.apart, {min}(r.failed_at, {now}), r.class, r.reason,
    1, r.dead, {now} + r.due, r.chain, 0, r.trace, {now}, {min}(r.failed_at, {now})
FROM r
WHERE (SELECT j.id FROM {jobs} AS j WHERE j.job_type = r.job_type AND j.target = r.target LIMIT 1) IS NULL
ORDER BY r.place
ON CONFLICT DO NOTHING
RETURNING dead_reason";

/// Those that the same would bring in.
const NEW: &str = "
WITH r AS MATERIALIZED ({old1})
SELECT r.dead FROM r
WHERE (SELECT j.id FROM {jobs} AS j WHERE j.job_type = r.job_type AND j.target = r.target LIMIT 1) IS NULL";

/// The lock that an import holds alone, and enqueueing in common.
pub(super) const IMPORTING: &str = "import";

/// A failure that comes in, with what its row says beside the job.
#[derive(Debug)]
pub(super) struct Old<'i> {
    pub(super) job: &'i NewJob,
    pub(super) once: i64,
    pub(super) apart: i64,
    pub(super) due: Option<i64>,
    pub(super) chain: String,
    pub(super) class: &'static str,
    pub(super) dead: Option<&'static str>,
    pub(super) failed_at: i64,
    pub(super) reason: String,
}

impl<'i> Old<'i> {
    fn new(failure: &'i Imported, due: Duration) -> Self {
        let (job, dead) = (&failure.job, failure.class.dead_at_once());
        let (once, apart) = apart(job.unique);
        Self {
            job,
            once,
            apart: apart.unwrap_or(0),
            due: dead.is_none().then(|| ms(due)),
            chain: Uuid::now_v7().to_string(),
            class: failure.class.as_str(),
            dead: dead.map(DeadReason::as_str),
            failed_at: at(failure.failed_at),
            reason: redial::redacted(&failure.reason),
        }
    }
}

/// The DEAD that came in, told of however the import ends: one that is run again leaves them out.
struct Dead(u64);

impl Drop for Dead {
    fn drop(&mut self) {
        if self.0 > 0 {
            observe::imported_dead(self.0);
        }
    }
}

impl SqlStore {
    /// A group at a time, each in a transaction of its own.
    pub(super) async fn import_failures(
        &self,
        failures: &[Imported],
        options: &ImportOptions,
    ) -> Result<ImportSummary, Error> {
        let failed = |error| Error::store("import", error);
        let wanted = newest(failures.iter().filter(|one| options.since.is_none_or(|since| one.failed_at >= since)));
        let step = options.spread / u32::try_from(wanted.len()).unwrap_or(u32::MAX).max(1);
        let mut due = (0_u32..).map(|place| step.saturating_mul(place));
        let (mut imported, mut told, mut rest) = (ImportSummary::default(), Dead(0), Duration::ZERO);
        for group in groups(&wanted, ROWS, |failure| &failure.job) {
            if !rest.is_zero() {
                tokio::time::sleep(rest).await;
            }
            let rows: Vec<_> = group.iter().zip(&mut due).map(|(failure, due)| Old::new(failure, due)).collect();
            let new = if options.dry_run {
                sum(&self.fetch("import", NEW, &[Value::Old(&rows)]).await?).map_err(failed)?
            } else {
                let (new, held) = self.import_group(&rows, &mut told).await.map_err(failed)?;
                // Whoever waits for SQLite's lock looks now and then whether it is free: as long as it was held, it is.
                rest = if self.0.dialect.engine().has_one_writer() { held } else { Duration::ZERO };
                new
            };
            imported.failed += new.failed;
            imported.dead += new.dead;
        }
        Ok(imported)
    }

    /// What came in, and how long others could not write.
    async fn import_group(&self, rows: &[Old<'_>], told: &mut Dead) -> sqlx::Result<(ImportSummary, Duration)> {
        let mut tx = self.0.db.begin().await?;
        let begun = Instant::now();
        let new = {
            let mut connection = tx.connection();
            // An import and whoever else imports or enqueues must see each other's targets.
            self.lock(&mut connection, IMPORTING).await?;
            sum(&connection.fetch(self.0.dialect.render(IMPORT), &[Value::Old(rows)]).await?)?
        };
        // Where the commit's answer is lost they may be there.
        told.0 += new.dead;
        tx.commit().await?;
        Ok((new, begun.elapsed()))
    }
}

/// Of rows that say why each one is DEAD, if it is.
fn sum(rows: &[Row]) -> sqlx::Result<ImportSummary> {
    let mut sum = ImportSummary::default();
    for row in rows {
        *(if row.maybe_text(0)?.is_some() { &mut sum.dead } else { &mut sum.failed }) += 1;
    }
    Ok(sum)
}

/// Of each target the newest, in the order in which they were given: what became of it last is what is to be repaired.
fn newest<'i>(failures: impl Iterator<Item = &'i Imported>) -> Vec<&'i Imported> {
    let mut places = HashMap::new();
    let mut newest: Vec<Option<&Imported>> = Vec::new();
    for failure in failures {
        let place = places.entry((&failure.job.job_type, &failure.job.target)).or_insert(newest.len());
        match newest.get_mut(*place) {
            Some(Some(older)) if older.failed_at > failure.failed_at => continue,
            Some(older) => *older = None,
            None => {}
        }
        *place = newest.len();
        newest.push(Some(failure));
    }
    newest.into_iter().flatten().collect()
}
