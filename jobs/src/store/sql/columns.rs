//! Rows of the table, as values.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::{Claimed, DeadReason, Error, FailureClass, JobId, JobRow, Lease, Origin, State};

use super::db::Row;

/// What a claim returns.
pub(super) const CLAIMED: &str = "{out}id, {out}token, {out}job_type, {out}target, {out}payload, {out}provider, {out}attempt, {out}snoozes, \
    {out}chain, {out}chain_at, COALESCE({out}root_id, {out}id), {out}parent_id, {out}unknown_before, {out}trace, {out}created_at, \
    {out}started_at, {out}run_at";

pub(super) fn claimed(row: &Row) -> sqlx::Result<(i64, Claimed)> {
    let claimed = Claimed {
        lease: Lease { id: JobId(row.int(0)?), token: row.int(1)? },
        job_type: row.text(2)?,
        target: row.text(3)?,
        payload: row.text(4)?,
        provider: row.maybe_text(5)?,
        attempt: count(row.int(6)?),
        snoozes: count(row.int(7)?),
        chain: chain(&row.text(8)?),
        chain_started: time(row.int(9)?),
        root: JobId(row.int(10)?),
        parent: row.maybe_int(11)?.map(JobId),
        unknown_before: row.int(12)? != 0,
        trace: row.maybe_text(13)?,
        created_at: time(row.int(14)?),
        claimed_at: time(row.int(15)?),
    };
    Ok((row.int(16)?, claimed))
}

/// All of a job.
pub(super) const ALL: &str = "j.id, j.job_type, j.target, j.payload, j.state, j.provider, j.origin, j.attempt, \
    j.snoozes, j.run_at, j.worker, j.token, j.lease_until, j.failure_class, j.error, j.history, j.outcome_unknown, \
    j.dead_reason, j.retry_at, j.not_before, j.parent_id, COALESCE(j.root_id, j.id), j.chain, j.chain_at, j.trace, \
    j.created_at, j.started_at, j.finished_at";

pub(super) fn job(row: &Row) -> sqlx::Result<JobRow> {
    let at = |column| row.maybe_int(column).map(|at| at.map(time));
    Ok(JobRow {
        id: JobId(row.int(0)?),
        job_type: row.text(1)?,
        target: row.text(2)?,
        payload: row.text(3)?,
        state: named(row.text(4)?, State::parse)?,
        provider: row.maybe_text(5)?,
        origin: named(row.text(6)?, Origin::parse)?,
        attempt: count(row.int(7)?),
        snoozes: count(row.int(8)?),
        run_at: time(row.int(9)?),
        worker: row.maybe_text(10)?,
        token: row.int(11)?,
        lease_until: at(12)?,
        // One that a later release wrote is no reason not to show the rest either.
        failure: row.maybe_text(13)?.and_then(|name| FailureClass::parse(&name)),
        error: row.maybe_text(14)?,
        // A history that somebody else wrote is no reason not to show the rest.
        history: row.maybe_text(15)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        outcome_unknown: row.int(16)? != 0,
        dead: row.maybe_text(17)?.and_then(|name| DeadReason::parse(&name)),
        retry_at: at(18)?,
        not_before: at(19)?,
        parent: row.maybe_int(20)?.map(JobId),
        root: JobId(row.int(21)?),
        chain: chain(&row.text(22)?),
        chain_started: Some(row.int(23)?).filter(|at| *at != 0).map(time),
        trace: row.maybe_text(24)?,
        created_at: time(row.int(25)?),
        started_at: at(26)?,
        finished_at: at(27)?,
    })
}

fn named<T>(name: String, parse: fn(&str) -> Option<T>) -> sqlx::Result<T> {
    parse(&name).ok_or_else(|| {
        sqlx::Error::Decode(format!("the table holds {name:?}, which this release does not know").into())
    })
}

/// A chain of ours is named by a UUID. Another text, which somebody else wrote, names one as well.
fn chain(text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()))
}

pub(super) fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// A time of the table, whatever somebody wrote there.
pub(super) fn time(at: i64) -> SystemTime {
    let since = Duration::from_millis(at.unsigned_abs());
    let time = if at < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    time.unwrap_or(UNIX_EPOCH)
}

/// The same the other way round.
pub(super) fn at(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// Reads rows, and says while doing what.
pub(super) fn read<T>(
    doing: &'static str,
    rows: &[Row],
    one: impl Fn(&Row) -> sqlx::Result<T>,
) -> Result<Vec<T>, Error> {
    rows.iter().map(one).collect::<sqlx::Result<_>>().map_err(|error| Error::store(doing, error))
}
