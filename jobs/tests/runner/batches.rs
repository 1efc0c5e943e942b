//! Batches that are on their way while the last one runs.

use std::time::Duration;

use redial_jobs::{BoxError, JobContext, JobStore, NewJob, State};

use crate::{
    place::Place,
    team::{Count, Plain, Team, add, all, plain, runner, states, until, until_state},
};

async fn fill(place: &Place, count: usize) {
    let jobs: Vec<_> = (0..count).map(|target| NewJob::of(&plain(&target.to_string())).unwrap()).collect();
    place.store.enqueue(&jobs).await.unwrap();
}

/// The last batch is not full, and after it somebody waits for the next job: nobody looks again for an hour.
pub async fn after_the_last_batch_a_runner_waits(place: &Place) {
    fill(place, 41).await;
    let runs = Count::default();
    let count = runs.clone();
    let runner = runner(&place.store).poll_every(Duration::from_secs(3600)).concurrency(4).batch(4);
    let team = Team::start(runner.on(move |_: Plain, _: JobContext| {
        count.one();
        async { Ok::<_, BoxError>(()) }
    }));
    until_state(&place.store, State::Completed, 41).await;
    add(&place.store, &plain("one more")).await;
    until_state(&place.store, State::Completed, 42).await;
    team.end().await;
    assert_eq!(runs.get(), 42);
}

pub async fn batches_on_their_way_are_given_back(place: &Place) {
    fill(place, 60).await;
    let runs = Count::default();
    let count = runs.clone();
    let team = Team::start(runner(&place.store).concurrency(2).batch(4).on(move |_: Plain, cx: JobContext| {
        let waits = count.one() > 20;
        async move {
            if waits {
                cx.stopping().await;
            }
            Ok::<_, BoxError>(())
        }
    }));
    until("two run, and batches wait", || async { runs.get() == 22 }).await;
    team.end().await;
    let states = states(&all(&place.store).await);
    let count = |wanted: State| states.iter().filter(|state| **state == wanted).count();
    assert_eq!((count(State::Completed), count(State::Pending)), (22, 38), "{states:?}");
    assert_eq!(runs.get(), 22);
}
