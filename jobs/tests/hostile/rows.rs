//! What is in the table, and how it came there.

use std::time::{Duration, SystemTime};

use redial_jobs::{
    Failed, Failure, FailureClass, Filter, ImportOptions, Imported, JobContext, JobError, JobStore, Jobs, NewJob,
    Recovery, RecoveryStore, Retention, Runner, Scope, SqlStore, State, Sweeper,
};
use tokio::time::{sleep, timeout};

use crate::{
    place::{Database, HOUR, Place, claim, claim_one, enqueue, exhausted, job, recovery},
    sql,
    team::{Plain, Team, add, all, plain, quick, runner},
};

/// Somebody wrote a row by hand, with a chain that is no UUID: that one is lost, and the others are not.
pub async fn a_row_that_cannot_be_read_harms_no_other(place: &Place) {
    sql(
        place,
        "INSERT INTO {jobs} (job_type, target, payload, state, origin, run_at, chain, chain_at, created_at) \
         VALUES ('plain', 'by hand', '{}', 'PENDING', 'ENQUEUED', 1, 'mine', 1, 1)",
    )
    .await;
    for name in ["a", "b", "c", "d"] {
        add(&place.store, &plain(name)).await;
    }
    let team = Team::start(runner(&place.store).on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }));
    sleep(Duration::from_secs(2)).await;
    team.end().await;
    let stats = place.store.stats().await.unwrap();
    assert_eq!(stats.count(State::Completed), 4, "{stats:?}");
}

pub async fn a_payload_that_the_table_cannot_hold_is_invalid(place: &Place) {
    let made = NewJob::raw("mail", "a", "\"\0\"");
    let refused = match made {
        Err(error) => error,
        Ok(job) => match place.store.enqueue(&[job]).await {
            Err(error) => error,
            Ok(_) => panic!("stored, although it is no JSON"),
        },
    };
    assert!(refused.is_invalid(), "asking again would not help: {refused}");
}

/// With such a name no claim would ever succeed.
pub async fn names_with_nul_are_refused(place: &Place) {
    add(&place.store, &plain("a")).await;
    let runner = Runner::new(Jobs::new(place.store.clone()))
        .recovery(quick())
        .name("host\0 7")
        .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) });
    let ended = timeout(Duration::from_secs(2), runner.run_until(sleep(Duration::from_secs(1)))).await;
    let done = place.store.stats().await.unwrap().count(State::Completed) == 1;
    assert!(done || matches!(ended, Ok(Err(ref error)) if error.is_invalid()), "ran for ever, and claimed nothing");
}

/// `NewJob::provider` says of which provider a job is; a pause of that one is for "jobs that depend on this provider".
pub async fn a_providers_pause_holds_for_rows_of_it(place: &Place) {
    enqueue(&place.store, job("a").provider("github").unwrap()).await;
    place.store.pause(&Scope::Provider("github".to_owned()), None).await.unwrap();
    let claimed = claim(&place.store, 9).await;
    assert!(claimed.is_empty(), "claimed although its provider is paused: {claimed:?}");
}

/// `Jobs::enqueue_every` takes any name.
pub async fn ticks_of_users_do_not_meet_ours(place: &Place) {
    let jobs = Jobs::new(place.store.clone());
    assert!(jobs.enqueue_every("sweep", HOUR, &[plain("a")]).await.unwrap().is_some());
    assert!(jobs.enqueue_every("sweep", HOUR, &[plain("b")]).await.unwrap().is_none());
    let recovery = Recovery::default().sweep_every(Duration::from_millis(20));
    Sweeper::new(place.store.clone(), recovery).unwrap().run_if_due().await.unwrap();
    sleep(Duration::from_millis(50)).await;
    assert!(
        jobs.enqueue_every("sweep", HOUR, &[plain("c")]).await.unwrap().is_none(),
        "an hourly batch was enqueued twice within the second, since a sweep has the same tick"
    );
}

/// "Nothing is deleted that still counts."
pub async fn a_revival_that_was_pruned_still_begins_anew(place: &Place) {
    let mut clock = Duration::ZERO;
    let business = Failure::new(FailureClass::Business, "no");
    place.enqueue("a").await;
    // Two failures, then DEAD.
    for _ in 0..2 {
        let store = place.later(clock);
        let claimed = claim_one(&store).await;
        let _ = store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
        clock += 3 * HOUR;
        Sweeper::new(place.later(clock), recovery()).unwrap().run_once().await.unwrap();
        clock += HOUR;
    }
    let store = place.later(clock);
    let claimed = claim_one(&store).await;
    let _ = store.fail(claimed.lease, &business, &recovery()).await.unwrap();
    let revived = store.revive(claimed.lease.id).await.unwrap();
    let again = claim_one(&store).await;
    assert_eq!(again.lease.id, revived);
    let _ = store.fail(again.lease, &business, &recovery()).await.unwrap();
    // DEAD again, and enqueued anew by the application.
    enqueue(&store, job("a")).await;
    let retention = Retention { failed: Some(1000 * HOUR), dead: Some(HOUR), ..Retention::default() };
    let later = place.later(clock + 2 * HOUR);
    // The second one, by which the target was revived, counts as long as older failures are kept.
    assert_eq!(later.prune(&retention).await.unwrap(), 1, "the first of the two DEAD ones");
    let claimed = claim_one(&later).await;
    let failed = later.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    assert!(
        matches!(failed, Failed::Recoverable { failures: 1 | 2 }),
        "failures from before the revival count again: {failed:?}"
    );
}

/// A broken server says `Retry-After: 31536000000`. J1: no end is silent.
pub async fn a_wait_of_a_thousand_years_is_not_silent(place: &Place) {
    let far = SystemTime::now() + 24 * 365 * 1000 * HOUR;
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let failure = Failure::new(FailureClass::Exhausted, "429").not_before(far);
    let failed = place.store.fail(claimed.lease, &failure, &recovery()).await.unwrap();
    let row = place.row(claimed.lease.id).await;
    let year = SystemTime::now() + 24 * 366 * HOUR;
    assert!(
        failed.state() == Some(State::Dead) || row.retry_at.is_some_and(|at| at < year),
        "FAILED for a thousand years, and nobody is told: {:?}",
        row.retry_at
    );
}

/// The rule for names says "a name that needs no quotes anywhere".
pub async fn reserved_words_are_tables(place: &Place) {
    for name in ["order", "user", "group", "table", "sqlite_jobs"] {
        let made = match &place.database {
            Database::Sqlite(pool) => SqlStore::from_pool(pool.clone(), redial_jobs::SqlOptions::new().table(name)),
            Database::Postgres(pool) => {
                let options = redial_jobs::SqlOptions::new().table(name).schema(&place.name);
                SqlStore::from_pool(pool.clone(), options)
            }
        };
        // Refused when it is named, or usable.
        if let Ok(store) = made {
            store.migrate().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

pub async fn migrating_many_times_at_once(place: &Place) {
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = place.table("fresh");
        all.spawn(async move { store.migrate().await });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap().unwrap();
    }
    if let Database::Sqlite(_) = place.database {
        for round in 0..20 {
            let path = std::env::temp_dir().join(format!("hostile-{}-{round}.db", place.name));
            let mut all = tokio::task::JoinSet::new();
            for _ in 0..6 {
                let path = path.clone();
                all.spawn(async move { Jobs::sqlite(path).await.map(drop) });
            }
            while let Some(done) = all.join_next().await {
                done.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
            }
        }
    }
}

/// A client that hangs up cancels the handler of its request, which was enqueueing.
pub async fn an_abandoned_enqueue_leaves_the_store_usable(place: &Place) {
    let path = std::env::temp_dir().join(format!("hostile-{}-abandoned.db", place.name));
    let store = match &place.database {
        Database::Sqlite(_) => Jobs::sqlite(&path).await.unwrap().store().clone(),
        Database::Postgres(_) => place.store.clone(),
    };
    let jobs = Jobs::new(store);
    for turn in 0..1500_u32 {
        let job = plain(&format!("t{turn}"));
        let _ = timeout(Duration::from_micros(u64::from(turn % 300) * 3), jobs.enqueue_if_absent(&job)).await;
    }
    let last = timeout(Duration::from_secs(40), jobs.enqueue_if_absent(&plain("last"))).await;
    assert!(matches!(last, Ok(Ok(_))), "{last:?}");
    // Others see it, and can write.
    let other = match &place.database {
        Database::Sqlite(_) => Jobs::sqlite(&path).await.unwrap(),
        Database::Postgres(_) => Jobs::new(place.later(Duration::ZERO)),
    };
    let asked = Filter { target: Some("last".to_owned()), ..Filter::default() };
    assert_eq!(other.store().list(&asked).await.unwrap().len(), 1, "committed");
    other.enqueue_if_absent(&plain("other")).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

/// A target that has an active job is left out by an import, whatever runs concurrently.
pub async fn an_import_beside_an_enqueue(place: &Place) {
    for turn in 0..150 {
        let target = format!("t{turn}");
        let failures = [Imported {
            job: job(&target),
            failed_at: SystemTime::now() - HOUR,
            class: FailureClass::Exhausted,
            reason: "old".to_owned(),
        }];
        let options = ImportOptions::default();
        let (_, _) = tokio::join!(place.store.import(&failures, &options), enqueue(&place.store, job(&target)));
        let rows = place.store.list(&Filter { target: Some(target), ..Filter::default() }).await.unwrap();
        // The newest first.
        let failed = rows.iter().position(|row| row.state == State::Failed);
        let active = rows.iter().position(|row| row.state.is_active());
        if let (Some(failed), Some(active)) = (failed, active) {
            let taken_over = rows[failed].retry_at.is_none() && rows[active].parent == Some(rows[failed].id);
            assert!(
                taken_over,
                "turn {turn}: a FAILED row beside an active job that does not stand in for it: {rows:#?}"
            );
        }
    }
    let _ = (all(&place.store).await, place.store.candidates(&recovery()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_pool_of_one_connection_is_enough_or_refused() {
    let Some(url) = crate::place::server::url() else { return };
    let place = Place::postgres().await.unwrap();
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(2))
        .connect(&url)
        .await
        .unwrap();
    let store = SqlStore::from_pool(pool, redial_jobs::SqlOptions::new().schema(&place.name)).unwrap();
    add(&store, &plain("a")).await;
    let runner = runner(&store).on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) });
    let ended = timeout(Duration::from_secs(30), runner.run_until(sleep(Duration::from_secs(6)))).await;
    let done = place.store.stats().await.unwrap().count(State::Completed);
    assert!(done == 1 || matches!(ended, Ok(Err(_))), "6 s, and the listener held the only connection: {ended:?}");
    place.end().await;
}

#[test]
fn an_imported_failure_hides_its_secrets() {
    let imported = Imported {
        job: NewJob::raw("mail", "a", "{}").unwrap(),
        failed_at: SystemTime::now(),
        class: FailureClass::Exhausted,
        reason: "GET https://app:hunter2@hub.example/?token=s3cret failed".to_owned(),
    };
    let shown = format!("{imported:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("s3cret"), "{shown}");
}
