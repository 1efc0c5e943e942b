//! The one place that counts (feature `metrics`).

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::{
    State, Stats, Swept,
    metrics::{DEAD, ENDED, GHOSTS, OLDEST_PENDING, RECOVERED, RECOVERED_TOTAL, RUN, STORE_ERRORS, VERIFIED},
};

pub(super) fn ended(job_type: &str, outcome: &'static str, class: &'static str) {
    counter!(ENDED, "type" => job_type.to_owned(), "outcome" => outcome, "class" => class).increment(1);
}

pub(super) fn ran(job_type: &str, time: Duration) {
    histogram!(RUN, "type" => job_type.to_owned()).record(time.as_secs_f64());
}

pub(super) fn verified(job_type: &str, found: &'static str) {
    counter!(VERIFIED, "type" => job_type.to_owned(), "found" => found).increment(1);
}

pub(super) fn store_failed(doing: &'static str) {
    counter!(STORE_ERRORS, "doing" => doing).increment(1);
}

pub(super) fn swept(swept: &Swept) {
    gauge!(RECOVERED).set(f64::from(swept.recovered));
    counter!(RECOVERED_TOTAL).increment(u64::from(swept.recovered));
    for burial in &swept.buried {
        ended(&burial.job.job_type, "dead", if burial.ghost { "ghost" } else { "" });
    }
}

// Counts of jobs are far from where an `f64` loses any.
#[expect(clippy::cast_precision_loss)]
pub(super) fn stats(stats: &Stats) {
    gauge!(OLDEST_PENDING).set(stats.oldest_pending.unwrap_or_default().as_secs_f64());
    gauge!(GHOSTS).set(stats.ghosts as f64);
    gauge!(DEAD).set(stats.count(State::Dead) as f64);
}
