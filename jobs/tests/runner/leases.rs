//! Who has a job, and what becomes of one that is lost.

use std::time::Duration;

use redial_jobs::{BoxError, FailureClass, Job, JobContext, JobStore, Recovery, State, Sweeper};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::{
    flaky::{Flaky, Mood},
    place::Place,
    team::{Count, Plain, Team, add, all, plain, quick, runner, states, until, until_state},
};

const LEASE: Duration = Duration::from_secs(1);

pub async fn a_long_job_keeps_its_lease(place: &Place) {
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).lease(LEASE).on(move |_: Plain, cx: JobContext| {
        count.one();
        async move {
            tokio::select! {
                () = cx.lost() => return Err("lost"),
                () = sleep(Duration::from_millis(2500)) => {}
            }
            Ok(())
        }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    // Sweeps every 20 ms found no ghost.
    assert_eq!((rows.len(), runs.get()), (1, 1));
    team.end().await;
}

pub async fn a_blocking_handler_keeps_its_lease(place: &Place) {
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).lease(LEASE).on(move |_: Plain, _: JobContext| {
        count.one();
        async {
            std::thread::sleep(Duration::from_millis(2500));
            Ok::<_, BoxError>(())
        }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!((rows.len(), runs.get()), (1, 1));
    team.end().await;
}

/// A worker is cut off from its database for longer than its lease. Its job is somebody else's by then.
pub async fn a_lost_lease_is_told_and_dropped(place: &Place) {
    let (flaky, told, ended) = (Flaky::over(&place.store), Count::default(), Count::default());
    add(&place.store, &plain("a")).await;
    let (tell, end) = (told.clone(), ended.clone());
    let cut_off =
        Team::start(runner(&flaky).recovery_elsewhere(quick()).lease(LEASE).on(move |_: Plain, cx: JobContext| {
            let (tell, end) = (tell.clone(), end.clone());
            tokio::spawn(async move {
                cx.lost().await;
                tell.one();
            });
            async move {
                sleep(Duration::from_secs(10)).await;
                end.one();
                Ok::<_, BoxError>(())
            }
        }));
    until_state(&place.store, State::Processing, 1).await;
    flaky.renewals(Mood::Hangs);
    flaky.claims(Mood::Fails);
    // The other one takes over what is a ghost by then.
    let other = Team::start(runner(&place.store).on(|_: Plain, cx: JobContext| async move {
        assert!(cx.unknown_before());
        Ok::<_, BoxError>(())
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Completed]);
    assert_eq!((rows[0].failure, rows[0].outcome_unknown), (Some(FailureClass::Ghost), true));
    until("it is told", || async { told.get() == 1 }).await;
    other.end().await;
    cut_off.end().await;
    assert_eq!(ended.get(), 0, "it was cancelled");
    assert_eq!(all(&place.store).await.len(), 2);
}

#[derive(Serialize, Deserialize)]
struct Hung;

impl Job for Hung {
    const TYPE: &'static str = "hung";
    const MAX_RUNTIME: Duration = Duration::from_millis(100);

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

pub async fn a_hung_handler_is_a_ghost_although_its_process_lives(place: &Place) {
    add(&place.store, &Hung).await;
    let start = Instant::now();
    let team = Team::start(runner(&place.store).recovery_elsewhere(Recovery::default()).lease(LEASE).on(
        |_: Hung, _: JobContext| async {
            std::thread::sleep(Duration::from_secs(4));
            Ok::<_, BoxError>(())
        },
    ));
    until_state(&place.store, State::Processing, 1).await;
    until("a ghost", || async { place.store.stats().await.unwrap().ghosts == 1 }).await;
    assert!(start.elapsed() < Duration::from_secs(3), "its lease was not renewed");
    let swept = Sweeper::new(place.store.clone(), quick()).unwrap().run_once().await.unwrap();
    assert_eq!((swept.ghosts, swept.recovered), (1, 1));
    // What it says in the end is no longer asked for.
    sleep(Duration::from_secs(4).saturating_sub(start.elapsed()) + Duration::from_millis(100)).await;
    assert_eq!(all(&place.store).await[0].state, State::Failed);
    team.end().await;
}
