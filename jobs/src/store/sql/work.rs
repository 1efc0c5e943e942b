//! What a worker does with a job.

use std::time::{Duration, SystemTime};

use crate::{
    Claim, Claimed, DeadReason, Error, Failed, Failure, FailureClass, Held, JobId, Kind, Lease, Recovery,
    recovery::random_up_to,
};

use super::{
    SqlStore, Value,
    columns::{self, count, read},
    db::Row,
    dialect::state_of,
    enqueue::ms,
};

/// How many types one statement asks for.
const KINDS: usize = 64;
/// How much of a worker's name is kept, in bytes.
const WORKER: usize = 100;
/// A provider that asks for more is taken to be broken.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const RENEW: &str = "
UPDATE {jobs} AS j SET lease_until = {now} + $1 FROM {leases2} WHERE {leased}";

const COMPLETE: &str = "
UPDATE {jobs} AS j SET state = 'COMPLETED', finished_at = {now}, lease_until = NULL
FROM {leases1} WHERE {leased}";

/// Which of these were claimed under this token and are of this state. Who asks again, since the first answer was lost, so
/// finds what it did itself.
fn of_state(state: &str) -> String {
    format!(
        "SELECT j.id, j.token FROM {{jobs}} AS j, {{leases1}} WHERE j.id = l.id AND j.token = l.token AND {}",
        state_of(state)
    )
}

/// The token stays as it is: the next claim raises it. Where this claim was the first of the chain, its keys have no age.
pub(super) const RELEASE: &str = "
UPDATE {jobs} AS j SET state = 'PENDING', worker = NULL, lease_until = NULL, started_at = NULL,
    chain_at = CASE j.chain_at WHEN j.started_at THEN 0 ELSE j.chain_at END
FROM {leases1} WHERE {leased}";

/// It was begun, and nothing says how far it came.
pub(super) const ABANDON: &str = "
UPDATE {jobs} AS j SET state = 'PENDING', worker = NULL, lease_until = NULL, started_at = NULL, unknown_before = 1
FROM {leases1} WHERE {leased}";

const SNOOZE: &str = "
UPDATE {jobs} AS j SET state = 'PENDING', worker = NULL, lease_until = NULL, started_at = NULL,
    run_at = {now} + $3, snoozes = j.snoozes + 1
WHERE {held} RETURNING {out}id";

/// Failures and ghosts of a target count since its last COMPLETED, or since it was revived.
pub(super) const SINCE: &str = "COALESCE((
    SELECT CASE b.state WHEN 'COMPLETED' THEN b.id ELSE b.id - 1 END FROM {jobs} AS b
    WHERE b.job_type = m.job_type AND b.target = m.target AND b.id <= m.id
        AND (b.state = 'COMPLETED' OR b.origin = 'REVIVED')
    ORDER BY b.id DESC LIMIT 1), 0)";

/// One write says what became of it: so that no crash can fall between "failed" and "to be repaired", or "given up".
fn fail() -> String {
    format!(
        "
UPDATE {{jobs}} AS j SET
    state = CASE WHEN $9 IS NOT NULL OR f.failures >= $10 THEN 'DEAD' ELSE 'FAILED' END,
    dead_reason = CASE WHEN $9 IS NOT NULL THEN $9 WHEN f.failures >= $10 THEN 'failures' END,
    retry_at = CASE WHEN $9 IS NULL AND f.failures < $10 THEN {{now}} + $7 END,
    not_before = {{now}} + $8,
    failure_class = $3, error = $4, history = $5, outcome_unknown = $6, failures = f.failures,
    finished_at = {{now}}, lease_until = NULL
FROM (
    SELECT count(*) + 1 AS failures FROM {{jobs}} AS m
    JOIN {{jobs}} AS h ON h.job_type = m.job_type AND h.target = m.target AND h.id < m.id
    WHERE m.id = $1 AND h.state IN ('FAILED', 'DEAD') AND h.failure_class <> 'ghost' AND h.id > {SINCE}
) AS f
WHERE {{held}}
RETURNING {{out}}dead_reason, {{out}}failures"
    )
}

/// As above: what it wrote itself.
const FAILED: &str = "
SELECT dead_reason, failures FROM {jobs}
WHERE id = $1 AND token = $2 AND state IN ('FAILED', 'DEAD') AND failure_class <> 'ghost'";

impl SqlStore {
    pub(super) async fn claim_jobs(&self, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
        let mut claimed = Vec::new();
        for kinds in claim.kinds.chunks(KINDS) {
            let taken = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
            let left = claim.max.saturating_sub(taken);
            if left > 0 {
                claimed.extend(self.claim_kinds(claim, kinds, left).await?);
            }
        }
        Ok(claimed)
    }

    async fn claim_kinds(&self, claim: &Claim<'_>, kinds: &[Kind], max: u32) -> Result<Vec<Claimed>, Error> {
        let worker = claim.worker.get(..claim.worker.floor_char_boundary(WORKER)).unwrap_or_default();
        let mut values = vec![Value::Int(i64::from(max)), Value::Text(worker), Value::Int(ms(claim.lease))];
        for kind in kinds {
            values.push(Value::Text(&kind.job_type));
            values.push(Value::MaybeText(kind.provider.as_deref()));
        }
        let rows = self.fetch("claim", &claim_sql(kinds.len()), &values).await?;
        let mut claimed = Vec::with_capacity(rows.len());
        for row in &rows {
            match columns::claimed(row) {
                Ok(job) => claimed.push(job),
                Err(error) => self.refuse(row, &error).await,
            }
        }
        claimed.sort_by_key(|(run_at, job)| (*run_at, job.lease.id));
        Ok(claimed.into_iter().map(|(_, job)| job).collect())
    }

    /// A row that somebody else wrote, which was claimed with others and cannot be read: it is DEAD, and they are not lost
    /// with it. What cannot be written is left to be found as a ghost.
    async fn refuse(&self, row: &Row, error: &sqlx::Error) {
        let reason = format!("its row cannot be read: {error}");
        let failure = Failure::new(FailureClass::Undecodable, reason);
        let refused = match lease_of(row) {
            Ok(lease) => self.fail_job(lease, &failure, &Recovery::default()).await.map(|_| lease.id.0),
            Err(error) => Err(Error::store("claim", error)),
        };
        match refused {
            Ok(id) => {
                let reason = failure.reason();
                tracing::error!(target: "redial_jobs", id, reason, "a job is DEAD: its row cannot be read");
            }
            Err(error) => tracing::warn!(
                target: "redial_jobs", %error, reason = failure.reason(), "a job was claimed whose row cannot be read",
            ),
        }
    }

    /// For tests: how the database would search for jobs to claim, and for those to complete.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub async fn explain(&self) -> Result<[String; 2], Error> {
        let leases = [Lease { id: JobId(1), token: 1 }, Lease { id: JobId(2), token: 1 }];
        let mut claim = vec![Value::Int(10), Value::Text("worker"), Value::Int(1000)];
        claim.extend([Value::Text("mail"), Value::MaybeText(None), Value::Text("report"), Value::MaybeText(None)]);
        let claim = self.explain_one(&claim_sql(2), &claim).await?;
        Ok([claim, self.explain_one(COMPLETE, &[Value::Leases(&leases)]).await?])
    }

    #[cfg(feature = "testing")]
    async fn explain_one(&self, sql: &str, values: &[Value<'_>]) -> Result<String, Error> {
        let (explain, column) = self.0.dialect.engine().explain();
        let rows = self.fetch("explain", &format!("{explain} {sql}"), values).await?;
        Ok(read("explain", &rows, |row| row.text(column))?.join("\n"))
    }

    pub(super) async fn renew_leases(&self, leases: &[Lease], lease: Duration) -> Result<Vec<Lease>, Error> {
        let values = [Value::Int(ms(lease)), Value::Leases(leases)];
        self.write_leased("renew a lease", RENEW, &values, leases, "PROCESSING").await
    }

    pub(super) async fn complete_jobs(&self, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        self.write_leased("complete", COMPLETE, &[Value::Leases(leases)], leases, "COMPLETED").await
    }

    pub(super) async fn give_back(&self, sql: &str, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        let released = self.write_leased("release", sql, &[Value::Leases(leases)], leases, "PENDING").await?;
        self.0.waker.wake();
        Ok(released)
    }

    /// Writes to those that are held, and returns them. As a rule that is all of them, and counting them is enough; else it
    /// looks which are of the state that was to be written.
    async fn write_leased(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[Value<'_>],
        leases: &[Lease],
        state: &str,
    ) -> Result<Vec<Lease>, Error> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let sql = self.0.dialect.render(sql);
        let written = self.0.db.execute(sql, values).await.map_err(|error| Error::store(doing, error))?;
        if usize::try_from(written) == Ok(leases.len()) {
            return Ok(leases.to_vec());
        }
        let rows = self.fetch(doing, &of_state(state), &[Value::Leases(leases)]).await?;
        read(doing, &rows, lease_of)
    }

    pub(super) async fn snooze_job(&self, lease: Lease, wait: Duration) -> Result<Held, Error> {
        let values = [Value::Int(lease.id.0), Value::Int(lease.token), Value::Int(ms(wait))];
        let mut rows = self.fetch("put off", SNOOZE, &values).await?;
        if rows.is_empty() {
            rows = self.fetch("put off", &of_state("PENDING"), &[Value::Leases(&[lease])]).await?;
        }
        Ok(if rows.is_empty() { Held::Lost } else { Held::Yes })
    }

    pub(super) async fn fail_job(&self, lease: Lease, failure: &Failure, recovery: &Recovery) -> Result<Failed, Error> {
        let history = match failure.history() {
            [] => None,
            attempts => serde_json::to_string(attempts).ok(),
        };
        let left = failure.earliest().map(|time| time.duration_since(SystemTime::now()).unwrap_or_default());
        let unbelievable = left.is_some_and(|left| left > LONGEST_WAIT);
        // Nobody would hear of the job again. A person decides, and neither they nor a new job wait for it.
        let left = left.filter(|_| !unbelievable);
        let dead = failure.class().dead_at_once().or(unbelievable.then_some(DeadReason::PutOff));
        // The longer of our own wait and the provider's (D3), and jitter only lengthens.
        let wait = recovery.interval().max(left.unwrap_or_default());
        let wait = wait.saturating_add(random_up_to(recovery.jitter_limit()));
        let values = [
            Value::Int(lease.id.0),
            Value::Int(lease.token),
            Value::Text(failure.class().as_str()),
            Value::Text(failure.reason()),
            Value::MaybeText(history.as_deref()),
            Value::Int(i64::from(failure.outcome_unknown())),
            Value::Int(ms(wait)),
            Value::MaybeInt(left.map(ms)),
            Value::MaybeText(dead.map(DeadReason::as_str)),
            Value::Int(i64::from(recovery.max_failures())),
        ];
        let mut rows = self.fetch("fail", &fail(), &values).await?;
        if rows.is_empty() {
            rows = self.fetch("fail", FAILED, &[Value::Int(lease.id.0), Value::Int(lease.token)]).await?;
        }
        Ok(read("fail", &rows, failed)?.pop().unwrap_or(Failed::Lost))
    }
}

/// One search of the index for each type, so that a backlog of another one, or a paused one, costs nothing. A row may depend
/// on another provider than its type does: the pauses of both hold.
fn claim_sql(kinds: usize) -> String {
    let each: Vec<_> = (0..kinds)
        .map(|kind| {
            let (job_type, provider) = (kind * 2 + 4, kind * 2 + 5);
            format!(
                "SELECT id, run_at FROM (
    SELECT q.id, q.run_at FROM {{jobs}} AS q {{by_ready}}
    WHERE q.state = 'PENDING' AND q.job_type = ${job_type} AND q.run_at <= {{now}} AND NOT EXISTS (
        SELECT 1 FROM {{pauses}} AS p
        WHERE (p.until_at IS NULL OR p.until_at > {{now}})
            AND ((p.scope = 'type' AND p.name = ${job_type}) OR (p.scope = 'provider' AND p.name = ${provider})))
        AND NOT EXISTS (SELECT 1 FROM {{pauses}} AS o
            WHERE (o.until_at IS NULL OR o.until_at > {{now}}) AND o.scope = 'provider' AND o.name = q.provider)
    ORDER BY run_at, id LIMIT $1 {{skip_locked}}) AS k{kind}"
            )
        })
        .collect();
    format!(
        "
WITH c AS MATERIALIZED (SELECT id FROM ({}) AS k ORDER BY run_at, id LIMIT $1)
UPDATE {{jobs}} AS j SET state = 'PROCESSING', worker = $2, token = j.token + 1, lease_until = {{now}} + $3,
    started_at = {{now}}, chain_at = CASE j.chain_at WHEN 0 THEN {{now}} ELSE j.chain_at END
FROM c WHERE j.id = c.id AND {}
RETURNING {}",
        each.join(" UNION ALL "),
        state_of("PENDING"),
        columns::CLAIMED,
    )
}

fn lease_of(row: &Row) -> sqlx::Result<Lease> {
    Ok(Lease { id: JobId(row.int(0)?), token: row.int(1)? })
}

fn failed(row: &Row) -> sqlx::Result<Failed> {
    let failures = count(row.int(1)?);
    Ok(match row.maybe_text(0)? {
        None => Failed::Recoverable { failures },
        Some(reason) => Failed::Dead { reason: DeadReason::parse(&reason).unwrap_or(DeadReason::Failures), failures },
    })
}
