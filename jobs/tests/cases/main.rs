//! Real reports from people who run job queues, each reduced to an input and the right behaviour.
//!
//! Named by their ids (`c154_…`). On both stores: SQLite always, PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a
//! server.

#[macro_use]
#[path = "../runner/each_store.rs"]
mod each_store;
mod crowds;
#[path = "../runner/flaky.rs"]
#[allow(dead_code)]
mod flaky;
mod killed;
#[path = "../store/place.rs"]
#[allow(dead_code)]
mod place;
mod providers;
mod secrets;
#[path = "../runner/team.rs"]
#[allow(dead_code)]
mod team;
mod waits;

use place::Place;

on_each_store! {
    killed: c154_a_killed_workers_job_is_claimable_again, c156_a_job_that_aborts_its_process_is_dead_after_its_limit;
    waits: c157_a_graceful_shutdown_does_not_consume_the_attempt, c158_a_snooze_never_counts,
        c160_the_providers_hour_outlives_the_worker, c161_a_pause_is_a_stored_time, c165_a_lease_is_watched_locally;
    crowds: c162_many_claim_while_others_write, c164_what_is_rescued_at_once_starts_apart,
        c168_all_that_is_overdue_is_scheduled, c169_what_a_later_job_has_done_is_not_rescued;
    providers: c166_one_key_on_every_attempt_and_every_run, c166_another_body_has_another_key;
    secrets: c173_a_failed_jobs_row_holds_no_secret;
}
