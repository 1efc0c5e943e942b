//! Jobs go out.

use crate::{Error, Retention};

use super::{SqlStore, Value, columns::count, enqueue::ms};

/// The oldest first: so that the search ends early where most of what is old may go.
const COMPLETED: &str = "
DELETE FROM {jobs} WHERE id IN (
    SELECT j.id FROM {jobs} AS j
    WHERE j.state = 'COMPLETED' AND j.finished_at < {now} - $1 AND j.once = 0 AND j.finished_at + j.unique_ms < {now}
        AND NOT EXISTS (SELECT 1 FROM {jobs} AS h
            WHERE h.job_type = j.job_type AND h.target = j.target AND h.id < j.id AND h.state IN ('FAILED', 'DEAD'))
    ORDER BY j.id LIMIT $2)
RETURNING id";

/// Failures of `j`'s target from before its revival would count again without it.
const NO_BOUND: &str = "(j.origin <> 'REVIVED'
        OR EXISTS (SELECT 1 FROM {jobs} AS l WHERE l.job_type = j.job_type AND l.target = j.target AND l.id > j.id
            AND (l.state = 'COMPLETED' OR l.origin = 'REVIVED'))
        OR NOT EXISTS (SELECT 1 FROM {jobs} AS h
            WHERE h.job_type = j.job_type AND h.target = j.target AND h.id < j.id AND h.state IN ('FAILED', 'DEAD')))";

const FAILED: &str = "
DELETE FROM {jobs} WHERE id IN (
    SELECT j.id FROM {jobs} AS j
    WHERE j.state = 'FAILED' AND j.retry_at IS NULL AND j.finished_at < {now} - $1
        AND (EXISTS (SELECT 1 FROM {jobs} AS b WHERE b.job_type = j.job_type AND b.target = j.target AND b.id > j.id
                AND (b.state = 'COMPLETED' OR b.origin = 'REVIVED'))
            OR NOT EXISTS (SELECT 1 FROM {jobs} AS n
                WHERE n.job_type = j.job_type AND n.target = j.target AND n.id > j.id))
        AND ";

const DEAD: &str = "
DELETE FROM {jobs} WHERE id IN (
    SELECT j.id FROM {jobs} AS j WHERE j.state = 'DEAD' AND j.finished_at < {now} - $1 AND ";

const OLDEST: &str = "
    ORDER BY j.id LIMIT $2)
RETURNING id";

impl SqlStore {
    pub(super) async fn prune_jobs(&self, retention: &Retention) -> Result<u64, Error> {
        retention.check()?;
        let mut left = i64::from(retention.batch);
        let mut pruned = 0;
        // What failed goes first: what completed after it is kept as long as it is.
        let bound = |sql: &str| format!("{sql}{NO_BOUND}{OLDEST}");
        let each = [
            (bound(FAILED), retention.failed),
            (bound(DEAD), retention.dead),
            (COMPLETED.to_owned(), retention.completed),
        ];
        for (sql, time) in each {
            let Some(time) = time.filter(|_| left > 0) else { continue };
            let rows = self.fetch("prune", &sql, &[Value::Int(ms(time)), Value::Int(left)]).await?;
            let gone = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            left -= gone;
            pruned += u64::from(count(gone));
        }
        Ok(pruned)
    }
}
