//! Alerts that never end, names that meet, pools that are set otherwise.

use std::time::Duration;

use redial_jobs::{
    BoxError, Failure, FailureClass, JobContext, JobError, JobStore, Jobs, Retention, SqlOptions, SqlStore, State,
};
use tokio::time::sleep;

use crate::{
    operator::ask,
    place::{Database, Place, claim_one, recovery},
    team::{Plain, Team, add, all, plain, runner},
};

/// DEAD, revived, done: nobody must look any more.
pub async fn a_repaired_target_is_no_alarm(place: &Place) {
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let failure = Failure::new(FailureClass::Business, "no");
    let _ = place.store.fail(claimed.lease, &failure, &recovery()).await.unwrap();
    assert_eq!(ask(place, &["stats"]).status.code(), Some(1));
    place.store.revive(claimed.lease.id).await.unwrap();
    let again = claim_one(&place.store).await;
    place.store.complete(&[again.lease]).await.unwrap();
    let output = ask(place, &["stats"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

pub async fn two_batches_of_one_name_are_refused_or_both_made(place: &Place) {
    let runner = runner(&place.store)
        .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) })
        .every("nightly", Duration::from_secs(3600), || async { Ok::<_, BoxError>(vec![plain("reports")]) })
        .every("nightly", Duration::from_secs(3600), || async { Ok::<_, BoxError>(vec![plain("quizzes")]) });
    match runner.run_until(sleep(Duration::from_millis(600))).await {
        Err(error) => assert!(error.is_invalid()),
        Ok(()) => {
            let rows = all(&place.store).await;
            assert_eq!(rows.len(), 2, "one of the two batches is never enqueued, and nobody is told: {rows:?}");
        }
    }
}

pub async fn a_retention_that_deletes_nothing_is_refused(place: &Place) {
    let runner = runner(&place.store)
        .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) })
        .retention(Retention { batch: 0, ..Retention::default() });
    let ended = runner.run_until(sleep(Duration::from_millis(50))).await;
    assert!(ended.is_err(), "a batch of 0 deletes nothing, for ever");
}

pub async fn a_tick_without_a_name_is_invalid(place: &Place) {
    let jobs = Jobs::new(place.store.clone());
    for name in ["", "a\0b", &"x".repeat(5000)] {
        let made = jobs.enqueue_every(name, Duration::from_secs(60), &[plain("a")]).await;
        assert!(matches!(&made, Err(error) if error.is_invalid()), "{:?}: {made:?}", name.get(..3));
    }
}

/// A pool of the caller's: another isolation, another journal.
pub async fn a_pool_that_is_set_otherwise_serves(place: &Place) {
    let name = std::env::temp_dir().join(format!("hostile-{}-other.db", place.name));
    let store = match &place.database {
        Database::Sqlite(_) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&name).create_if_missing(true);
            let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(6).connect_with(options).await.unwrap();
            let store = SqlStore::from_pool(pool, SqlOptions::new()).unwrap();
            store.migrate().await.unwrap();
            store
        }
        Database::Postgres(_) => {
            let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
            let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
            let options = options.options([("default_transaction_isolation", "serializable")]);
            let pool = sqlx::postgres::PgPoolOptions::new().max_connections(6).connect_with(options).await.unwrap();
            SqlStore::from_pool(pool, SqlOptions::new().schema(&place.name)).unwrap()
        }
    };
    for n in 0..150 {
        add(&store, &plain(&format!("t{n}"))).await;
    }
    let team = |store: &SqlStore| {
        Team::start(runner(store).on(|_: Plain, _: JobContext| async {
            sleep(Duration::from_millis(2)).await;
            Ok::<_, JobError>(())
        }))
    };
    let (one, two) = (team(&store), team(&store));
    let mut done = 0;
    for _ in 0..600 {
        sleep(Duration::from_millis(50)).await;
        done = store.stats().await.map_or(done, |stats| stats.count(State::Completed));
        if done == 150 {
            break;
        }
    }
    let stats = store.stats().await;
    one.end().await;
    two.end().await;
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", name.display()));
    }
    assert_eq!(done, 150, "{stats:?}");
}

/// A database that may only be read: asked for, it says so; a runner waits, and ends when it is told to.
pub async fn a_database_that_may_only_be_read(place: &Place) {
    add(&place.store, &plain("a")).await;
    let store = match &place.database {
        Database::Sqlite(pool) => {
            let options = (*pool.connect_options()).clone().read_only(true);
            let pool = sqlx::sqlite::SqlitePoolOptions::new().connect_with(options).await.unwrap();
            SqlStore::from_pool(pool, SqlOptions::new()).unwrap()
        }
        Database::Postgres(_) => {
            let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
            let options: sqlx::postgres::PgConnectOptions = url.parse().unwrap();
            let options = options.options([("default_transaction_read_only", "on")]);
            let pool = sqlx::postgres::PgPoolOptions::new().connect_with(options).await.unwrap();
            SqlStore::from_pool(pool, SqlOptions::new().schema(&place.name)).unwrap()
        }
    };
    assert!(Jobs::new(store.clone()).enqueue_if_absent(&plain("b")).await.unwrap_err().is_store());
    assert_eq!(all(&store).await.len(), 1);
    let runner = runner(&store).on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) });
    runner.run_until(sleep(Duration::from_millis(500))).await.unwrap();
    assert_eq!(all(&place.store).await[0].state, State::Pending);
}

/// What no test of the store holds: the worker renews between the plan and the deed.
pub async fn a_ghost_that_renews_between_plan_and_deed_is_left(place: &Place) {
    use redial_jobs::{RecoveryStore, Sweeper};
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    let later = place.later(crate::place::LEASE * 2);
    let plan = Sweeper::new(later.clone(), recovery()).unwrap().plan().await.unwrap();
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(later.renew(&[lease], crate::place::LEASE).await.unwrap(), [lease]);
    let swept = later.apply(&plan).await.unwrap();
    assert_eq!((swept.recovered, swept.ghosts, swept.overtaken), (0, 0, 1), "{swept:?}");
    assert_eq!(place.row(id).await.state, State::Processing);
}

/// A batch every 100 ms, a provider that is down for a moment: recovery would have waited two hours for it.
pub async fn a_frequent_batch_does_not_spend_the_recoveries(place: &Place) {
    let deaths = crate::team::Count::default();
    let count = deaths.clone();
    let team = Team::start(
        runner(&place.store)
            .recovery(redial_jobs::Recovery::default())
            .on_dead(move |_| {
                count.one();
            })
            .on(|_: Plain, _: JobContext| async { Err::<(), _>(JobError::transient("the provider is down")) })
            .every("often", Duration::from_millis(100), || async { Ok::<_, BoxError>(vec![plain("a")]) }),
    );
    sleep(Duration::from_millis(1500)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(deaths.get(), 0, "deaths, and ERRORs, in an outage of 1.5 s; {} runs", rows.len());
}

/// What no test of the runner holds: a target that a sweep gives up is told to the hook as well.
pub async fn a_ghost_that_a_sweep_buries_is_told_to_the_hook(place: &Place) {
    add(&place.store, &plain("a")).await;
    let kinds = [redial_jobs::Kind::of::<Plain>()];
    let claim = redial_jobs::Claim { kinds: &kinds, worker: "w", lease: Duration::from_millis(1), max: 1 };
    assert_eq!(place.store.claim(&claim).await.unwrap().len(), 1);
    let deaths = crate::team::Count::default();
    let count = deaths.clone();
    let team = Team::start(
        runner(&place.store)
            .recovery(crate::team::quick().ghosts(1))
            .on_dead(move |_| {
                count.one();
            })
            .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }),
    );
    crate::team::until_state(&place.store, State::Dead, 1).await;
    sleep(Duration::from_millis(100)).await;
    team.end().await;
    assert_eq!(deaths.get(), 1);
}
