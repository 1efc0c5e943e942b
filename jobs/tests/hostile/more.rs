//! Work that outlives its run, and what is asked again.

use std::time::Duration;

use redial_jobs::{
    DeadReason, Held, Job, JobContext, JobError, JobStore, Jobs, Kind, NewJob, Recovery, Scope, SqlOptions, SqlStore,
    State,
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::{
    place::{Database, Place, claim_one, enqueue, job},
    sql,
    team::{Count, Plain, Short, Team, add, all, plain, quick, runner, until_state},
};

/// A handler that awaits work elsewhere (`spawn_blocking`) is cancelled; the work goes on until `cx.lost()` ends, as the
/// front page advises. It must end before another run begins.
async fn told_before_the_next_run<J: Job>(place: &Place, job: J, shutdown: bool) {
    add(&place.store, &job).await;
    let (working, overlaps, runs) = (Count::default(), Count::default(), Count::default());
    let busy = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let start = || {
        let (working, overlaps, runs, busy) = (working.clone(), overlaps.clone(), runs.clone(), busy.clone());
        runner(&place.store).grace(Duration::from_millis(200)).on(move |_: J, cx: JobContext| {
            let (working, overlaps, busy) = (working.clone(), overlaps.clone(), busy.clone());
            let run = runs.one();
            async move {
                if busy.load(std::sync::atomic::Ordering::SeqCst) {
                    overlaps.one();
                }
                if run > 1 {
                    return Ok::<_, JobError>(());
                }
                busy.store(true, std::sync::atomic::Ordering::SeqCst);
                working.one();
                let _ = tokio::spawn(async move {
                    cx.lost().await;
                    busy.store(false, std::sync::atomic::Ordering::SeqCst);
                })
                .await;
                Ok(())
            }
        })
    };
    let team = Team::start(start());
    let team = if shutdown {
        while working.get() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        team.end().await;
        Team::start(start())
    } else {
        team
    };
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    assert_eq!(
        (runs.get(), overlaps.get()),
        (2, 0),
        "a second run began while the first one's work was not told to end"
    );
}

pub async fn work_of_a_run_that_lasted_too_long_is_told(place: &Place) {
    told_before_the_next_run(place, Short, false).await;
}

pub async fn work_of_a_run_that_a_shutdown_cancelled_is_told(place: &Place) {
    told_before_the_next_run(place, plain("a"), true).await;
}

/// One row that nobody can read, and innocent jobs beside it: they must not become DEAD for it.
pub async fn a_row_that_cannot_be_read_kills_no_other(place: &Place) {
    sql(
        place,
        "INSERT INTO {jobs} (job_type, target, payload, state, origin, run_at, chain, chain_at, created_at) \
         VALUES ('plain', 'by hand', '{}', 'PENDING', 'ENQUEUED', 1, 'mine', 1, 1)",
    )
    .await;
    for name in ["a", "b", "c", "d"] {
        add(&place.store, &plain(name)).await;
    }
    let recovery = quick().sweep_every(Duration::from_millis(20));
    let team = Team::start(
        runner(&place.store)
            .lease(Duration::from_secs(1))
            .recovery(recovery)
            .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }),
    );
    sleep(Duration::from_secs(7)).await;
    team.end().await;
    let stats = place.store.stats().await.unwrap();
    assert!(stats.count(State::Dead) <= 1, "innocent and DEAD, not one of them ever run: {stats:?}");
}

/// Types that nobody handles are refused, but those of a paused provider wait.
pub async fn an_unknown_type_of_a_paused_provider_waits(place: &Place) {
    let other = NewJob::raw("other", "a", "{}").unwrap().provider("github").unwrap();
    enqueue(&place.store, other).await;
    place.store.pause(&Scope::Provider("github".to_owned()), None).await.unwrap();
    let team = Team::start(
        runner(&place.store).refuse_unknown_types().on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }),
    );
    sleep(Duration::from_millis(400)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(rows[0].state, State::Pending, "{:?}", rows[0].dead == Some(DeadReason::UnknownType));
}

/// "Asking again is safe": the first answer was lost.
pub async fn what_is_asked_again_is_answered_the_same(place: &Place) {
    place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    assert_eq!(place.store.snooze(lease, Duration::ZERO).await.unwrap(), Held::Yes);
    let again = place.store.snooze(lease, Duration::ZERO).await.unwrap();
    let lease = claim_one(&place.store).await.lease;
    assert_eq!(place.store.release(&[lease]).await.unwrap(), [lease]);
    let released = place.store.release(&[lease]).await.unwrap();
    assert_eq!((again, released), (Held::Yes, vec![lease]), "a false alarm: `somebody else has it`");
}

/// The listening connection is lost, and somebody else enqueues before it is back.
pub async fn a_lost_listener_is_made_up_for(place: &Place) {
    let Database::Postgres(pool) = &place.database else { return };
    let url = std::env::var("REDIAL_TEST_POSTGRES").unwrap();
    let other = SqlStore::postgres(&url, SqlOptions::new().schema(&place.name)).await.unwrap();
    let team = Team::start(
        runner(&place.store)
            .poll_every(Duration::from_secs(600))
            .on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }),
    );
    add(&other, &plain("first")).await;
    until_state(&place.store, State::Completed, 1).await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE $1";
    sqlx::query(sql).bind(format!("%{}%", place.name)).execute(pool).await.unwrap();
    add(&other, &plain("second")).await;
    let start = Instant::now();
    until_state(&place.store, State::Completed, 2).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    add(&other, &plain("third")).await;
    until_state(&place.store, State::Completed, 3).await;
    team.end().await;
}

/// Work for one night, imported and enqueued at once, is not done twice.
pub async fn an_import_beside_an_enqueue_leads_to_no_second_run(place: &Place) {
    let mut twice = 0;
    for turn in 0..100 {
        let target = format!("t{turn}");
        let failures = [redial_jobs::Imported {
            job: job(&target),
            failed_at: std::time::SystemTime::now() - Duration::from_secs(3600),
            class: redial_jobs::FailureClass::Exhausted,
            reason: "old".to_owned(),
        }];
        let options = redial_jobs::ImportOptions { spread: Duration::ZERO, ..Default::default() };
        let (_, _) = tokio::join!(enqueue(&place.store, job(&target)), place.store.import(&failures, &options));
        let claimed = crate::place::claim(&place.store, 9).await;
        for one in claimed {
            assert_eq!(place.store.complete(&[one.lease]).await.unwrap().len(), 1);
            crate::place::sweep(&place.store).await;
        }
        let later = place.later(Duration::from_secs(600));
        for one in crate::place::claim(&later, 9).await {
            assert_eq!(place.store.complete(&[one.lease]).await.unwrap().len(), 1);
        }
        let asked = redial_jobs::Filter { target: Some(target), ..Default::default() };
        let rows = place.store.list(&asked).await.unwrap();
        // A first run by the enqueue, and another one by recovery of what was imported beside it.
        twice += u32::from(rows.iter().filter(|row| row.state == State::Completed).count() > 1);
    }
    assert_eq!(twice, 0, "of 100 targets");
}

#[derive(Debug)]
struct Foreign;

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GET https://app:hunter2@hub.example/?token=s3cret failed")
    }
}

impl std::error::Error for Foreign {}

/// What is stored of it is redacted; what `{:?}` prints of it is not.
#[test]
fn a_job_errors_debug_hides_what_its_row_hides() {
    let error = JobError::transient("no answer").because(Foreign);
    let shown = format!("{error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[derive(Debug, Serialize, Deserialize)]
struct Paid;

impl Job for Paid {
    const TYPE: &'static str = "paid";
    const MAX_RUNTIME: Duration = Duration::from_secs(5);
    const KEY_VALID_FOR: Option<Duration> = Some(Duration::from_millis(1500));

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

/// A delay that is longer than the keys are valid: nothing was ever sent.
pub async fn a_delay_longer_than_keys_are_valid_is_no_death(place: &Place) {
    let new = NewJob::of(&Paid).unwrap().delay(Duration::from_millis(1800));
    enqueue(&place.store, new).await;
    let team = Team::start(runner(&place.store).on(|_: Paid, _: JobContext| async { Ok::<_, JobError>(()) }));
    sleep(Duration::from_millis(2600)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(rows[0].state, State::Completed, "{:?}", rows[0]);
    let _ = (Kind::of::<Paid>(), Jobs::new(place.store.clone()), Recovery::default());
}
