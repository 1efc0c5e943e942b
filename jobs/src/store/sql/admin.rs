//! What a person does: looks, pauses, revives.

use std::time::Duration;

use crate::{Error, Filter, JobId, JobRow, Pause, Scope, State, Stats};

use super::{
    SqlStore, Value,
    columns::{self, read},
    enqueue::ms,
    transaction::SqlTransaction,
};

/// How many jobs a list holds, unless it is asked for fewer.
const LISTED: u32 = 100;
const MOST_LISTED: u32 = 1000;

const LIST: &str = "
FROM {jobs} AS j
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.job_type = $2) AND ($3 IS NULL OR j.target = $3)
    AND ($4 IS NULL OR j.id < $4)
ORDER BY j.id DESC LIMIT $5";

const CHAIN: &str = "
FROM {jobs} AS j, (SELECT COALESCE(root_id, id) AS root FROM {jobs} WHERE id = $1) AS r
WHERE j.id = r.root OR j.root_id = r.root
ORDER BY j.id LIMIT 1000";

/// Of DEAD jobs only the newest of their target: with a later job, somebody has seen to it.
const COUNTS: &str = "
SELECT job_type, state, count(*) FROM {jobs} WHERE state <> 'DEAD' GROUP BY job_type, state
UNION ALL
SELECT d.job_type, 'DEAD', count(*) FROM {jobs} AS d {by_dead} WHERE d.state = 'DEAD' AND NOT EXISTS (
    SELECT 1 FROM {jobs} AS n WHERE n.job_type = d.job_type AND n.target = d.target AND n.id > d.id)
GROUP BY d.job_type";

/// The same, without what grows with history.
const OPEN: &str = "
SELECT job_type, 'PENDING', count(*) FROM {jobs} {by_ready} WHERE state = 'PENDING' GROUP BY job_type
UNION ALL
SELECT job_type, 'PROCESSING', count(*) FROM {jobs} {by_lease} WHERE state = 'PROCESSING' GROUP BY job_type
UNION ALL
SELECT d.job_type, 'DEAD', count(*) FROM {jobs} AS d {by_dead} WHERE d.state = 'DEAD' AND NOT EXISTS (
    SELECT 1 FROM {jobs} AS n WHERE n.job_type = d.job_type AND n.target = d.target AND n.id > d.id)
GROUP BY d.job_type";

const WAITING: &str = "
SELECT (SELECT {now} - min(run_at) FROM {jobs} {by_ready} WHERE state = 'PENDING' AND run_at <= {now}),
    (SELECT count(*) FROM {jobs} WHERE state = 'PROCESSING' AND lease_until < {now}),
    (SELECT count(*) FROM {jobs} WHERE state = 'FAILED' AND retry_at IS NOT NULL)";

const PAUSE: &str = "
INSERT INTO {pauses} (scope, name, until_at) VALUES ($1, $2, {now} + $3)
ON CONFLICT (scope, name) DO UPDATE SET until_at = excluded.until_at";

const RESUME: &str = "
DELETE FROM {pauses} WHERE scope = $1 AND name = $2
RETURNING CASE WHEN until_at IS NULL OR until_at > {now} THEN 'yes' ELSE 'no' END";

const PAUSES: &str = "
SELECT scope, name, until_at FROM {pauses} WHERE until_at IS NULL OR until_at > {now} ORDER BY scope, name";

/// One that lies further ahead than an interval was set by a clock that has been set back since, or for a longer interval:
/// it is due.
const TICK: &str = "
INSERT INTO {ticks} AS t (name, next_at) VALUES ($1, {now} + $2)
ON CONFLICT (name) DO UPDATE SET next_at = excluded.next_at WHERE t.next_at <= {now} OR t.next_at > {now} + $2
RETURNING name";

impl SqlStore {
    pub(super) async fn list_jobs(&self, filter: &Filter) -> Result<Vec<JobRow>, Error> {
        let values = [
            Value::MaybeText(filter.state.map(State::as_str)),
            Value::MaybeText(filter.job_type.as_deref()),
            Value::MaybeText(filter.target.as_deref()),
            Value::MaybeInt(filter.before.map(|id| id.0)),
            Value::Int(i64::from(filter.limit.unwrap_or(LISTED).min(MOST_LISTED))),
        ];
        let rows = self.fetch("list jobs", &format!("SELECT {}{LIST}", columns::ALL), &values).await?;
        read("list jobs", &rows, columns::job)
    }

    pub(super) async fn chain_of(&self, id: JobId) -> Result<Vec<JobRow>, Error> {
        let rows = self.fetch("show a job", &format!("SELECT {}{CHAIN}", columns::ALL), &[Value::Int(id.0)]).await?;
        read("show a job", &rows, columns::job)
    }

    pub(super) async fn read_stats(&self, with_history: bool) -> Result<Stats, Error> {
        let doing = "count jobs";
        let mut stats = Stats::default();
        let counts = if with_history { COUNTS } else { OPEN };
        for row in self.fetch(doing, counts, &[]).await? {
            let failed = |error| Error::store(doing, error);
            let (job_type, state) = (row.text(0).map_err(failed)?, row.text(1).map_err(failed)?);
            let jobs = row.int(2).map_err(failed)?.max(0).unsigned_abs();
            if let Some(state) = State::parse(&state) {
                stats.types.entry(job_type).or_default().set(state, jobs);
            }
        }
        let rows = self.fetch(doing, WAITING, &[]).await?;
        let waiting = read(doing, &rows, |row| Ok((row.maybe_int(0)?, row.int(1)?, row.int(2)?)))?;
        for (oldest, ghosts, due) in waiting {
            stats.oldest_pending = oldest.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
            stats.ghosts = ghosts.max(0).unsigned_abs();
            stats.due = due.max(0).unsigned_abs();
        }
        Ok(stats)
    }

    pub(super) async fn revive_job(&self, id: JobId) -> Result<JobId, Error> {
        let failed = |error| Error::store("revive", error);
        let mut tx = self.0.db.begin().await.map_err(failed)?;
        let successor = {
            let mut connection = tx.connection();
            let sql = self.0.dialect.render("SELECT state FROM {jobs} WHERE id = $1");
            let rows = connection.fetch(sql, &[Value::Int(id.0)]).await.map_err(failed)?;
            let Some(row) = rows.first() else {
                return Err(Error::missing(id));
            };
            if row.text(0).map_err(failed)? != State::Dead.as_str() {
                return Err(Error::state(id, "is not DEAD: only a target that was given up is revived"));
            }
            let successor = self
                .succeed(&mut connection, id, "j.state = 'DEAD'", "REVIVED", Duration::ZERO)
                .await
                .map_err(failed)?;
            successor.ok_or_else(|| Error::state(id, "is not the newest of its target: look at the newest one"))?
        };
        tx.commit().await.map_err(failed)?;
        self.0.waker.wake();
        Ok(successor)
    }

    pub(super) async fn pause_scope(&self, scope: &Scope, time: Option<Duration>) -> Result<(), Error> {
        let (scope, name) = scope_of(scope);
        crate::enqueue::check(scope, name, crate::enqueue::NAME)?;
        let values = [Value::Text(scope), Value::Text(name), Value::MaybeInt(time.map(ms))];
        self.fetch("pause", PAUSE, &values).await.map(drop)
    }

    pub(super) async fn resume_scope(&self, scope: &Scope) -> Result<bool, Error> {
        let (scope, name) = scope_of(scope);
        let rows = self.fetch("resume", RESUME, &[Value::Text(scope), Value::Text(name)]).await?;
        self.0.waker.wake();
        Ok(read("resume", &rows, |row| Ok(row.text(0)? == "yes"))?.contains(&true))
    }

    pub(super) async fn read_pauses(&self) -> Result<Vec<Pause>, Error> {
        let rows = self.fetch("list pauses", PAUSES, &[]).await?;
        read("list pauses", &rows, |row| {
            let (scope, name) = (row.text(0)?, row.text(1)?);
            let scope = if scope == "provider" { Scope::Provider(name) } else { Scope::Type(name) };
            Ok(Pause { scope, until: row.maybe_int(2)?.map(columns::time) })
        })
    }

    pub(super) async fn take_tick(&self, name: &str, every: Duration) -> Result<bool, Error> {
        let values = [Value::Text(name), Value::Int(ms(every))];
        Ok(!self.fetch("take a tick", TICK, &values).await?.is_empty())
    }

    pub(super) async fn take_tick_in(
        &self,
        tx: &mut SqlTransaction<'_>,
        name: &str,
        every: Duration,
    ) -> sqlx::Result<bool> {
        let values = [Value::Text(name), Value::Int(ms(every))];
        Ok(!tx.fetch(self.0.dialect.render(TICK), &values).await?.is_empty())
    }
}

fn scope_of(scope: &Scope) -> (&'static str, &str) {
    match scope {
        Scope::Type(name) => ("type", name),
        Scope::Provider(name) => ("provider", name),
    }
}
