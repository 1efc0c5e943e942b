//! The rules of the job level, held against both stores. SQLite always; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL
//! of a server.

mod claiming;
mod enqueueing;
mod failing;
mod given_up;
mod importing;
mod looking;
mod outages;
mod place;
mod sweeping;

use place::Place;

/// Runs each test on each store.
macro_rules! on_each_store {
    ($($module:ident: $($test:ident),+;)+) => {
        mod sqlite {
            use super::*;
            $($(#[tokio::test]
            async fn $test() {
                let place = Place::sqlite().await;
                $module::$test(&place).await;
                place.end().await;
            })+)+
        }
        mod postgres {
            use super::*;
            $($(#[tokio::test]
            async fn $test() {
                let Some(place) = Place::postgres().await else { return };
                $module::$test(&place).await;
                place.end().await;
            })+)+
        }
    };
}

on_each_store! {
    enqueueing: one_active_job_for_each_target, of_many_at_once_one_gets_in, a_delay_is_the_earliest_start,
        once_completed_is_enough, within_a_time_one_completed_is_enough, a_transaction_of_the_callers,
        a_failed_target_is_taken_over, the_providers_word_outlives_an_enqueue, another_payload_is_other_work,
        a_batch_is_enqueued_once_a_night, a_batch_leaves_failures_to_recovery,
        a_batch_is_answered_as_one_by_one, batches_in_any_order_do_not_block_each_other;
    claiming: the_longest_due_first, each_job_has_one_worker, a_late_worker_is_refused, a_lease_is_renewed,
        what_is_done_is_done_once, a_released_job_was_never_claimed, putting_off_does_not_count,
        a_paused_type_waits, a_paused_provider_waits_until_its_time, other_types_are_left,
        each_search_has_its_index, a_worker_is_woken,
        a_row_that_cannot_be_read_is_dead_alone, keys_have_no_age_before_a_claim;
    failing: a_failure_says_when_it_is_due, the_third_failure_is_dead, a_completed_job_starts_the_count_anew,
        ghosts_are_no_failures, a_business_failure_is_dead_at_once, the_servers_wait_is_kept,
        asking_again_is_answered_the_same, a_report_is_handed_over;
    sweeping: a_failure_has_one_successor, three_sweepers_do_it_once, a_ghost_is_replaced,
        a_ghost_that_returns_is_refused, a_job_that_kills_its_worker_ends, the_newest_job_alone_counts,
        a_canary_goes_first, caps_spread_a_backlog, all_that_is_due_in_one_pass, successors_start_apart,
        a_dead_target_is_revived, ticks_are_shared, a_plan_changes_nothing, a_waiting_job_is_reported, a_backlog_is_reported_once,
        batches_and_sweepers_pass_each_other;
    looking: lists_are_paged, a_chain_is_shown_whole, stats_count, what_still_counts_is_kept,
        another_table_stands_beside, migrating_twice_does_nothing, names_cannot_break_out;
    importing: old_failures_come_in, of_a_targets_old_failures_the_newest_comes_in,
        many_old_failures_come_in_as_a_few_do, others_write_while_many_old_failures_come_in,
        an_import_that_fails_half_way_is_run_again, no_old_failure_is_of_tomorrow;
    given_up: whatever_is_given_up_is_done_or_not;
    outages: a_clock_that_is_set_back_loses_nothing, without_fencing_work_is_done_twice;
}
