//! What waits, and until when.

use std::time::{Duration, SystemTime};

use redial::{
    RetryLayer, StandardPolicy, Timeouts, Transient,
    testing::{self, Reply},
};
use redial_jobs::{BoxError, DeadReason, Job, JobContext, JobError, JobStore, Scope, State};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use crate::{
    flaky::{Flaky, Mood},
    place::{Database, Place},
    team::{Count, Plain, Team, add, all, plain, quick, runner, states, until, until_state},
};

const HOUR: Duration = Duration::from_secs(3600);

pub async fn c157_a_graceful_shutdown_does_not_consume_the_attempt(place: &Place) {
    let once = quick().failures(1).ghosts(1);
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let runner_of = |count: Count| {
        runner(&place.store).recovery(once.clone()).grace(Duration::ZERO).on(move |_: Plain, _: JobContext| {
            let run = count.one();
            async move {
                if run == 1 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, BoxError>(())
            }
        })
    };
    let team = Team::start(runner_of(count.clone()));
    until("it runs", || async { runs.get() == 1 }).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!((rows[0].state, rows[0].attempt), (State::Pending, 1));
    let team = Team::start(runner_of(count));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!((rows.len(), rows[0].attempt, runs.get()), (1, 1, 2));
    team.end().await;
}

pub async fn c158_a_snooze_never_counts(place: &Place) {
    let id = add(&place.store, &plain("a")).await;
    // Most of the 40 000 are behind it.
    let sql = |table: String| sqlx::AssertSqlSafe(format!("UPDATE {table} SET snoozes = 39900, token = 39900"));
    match &place.database {
        Database::Sqlite(pool) => drop(sqlx::raw_sql(sql("redial_jobs".into())).execute(pool).await.unwrap()),
        Database::Postgres(pool) => {
            let table = format!("{}.redial_jobs", place.name);
            let _ = sqlx::raw_sql(sql(table)).execute(pool).await.unwrap();
        }
    }
    let team = Team::start(
        runner(&place.store)
            .max_snoozes(40_000)
            .on(|_: Plain, cx: JobContext| async move {
                assert_eq!(cx.attempt(), 1);
                assert!(!cx.unknown_before());
                Err(JobError::snooze(Duration::from_millis(1)))
            })
            .poll_every(Duration::from_millis(1)),
    );
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!((rows.len(), rows[0].id, rows[0].attempt, rows[0].snoozes), (1, id, 1, 40_000));
    assert_eq!(rows[0].dead, Some(DeadReason::PutOff));
    team.end().await;
}

pub async fn c160_the_providers_hour_outlives_the_worker(place: &Place) {
    add(&place.store, &plain("a")).await;
    let timeouts = Timeouts { attempt: Duration::from_secs(10), total: Duration::from_secs(30) };
    let policy = StandardPolicy::new("hub", timeouts, Transient::usual()).unwrap();
    let service = testing::service([Reply::status(429).header("retry-after", "3600")]);
    let seen = service.clone();
    let client = RetryLayer::new(policy).layer(service);
    let start = SystemTime::now();
    let team = Team::start(runner(&place.store).recovery_elsewhere(quick()).on(move |_: Plain, _: JobContext| {
        let client = client.clone();
        async move {
            let request = http::Request::put("/files/a").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
            let response = client.oneshot(request).await?;
            JobError::of_answer(&response)
        }
    }));
    let rows = until_state(&place.store, State::Failed, 1).await;
    // The worker is free again at once, and nothing was sent a second time.
    let ran = rows[0].finished_at.unwrap().duration_since(rows[0].started_at.unwrap()).unwrap();
    assert!(ran < Duration::from_secs(1), "{ran:?}");
    seen.seen().sent(1);
    team.end().await;
    let not_before = rows[0].not_before.unwrap();
    assert!(not_before >= start + HOUR - Duration::from_secs(1), "{not_before:?}");

    // Another process, another worker: an hour less a minute later nothing runs, an hour later it does.
    let early = place.later(HOUR - Duration::from_secs(60));
    let runs = Count::default();
    let count = runs.clone();
    let done = move |_: Plain, _: JobContext| {
        count.one();
        async { Ok::<_, BoxError>(()) }
    };
    let team = Team::start(runner(&early).on(done.clone()));
    sleep(Duration::from_millis(300)).await;
    team.end().await;
    assert_eq!(runs.get(), 0);
    let team = Team::start(runner(&place.later(HOUR + Duration::from_secs(60))).on(done));
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
}

#[derive(Serialize, Deserialize)]
struct OfHub;

impl Job for OfHub {
    const TYPE: &'static str = "of-hub";
    const MAX_RUNTIME: Duration = Duration::from_secs(10);
    const PROVIDER: Option<&'static str> = Some("hub");

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

pub async fn c161_a_pause_is_a_stored_time(place: &Place) {
    let done = |_: OfHub, _: JobContext| async { Ok::<_, BoxError>(()) };
    add(&place.store, &OfHub).await;
    let scope = Scope::Provider("hub".to_owned());
    place.store.pause(&scope, Some(Duration::from_secs(600))).await.unwrap();
    // Whoever paused it is gone; another process asks.
    let before = place.later(Duration::from_secs(500));
    let team = Team::start(runner(&before).on(done));
    sleep(Duration::from_millis(200)).await;
    team.end().await;
    assert_eq!(states(&all(&place.store).await), [State::Pending]);
    let after = place.later(Duration::from_secs(601));
    let team = Team::start(runner(&after).on(done));
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
}

pub async fn c165_a_lease_is_watched_locally(place: &Place) {
    struct Cancelled(Count);
    impl Drop for Cancelled {
        fn drop(&mut self) {
            self.0.one();
        }
    }
    const LEASE: Duration = Duration::from_secs(2);
    let (flaky, cancelled) = (Flaky::over(&place.store), Count::default());
    // Twice it fails, and the lease holds.
    flaky.renewals(Mood::FailsTimes(2));
    add(&place.store, &plain("a")).await;
    let count = cancelled.clone();
    let runner = runner(&flaky).recovery_elsewhere(quick()).lease(LEASE);
    let team = Team::start(runner.on(move |_: Plain, _: JobContext| {
        let cancelled = Cancelled(count.clone());
        async move {
            let _cancelled = cancelled;
            std::future::pending::<()>().await;
            Ok::<_, BoxError>(())
        }
    }));
    until("the third renewal", || async { flaky.asked_to_renew() >= 3 }).await;
    sleep(LEASE).await;
    assert_eq!(cancelled.get(), 0, "it was renewed");
    // Then the database hangs.
    flaky.renewals(Mood::Hangs);
    let hangs = Instant::now();
    until("it is cancelled", || async { cancelled.get() == 1 }).await;
    assert!(hangs.elapsed() <= LEASE + Duration::from_millis(200), "{:?}", hangs.elapsed());
    team.end().await;
}
