//! What is done every so often.

use std::time::Duration;

use redial_jobs::{BoxError, JobContext, JobStore, Retention, State};
use tokio::time::sleep;

use crate::{
    place::Place,
    team::{Count, Plain, Team, add, all, plain, runner, until, until_state},
};

const NIGHTLY: Duration = Duration::from_secs(3600);

pub async fn a_batch_is_enqueued_by_one_of_many(place: &Place) {
    let made = Count::default();
    let one = || {
        let count = made.clone();
        let runner = runner(&place.store).on(|_: Plain, _: JobContext| async { Ok::<_, BoxError>(()) });
        Team::start(runner.every("nightly", NIGHTLY, move || {
            count.one();
            async { Ok::<_, BoxError>(vec![plain("a"), plain("b"), plain("a")]) }
        }))
    };
    let teams = [one(), one(), one()];
    until_state(&place.store, State::Completed, 2).await;
    sleep(Duration::from_millis(200)).await;
    for team in teams {
        team.end().await;
    }
    assert!(made.get() >= 3, "each of them asked");
    assert_eq!(all(&place.store).await.len(), 2);
}

pub async fn a_batch_that_fails_is_made_again(place: &Place) {
    let tries = Count::default();
    let count = tries.clone();
    let runner = runner(&place.store).on(|_: Plain, _: JobContext| async { Ok::<_, BoxError>(()) });
    let team = Team::start(runner.every("nightly", NIGHTLY, move || {
        let again = count.one() < 3;
        async move { if again { Err("no list of users") } else { Ok(vec![plain("a")]) } }
    }));
    until_state(&place.store, State::Completed, 1).await;
    assert_eq!(tries.get(), 3);
    team.end().await;
}

pub async fn old_jobs_are_deleted(place: &Place) {
    add(&place.store, &plain("a")).await;
    let done = |_: Plain, _: JobContext| async { Ok::<_, BoxError>(()) };
    let team = Team::start(runner(&place.store).on(done));
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    let retention = Retention { completed: Some(Duration::ZERO), ..Retention::default() };
    let team = Team::start(runner(&place.store).on(done).retention(retention));
    until("none is left", || async { all(&place.store).await.is_empty() }).await;
    team.end().await;
    assert_eq!(place.store.stats().await.unwrap().types.len(), 0);
}
