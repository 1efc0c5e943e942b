//! Failures of an older system come in.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{DeadReason, Error, ImportOptions, ImportSummary, Imported, observe};

use super::{
    SqlStore, Value,
    columns::at,
    enqueue::{apart, ms},
};

/// A target that has a job already is left out. `$9`: after which time it is due; none for one that is DEAD.
const IMPORT: &str = "
INSERT INTO {jobs} (job_type, target, payload, state, provider, origin, once, unique_ms, run_at, failure_class, error,
    failures, dead_reason, retry_at, chain, chain_at, trace, created_at, finished_at)
SELECT $1, $2, $3, CASE WHEN $8 IS NULL THEN 'FAILED' ELSE 'DEAD' END, $4, 'IMPORTED', $5, $6, $10, $7, $11,
    1, $8, {now} + $9, $12, 0, $13, {now}, $10
WHERE NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.job_type = $1 AND j.target = $2)
ON CONFLICT DO NOTHING
RETURNING id";

/// The lock that an import holds alone, and enqueueing in common.
pub(super) const IMPORTING: &str = "import";

const KNOWN: &str = "SELECT id FROM {jobs} WHERE job_type = $1 AND target = $2 LIMIT 1";

impl SqlStore {
    pub(super) async fn import_failures(
        &self,
        failures: &[Imported],
        options: &ImportOptions,
    ) -> Result<ImportSummary, Error> {
        let failed = |error| Error::store("import", error);
        let dialect = &self.0.dialect;
        let wanted = newest(failures.iter().filter(|one| options.since.is_none_or(|since| one.failed_at >= since)));
        let step = options.spread / u32::try_from(wanted.len()).unwrap_or(u32::MAX).max(1);
        let mut tx = self.0.db.begin().await.map_err(failed)?;
        let mut imported = ImportSummary::default();
        {
            let mut connection = tx.connection();
            // An import and whoever else imports or enqueues must see each other's targets.
            self.lock(&mut connection, IMPORTING).await.map_err(failed)?;
            for (failure, place) in wanted.into_iter().zip(0_u32..) {
                let (job, dead) = (&failure.job, failure.class.dead_at_once());
                let counted = if dead.is_some() { &mut imported.dead } else { &mut imported.failed };
                if options.dry_run {
                    let values = [Value::Text(&job.job_type), Value::Text(&job.target)];
                    let known = connection.fetch(dialect.render(KNOWN), &values).await.map_err(failed)?;
                    *counted += u64::from(known.is_empty());
                    continue;
                }
                let due = dead.is_none().then(|| ms(step.saturating_mul(place)));
                let (once, unique) = apart(job.unique);
                let (reason, chain) = (redial::redacted(&failure.reason), Uuid::now_v7().to_string());
                let values = [
                    Value::Text(&job.job_type),
                    Value::Text(&job.target),
                    Value::Text(&job.payload),
                    Value::MaybeText(job.provider.as_deref()),
                    Value::Int(once),
                    Value::Int(unique.unwrap_or(0)),
                    Value::Text(failure.class.as_str()),
                    Value::MaybeText(dead.map(DeadReason::as_str)),
                    Value::MaybeInt(due),
                    Value::Int(at(failure.failed_at)),
                    Value::Text(&reason),
                    Value::Text(&chain),
                    Value::MaybeText(job.trace.as_deref()),
                ];
                let rows = connection.fetch(dialect.render(IMPORT), &values).await.map_err(failed)?;
                *counted += u64::from(!rows.is_empty());
            }
        }
        tx.commit().await.map_err(failed)?;
        if imported.dead > 0 && !options.dry_run {
            observe::imported_dead(imported.dead);
        }
        Ok(imported)
    }
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
