//! What a hostile user and operator would find.
#![allow(clippy::unwrap_used)]

#[macro_use]
#[path = "../runner/each_store.rs"]
mod each_store;
mod keys;
mod last;
mod more;
mod operator;
#[path = "../store/place.rs"]
#[allow(dead_code)]
mod place;
mod rows;
mod runs;
#[path = "../runner/team.rs"]
#[allow(dead_code)]
mod team;

use place::Place;

on_each_store! {
    keys: a_job_that_never_ran_needs_no_key, a_revived_job_runs_though_its_key_is_old,
        two_steps_never_share_a_key;
    runs: a_verify_that_hangs_is_asked_again, a_verify_that_panics_is_asked_again,
        a_verify_that_errs_after_a_revival_is_asked_again, an_error_that_cannot_be_shown_is_a_failure,
        a_panic_whose_text_panics_is_a_failure, a_hook_whose_panic_panics_ends_nothing,
        a_batch_that_panics_once_is_made_again, putting_off_for_no_time_has_a_floor, a_run_without_end_may_be_stated,
        a_batch_claimed_and_given_back_unbegun_leaves_no_doubt, a_payload_that_panics_when_dropped_ends_nothing;
    rows: a_row_that_cannot_be_read_harms_no_other, a_payload_that_the_table_cannot_hold_is_invalid,
        names_with_nul_are_refused, a_providers_pause_holds_for_rows_of_it, ticks_of_users_do_not_meet_ours,
        a_revival_that_was_pruned_still_begins_anew, a_wait_of_a_thousand_years_is_not_silent, reserved_words_are_tables,
        migrating_many_times_at_once, an_abandoned_enqueue_leaves_the_store_usable, an_import_beside_an_enqueue;
    operator: a_sweep_by_hand_kills_nothing_the_application_would_repair, a_full_disk_is_told,
        a_row_of_a_later_release_is_listed_beside_others, nothing_steers_the_terminal, connections_are_killed_all_the_time;
    more: work_of_a_run_that_lasted_too_long_is_told, work_of_a_run_that_a_shutdown_cancelled_is_told,
        a_row_that_cannot_be_read_kills_no_other, an_unknown_type_of_a_paused_provider_waits,
        what_is_asked_again_is_answered_the_same, a_lost_listener_is_made_up_for,
        an_import_beside_an_enqueue_leads_to_no_second_run, a_delay_longer_than_keys_are_valid_is_no_death;
    last: a_repaired_target_is_no_alarm, two_batches_of_one_name_are_refused_or_both_made,
        a_retention_that_deletes_nothing_is_refused, a_tick_without_a_name_is_invalid,
        a_pool_that_is_set_otherwise_serves, a_database_that_may_only_be_read,
        a_ghost_that_renews_between_plan_and_deed_is_left, a_frequent_batch_does_not_spend_the_recoveries,
        a_ghost_that_a_sweep_buries_is_told_to_the_hook;
}

/// Runs a statement past the store.
pub async fn sql(place: &Place, sql: &str) {
    let sql = match &place.database {
        place::Database::Sqlite(_) => sql.replace("{jobs}", "redial_jobs"),
        place::Database::Postgres(_) => sql.replace("{jobs}", &format!("{}.redial_jobs", place.name)),
    };
    let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
    match &place.database {
        place::Database::Sqlite(pool) => sql.execute(pool).await.map(drop).unwrap(),
        place::Database::Postgres(pool) => sql.execute(pool).await.map(drop).unwrap(),
    }
}
