//! Recovery for a table that exists already, with workers that exist already.
//!
//! The system of this example has a table `async_jobs` of its own: a row has a type, a target, a status and a retry count,
//! and workers of its own process the PENDING ones. What it lacks is somebody who looks after those that failed, and
//! after those whose worker died. `RecoveryStore` is what a sweep needs of such a table: what is to be judged, and how a
//! plan is carried out. The plan itself, limits, caps and canary included, is that of `redial-jobs`.
//!
//! `cargo run -p redial-jobs --example own_table`

use std::time::Duration;

use redial_jobs::{Burial, Candidate, Candidates, Error, JobId, Plan, Recovery, RecoveryStore, Step, Sweeper, Swept};
use sqlx::{Row, SqlitePool, sqlite::SqlitePoolOptions};

/// As it was found. A worker's heartbeat says that it lives.
const TABLE: &str = "
CREATE TABLE async_jobs (
    id        INTEGER PRIMARY KEY,
    type      TEXT NOT NULL,
    target_id TEXT NOT NULL,
    status    TEXT NOT NULL,       -- PENDING, PROCESSING, COMPLETED, FAILED
    error     TEXT,
    heartbeat INTEGER,             -- seconds since 1970
    ended_at  INTEGER
);";

/// What is added to it: one column that says that nobody need look at a FAILED row any more, and two indexes without which
/// two that enqueue at once would both get in.
const ADDED: &str = "
ALTER TABLE async_jobs ADD COLUMN settled TEXT;    -- RECOVERED, SUPERSEDED, DEAD
ALTER TABLE async_jobs ADD COLUMN parent_id INTEGER;
CREATE UNIQUE INDEX async_jobs_live ON async_jobs (type, target_id) WHERE status IN ('PENDING', 'PROCESSING');
CREATE UNIQUE INDEX async_jobs_successor ON async_jobs (parent_id) WHERE parent_id IS NOT NULL;";

/// Two hours after a failure its target is due; after five minutes without a heartbeat a worker is dead.
const DUE_AFTER: i64 = 2 * 60 * 60;
const DEAD_AFTER: i64 = 5 * 60;

/// This table has no column for ghosts: its error text tells them apart.
const GHOST: &str = "its worker died";

const JUDGED: &str = "
SELECT j.id, j.type, j.target_id,
    NOT EXISTS (SELECT 1 FROM async_jobs n WHERE n.type = j.type AND n.target_id = j.target_id AND n.id > j.id),
    (SELECT count(*) FROM async_jobs h WHERE h.type = j.type AND h.target_id = j.target_id AND h.status = 'FAILED'
        AND h.error <> $1 AND h.id <= j.id AND h.id > COALESCE((SELECT max(c.id) FROM async_jobs c
            WHERE c.type = j.type AND c.target_id = j.target_id AND c.status = 'COMPLETED'), 0)),
    (SELECT count(*) FROM async_jobs h WHERE h.type = j.type AND h.target_id = j.target_id AND h.status = 'FAILED'
        AND h.error = $1 AND h.id <= j.id AND h.id > COALESCE((SELECT max(c.id) FROM async_jobs c
            WHERE c.type = j.type AND c.target_id = j.target_id AND c.status = 'COMPLETED'), 0))
FROM async_jobs j WHERE ";

#[derive(Clone)]
struct AsyncJobs(SqlitePool);

impl AsyncJobs {
    async fn judged(&self, which: &'static str, before: i64, is_ghost: bool) -> Result<Vec<Candidate>, Error> {
        let sql = sqlx::AssertSqlSafe(format!("{JUDGED}{which} ORDER BY j.id LIMIT 500"));
        let rows = sqlx::query(sql).bind(GHOST).bind(before).fetch_all(&self.0).await;
        let count = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
        let candidate = |row: sqlx::sqlite::SqliteRow| Candidate {
            id: JobId(row.get(0)),
            token: 0, // this table has none: the heartbeat alone tells
            job_type: row.get(1),
            target: row.get(2),
            provider: None,
            newest: row.get(3),
            failures: count(row.get(4)),
            ghosts: count(row.get(5)) + u32::from(is_ghost),
        };
        Ok(rows.map_err(|error| Error::store("plan", error))?.into_iter().map(candidate).collect())
    }

    /// Whether a later job of its target exists by now, which did not when it was judged: an application enqueued one.
    async fn overtaken(tx: &mut sqlx::SqliteConnection, job: &Candidate) -> sqlx::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM async_jobs WHERE type = $1 AND target_id = $2 AND id > $3)";
        sqlx::query_scalar(sql).bind(&job.job_type).bind(&job.target).bind(job.id.0).fetch_one(tx).await
    }

    /// Closes a row, if it still stands as it was judged, and says whether it did.
    async fn close(tx: &mut sqlx::SqliteConnection, job: &Candidate, ghost: bool, settled: &str) -> sqlx::Result<bool> {
        let now = now();
        let done = if ghost {
            let sql = "UPDATE async_jobs SET status = 'FAILED', error = $2, ended_at = $3, settled = $4
                WHERE id = $1 AND status = 'PROCESSING' AND heartbeat < $5";
            sqlx::query(sql).bind(job.id.0).bind(GHOST).bind(now).bind(settled).bind(now - DEAD_AFTER)
        } else {
            let sql = "UPDATE async_jobs SET settled = $2 WHERE id = $1 AND status = 'FAILED' AND settled IS NULL";
            sqlx::query(sql).bind(job.id.0).bind(settled)
        };
        Ok(done.execute(tx).await?.rows_affected() == 1)
    }

    async fn step(tx: &mut sqlx::SqliteConnection, step: &Step, swept: &mut Swept) -> sqlx::Result<()> {
        match step {
            Step::Wait { .. } => swept.waiting += 1,
            Step::Supersede { job, ghost } => {
                swept.superseded += u32::from(Self::close(tx, job, *ghost, "SUPERSEDED").await?);
            }
            // Judged anew by the next sweep, as one with a later job.
            Step::Bury(Burial { job, .. }) | Step::Recover { job, .. } if Self::overtaken(tx, job).await? => {
                swept.overtaken += 1;
            }
            Step::Bury(burial) => {
                if Self::close(tx, &burial.job, burial.ghost, "DEAD").await? {
                    swept.buried.push(burial.clone());
                }
            }
            // Its workers know no earliest start, so the delay is left to them.
            Step::Recover { job, ghost, .. } => {
                if !Self::close(tx, job, *ghost, "RECOVERED").await? {
                    swept.overtaken += 1;
                    return Ok(());
                }
                let sql = "INSERT INTO async_jobs (type, target_id, status, parent_id)
                    VALUES ($1, $2, 'PENDING', $3) ON CONFLICT DO NOTHING";
                let new = sqlx::query(sql).bind(&job.job_type).bind(&job.target).bind(job.id.0).execute(tx).await?;
                swept.recovered += u32::from(new.rows_affected() == 1);
                swept.ghosts += u32::from(*ghost);
            }
        }
        Ok(())
    }
}

impl RecoveryStore for AsyncJobs {
    async fn candidates(&self, _: &Recovery) -> Result<Candidates, Error> {
        let (dead, due) = (now() - DEAD_AFTER, now() - DUE_AFTER);
        let ghosts = self.judged("j.status = 'PROCESSING' AND j.heartbeat < $2", dead, true).await?;
        let failures = self.judged("j.status = 'FAILED' AND j.settled IS NULL AND j.ended_at < $2", due, false).await?;
        Ok(Candidates { ghosts, failures, ..Candidates::default() })
    }

    async fn apply(&self, plan: &Plan) -> Result<Swept, Error> {
        let failed = |error| Error::store("sweep", error);
        let mut swept = Swept::new();
        let mut tx = self.0.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        for step in &plan.steps {
            Self::step(&mut tx, step, &mut swept).await.map_err(failed)?;
        }
        tx.commit().await.map_err(failed)?;
        Ok(swept)
    }

    /// Here one process sweeps: whenever it asks, it is due.
    async fn tick(&self, _: &str, _: Duration) -> Result<bool, Error> {
        Ok(true)
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

async fn table() -> Result<SqlitePool, sqlx::Error> {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(TABLE).execute(&pool).await?;
    sqlx::raw_sql(ADDED).execute(&pool).await?;
    // Yesterday's night, in which the provider was down.
    let rows = "
        INSERT INTO async_jobs (id, type, target_id, status, error, heartbeat, ended_at) VALUES
            (1, 'til', 'user 1', 'FAILED', '503', NULL, 1000),
            (2, 'til', 'user 2', 'FAILED', '503', NULL, 1000),
            (3, 'til', 'user 2', 'COMPLETED', NULL, NULL, 2000),      -- done since
            (4, 'til', 'user 3', 'FAILED', '503', NULL, 1000),
            (5, 'til', 'user 3', 'FAILED', '503', NULL, 2000),
            (6, 'til', 'user 3', 'FAILED', '503', NULL, 3000),        -- three times: somebody must look
            (7, 'til', 'user 4', 'PROCESSING', NULL, 1000, NULL)      -- its worker died
    ";
    sqlx::raw_sql(rows).execute(&pool).await?;
    Ok(pool)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = table().await?;
    let sweeper = Sweeper::new(AsyncJobs(pool.clone()), Recovery::default())?;
    let swept = sweeper.run_once().await?;
    println!("recovered {}, ghosts {}, superseded {}", swept.recovered, swept.ghosts, swept.superseded);
    for burial in &swept.buried {
        println!("given up: {} of {}, {}", burial.job.job_type, burial.job.target, burial.reason);
    }
    let rows = "SELECT id, target_id, status, COALESCE(settled, ''), parent_id FROM async_jobs ORDER BY id";
    for row in sqlx::query(rows).fetch_all(&pool).await? {
        let text = |column: usize| row.get::<String, _>(column);
        let parent = row.get::<Option<i64>, _>(4).map(|parent| format!("in place of {parent}")).unwrap_or_default();
        println!("{:>3}  {}  {:<10} {:<10} {parent}", row.get::<i64, _>(0), text(1), text(2), text(3));
    }
    assert_eq!((swept.recovered, swept.ghosts, swept.buried.len()), (2, 1, 1));
    assert_eq!(sweeper.run_once().await?.recovered, 0, "a second pass has nothing to do");
    Ok(())
}
