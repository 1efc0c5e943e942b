//! What becomes of jobs when the runner is told to end.

use std::{sync::Arc, time::Duration};

use redial_jobs::{BoxError, Claim, JobContext, JobStore, Kind, State};
use tokio::{sync::Notify, time::sleep};

use crate::{
    flaky::{Flaky, Mood},
    place::Place,
    team::{Count, Found, Look, Looked, Plain, Team, add, all, plain, quick, runner, states, until, until_state},
};

pub async fn a_running_job_may_end(place: &Place) {
    let stopping = Count::default();
    add(&place.store, &plain("a")).await;
    let count = stopping.clone();
    let mut team = Team::start(runner(&place.store).on(move |_: Plain, cx: JobContext| {
        let count = count.clone();
        async move {
            cx.stopping().await;
            count.one();
            sleep(Duration::from_millis(100)).await;
            Ok::<_, BoxError>(())
        }
    }));
    until_state(&place.store, State::Processing, 1).await;
    assert_eq!(stopping.get(), 0);
    team.shut_down();
    team.end().await;
    assert_eq!((states(&all(&place.store).await), stopping.get()), (vec![State::Completed], 1));
}

pub async fn what_does_not_end_is_given_back_uncounted(place: &Place) {
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).grace(Duration::from_millis(50)).on(move |_: Plain, _: JobContext| {
        count.one();
        async {
            std::future::pending::<()>().await;
            Ok::<_, BoxError>(())
        }
    }));
    until("it runs", || async { runs.get() == 1 }).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!((rows.len(), rows[0].state, rows[0].attempt, rows[0].failure), (1, State::Pending, 1, None));
}

pub async fn what_was_not_begun_is_given_back(place: &Place) {
    for target in 0..5 {
        add(&place.store, &plain(&target.to_string())).await;
    }
    let runs = Count::default();
    let count = runs.clone();
    let team = Team::start(runner(&place.store).concurrency(1).batch(5).on(move |_: Plain, cx: JobContext| {
        count.one();
        async move {
            cx.stopping().await;
            Ok::<_, BoxError>(())
        }
    }));
    let rows = until_state(&place.store, State::Processing, 5).await;
    assert_eq!(rows.len(), 5);
    until("one runs", || async { runs.get() == 1 }).await;
    team.end().await;
    let states = states(&all(&place.store).await);
    assert_eq!(states, [State::Completed, State::Pending, State::Pending, State::Pending, State::Pending]);
    assert_eq!(runs.get(), 1);
}

/// Another worker may begin it, while this one waits for what runs.
pub async fn what_was_not_begun_does_not_wait_for_what_runs(place: &Place) {
    for target in 0..5 {
        add(&place.store, &plain(&target.to_string())).await;
    }
    let (runs, ends) = (Count::default(), Arc::new(Notify::new()));
    let (count, end) = (runs.clone(), ends.clone());
    let mut team = Team::start(runner(&place.store).concurrency(1).batch(5).on(move |_: Plain, _: JobContext| {
        count.one();
        let end = end.clone();
        async move {
            end.notified().await;
            Ok::<_, BoxError>(())
        }
    }));
    until_state(&place.store, State::Processing, 5).await;
    until("one runs", || async { runs.get() == 1 }).await;
    team.shut_down();
    let rows = until_state(&place.store, State::Pending, 4).await;
    assert_eq!(rows[0].state, State::Processing);
    assert!(!team.has_ended());
    ends.notify_one();
    team.end().await;
    assert_eq!(all(&place.store).await[0].state, State::Completed);
    assert_eq!(runs.get(), 1);
}

/// What a sweep has given up is told of, although the runner was told to end before it heard what the database did.
pub async fn a_sweep_is_let_end(place: &Place) {
    let store = Flaky::over(&place.store);
    store.sweeps(Mood::Late(Duration::from_millis(300)));
    add(&place.store, &plain("a")).await;
    let kinds = [Kind::of::<Plain>()];
    let claim = Claim { kinds: &kinds, worker: "gone", lease: Duration::from_millis(1), max: 1 };
    assert_eq!(place.store.claim(&claim).await.unwrap().len(), 1);
    let told = Count::default();
    let count = told.clone();
    let runner = runner(&store)
        .recovery(quick().ghosts(1))
        .on_dead(move |_| {
            count.one();
        })
        .on(|_: Plain, _: JobContext| async { Ok::<_, BoxError>(()) });
    let team = Team::start(runner);
    until_state(&place.store, State::Dead, 1).await;
    team.end().await;
    assert_eq!(told.get(), 1);
}

pub async fn a_cancelled_job_is_verified_before_it_runs_again(place: &Place) {
    let (runs, look) = (Count::default(), Look::finds([Found::Done]));
    add(&place.store, &Looked).await;
    let team = |count: Count| {
        let runner = runner(&place.store).grace(Duration::ZERO).share(look.clone());
        Team::start(runner.on(move |_: Looked, _: JobContext| {
            count.one();
            async {
                std::future::pending::<()>().await;
                Ok::<_, BoxError>(())
            }
        }))
    };
    let first = team(runs.clone());
    until("it runs", || async { runs.get() == 1 }).await;
    first.end().await;
    assert_eq!(states(&all(&place.store).await), [State::Pending]);
    let second = team(runs.clone());
    until_state(&place.store, State::Completed, 1).await;
    second.end().await;
    assert_eq!((runs.get(), look.looks()), (1, 1));
}
