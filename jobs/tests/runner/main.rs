//! What a runner promises, held on both stores. SQLite always; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a
//! server.

#[macro_use]
mod each_store;
mod batches;
mod ends;
mod flaky;
mod handover;
mod leases;
mod outages;
#[path = "../store/place.rs"]
#[allow(dead_code)]
mod place;
mod regularly;
mod shutdown;
mod team;
mod verifies;

use place::Place;

on_each_store! {
    batches: after_the_last_batch_a_runner_waits, batches_on_their_way_are_given_back;
    ends: a_job_is_done, an_error_is_a_failure_that_recovery_repairs, a_panic_is_a_failure,
        a_run_that_lasts_too_long_is_cancelled, a_business_failure_is_dead_with_its_reason,
        spent_failures_are_dead_and_told_once, a_payload_that_cannot_be_read_is_dead, an_unknown_type_is_dead_where_asked,
        putting_off_does_not_count, put_off_too_often_is_dead, a_paused_type_waits_in_a_running_worker,
        the_key_is_the_chains, concurrency_is_a_limit, rules_are_named;
    handover: spent_attempts_are_recoverable, a_lost_answer_is_recorded_through_a_callers_own_error,
        a_permanent_failure_is_dead, the_servers_not_before_is_the_successors,
        an_error_without_a_report_says_how_far_it_got;
    verifies: a_lost_answer_is_verified_before_the_repeat, not_done_is_done_now, a_409_after_a_lost_answer_is_success,
        doubt_outlives_a_run_that_could_not_verify, a_business_failure_without_doubt_is_not_verified,
        an_old_key_is_verified_not_repeated, an_old_key_that_nothing_verifies_is_dead, the_last_failure_is_verified, a_call_that_asks_for_a_look_gets_it_at_once;
    leases: a_long_job_keeps_its_lease, a_blocking_handler_keeps_its_lease, a_lost_lease_is_told_and_dropped,
        a_hung_handler_is_a_ghost_although_its_process_lives;
    outages: a_hiccup_does_not_end_the_worker, a_renewal_that_fails_twice_is_no_loss, a_store_that_panics_is_asked_again, without_renewal_it_is_cancelled_in_time,
        what_is_done_is_written_when_the_database_is_back;
    regularly: a_batch_is_enqueued_by_one_of_many, a_batch_that_fails_is_made_again, old_jobs_are_deleted;
    shutdown: a_running_job_may_end, what_does_not_end_is_given_back_uncounted, what_was_not_begun_is_given_back,
        what_was_not_begun_does_not_wait_for_what_runs, a_sweep_is_let_end, a_cancelled_job_is_verified_before_it_runs_again;
}
