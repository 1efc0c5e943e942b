//! The one place that emits the events of a runner and, with the feature `metrics`, counts.
//!
//! All under the target `redial_jobs`. One ERROR for a job that becomes DEAD, and none before: a job that failed and will
//! be repaired is a WARN. Neither payloads nor a foreign error's text beyond the stored reason are logged.

use std::{future::Future, time::Duration};

use tracing::{Instrument, Level, event};

use crate::{Claimed, DeadReason, Death, Error, Failure, JobId, Stats, Swept, Verified};

#[cfg(feature = "metrics")]
mod meter;

const TARGET: &str = "redial_jobs";

/// One event about a job, with the fields that all of them have.
macro_rules! job_event {
    ($level:expr, $job:expr, { $($field:tt)* }, $message:literal) => {
        event!(
            target: TARGET,
            $level,
            id = $job.lease.id.0,
            job_type = %$job.job_type,
            job_target = %$job.target,
            provider = $job.provider.as_deref(),
            attempt = $job.attempt,
            root = $job.root.0,
            $($field)*
            $message
        )
    };
}

/// Runs this within the span of its job, so that what the handler logs can be told by job.
pub(crate) fn in_span<F: Future>(job: &Claimed, code: F) -> impl Future<Output = F::Output> + use<F> {
    code.instrument(tracing::info_span!(
        target: "redial_jobs",
        "job",
        id = job.lease.id.0,
        job_type = %job.job_type,
        job_target = %job.target,
        attempt = job.attempt,
        root = job.root.0,
        trace = job.trace.as_deref(),
    ))
}

pub(crate) fn completed(job: &Claimed) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "completed", "");
    match job.attempt {
        1 => job_event!(Level::DEBUG, job, {}, "a job is done"),
        _ => job_event!(Level::INFO, job, {}, "a job is done after recovery"),
    }
}

/// Verified instead of run: [`completed`] follows.
pub(crate) fn done_before(job: &Claimed) {
    job_event!(Level::INFO, job, {}, "a job's work was done already: an earlier attempt had worked");
}

pub(crate) fn verified(job: &Claimed, verified: Option<&Verified>) {
    let found = match verified {
        Some(Verified::Done) => "done",
        Some(Verified::NotDone) => "not-done",
        Some(Verified::Unsupported) => "unsupported",
        None => "error",
    };
    #[cfg(feature = "metrics")]
    meter::verified(&job.job_type, found);
    job_event!(Level::DEBUG, job, { found, }, "looked whether a job's work is done");
}

pub(crate) fn failed(job: &Claimed, failure: &Failure, failures: u32) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "failed", failure.class().as_str());
    job_event!(Level::WARN, job, {
        class = failure.class().as_str(),
        failures,
        outcome_unknown = failure.outcome_unknown(),
        error = failure.reason(),
    }, "a job FAILED: recovery will repair it");
}

pub(crate) fn dead(job: &Claimed, failure: &Failure, reason: DeadReason, failures: u32) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "dead", failure.class().as_str());
    job_event!(Level::ERROR, job, {
        reason = reason.as_str(),
        class = failure.class().as_str(),
        failures,
        outcome_unknown = failure.outcome_unknown(),
        error = failure.reason(),
    }, "a job is DEAD: a person must look");
}

/// Those of one import together: each of them was an ERROR where it comes from, or should have been.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn imported_dead(count: u64) {
    event!(target: TARGET, Level::ERROR, count, "jobs were imported as DEAD: a person must look");
}

pub(crate) fn snoozed(job: &Claimed, wait: Duration) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "snoozed", "");
    job_event!(Level::DEBUG, job, { wait_ms = millis(wait), }, "a job was put off");
}

pub(crate) fn released(job: &Claimed) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "released", "");
    job_event!(Level::INFO, job, {}, "a job was cancelled by the shutdown and given back");
}

/// A result that is not written: the lease was lost.
pub(crate) fn dropped(job: &Claimed, result: &'static str) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "lost", "");
    job_event!(Level::WARN, job, { result, }, "a job's result was DROPPED: its lease is lost, and somebody else has it");
}

pub(crate) fn hung(job: &Claimed) {
    #[cfg(feature = "metrics")]
    meter::ended(&job.job_type, "hung", "");
    job_event!(Level::WARN, job, {}, "a job's handler blocks its thread and cannot be cancelled: its lease runs out");
}

pub(crate) fn lease_lost(id: JobId) {
    event!(target: TARGET, Level::WARN, id = id.0, "a lease could not be renewed: somebody else has the job");
}

/// How long a handler ran.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn ran(job_type: &str, time: Duration) {
    #[cfg(feature = "metrics")]
    meter::ran(job_type, time);
}

pub(crate) fn store_failed(doing: &'static str, times: u32, error: &Error) {
    #[cfg(feature = "metrics")]
    meter::store_failed(doing);
    event!(target: TARGET, Level::WARN, doing, times, error = %error, "the store of jobs does not answer: trying again");
}

pub(crate) fn store_is_back(doing: &'static str, times: u32) {
    event!(target: TARGET, Level::INFO, doing, times, "the store of jobs answers again");
}

pub(crate) fn renewal_hangs(time: Duration) {
    #[cfg(feature = "metrics")]
    meter::store_failed("renew");
    event!(target: TARGET, Level::WARN, waited_ms = millis(time), "a renewal of leases was not answered: trying again");
}

pub(crate) fn enqueued(name: &str, new: usize, all: usize) {
    event!(target: TARGET, Level::INFO, name, new, all, "a batch of jobs was enqueued");
}

pub(crate) fn hook_panicked(death: &Death, text: &str) {
    event!(target: TARGET, Level::WARN, id = death.id.0, panic = text, "a hook for DEAD jobs panicked");
}

/// What a sweep did, for counting: its events are its own.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn swept(swept: &Swept) {
    #[cfg(feature = "metrics")]
    meter::swept(swept);
}

/// How things stand.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn stats(stats: &Stats) {
    #[cfg(feature = "metrics")]
    meter::stats(stats);
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
