//! A database that is away for a while.

use std::{sync::Arc, time::Duration};

use redial_jobs::{BoxError, JobContext, State};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::{
    flaky::{Flaky, Mood},
    place::Place,
    team::{Count, Plain, Team, add, all, plain, quick, runner, states, until, until_state},
};

pub async fn a_hiccup_does_not_end_the_worker(place: &Place) {
    let flaky = Flaky::over(&place.store);
    flaky.claims(Mood::Fails);
    add(&place.store, &plain("a")).await;
    let team = Team::start(runner(&flaky).on(|_: Plain, _: JobContext| async { Ok::<_, BoxError>(()) }));
    until("some tries", || async { flaky.asked_to_claim() >= 4 }).await;
    assert!(!team.has_ended());
    flaky.claims(Mood::Answers);
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
}

pub async fn a_renewal_that_fails_twice_is_no_loss(place: &Place) {
    let flaky = Flaky::over(&place.store);
    flaky.renewals(Mood::FailsTimes(2));
    add(&place.store, &plain("a")).await;
    let team = Team::start(runner(&flaky).lease(Duration::from_secs(1)).on(|_: Plain, cx: JobContext| async move {
        sleep(Duration::from_millis(1500)).await;
        if cx.is_lost() { Err("lost") } else { Ok(()) }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(rows.len(), 1);
    assert!(flaky.asked_to_renew() >= 3, "{}", flaky.asked_to_renew());
    team.end().await;
}

/// Neither the task that renews nor the one that writes ends with it.
pub async fn a_store_that_panics_is_asked_again(place: &Place) {
    let (flaky, renewed) = (Flaky::over(&place.store), Arc::new(Notify::new()));
    flaky.renewals(Mood::PanicsOnce);
    flaky.writes(Mood::PanicsOnce);
    add(&place.store, &plain("a")).await;
    let may_end = renewed.clone();
    // It renews every third of it: after the panic another third is left for a machine that is busy.
    let team = Team::start(runner(&flaky).lease(Duration::from_secs(9)).on(move |_: Plain, cx: JobContext| {
        let may_end = may_end.clone();
        async move {
            may_end.notified().await;
            if cx.is_lost() { Err("lost") } else { Ok(()) }
        }
    }));
    let claimed = until_state(&place.store, State::Processing, 1).await[0].lease_until;
    until("a renewal", || async { all(&place.store).await[0].lease_until > claimed }).await;
    assert!(flaky.asked_to_renew() >= 2, "{}", flaky.asked_to_renew());
    renewed.notify_one();
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(rows.len(), 1);
    assert!(flaky.asked_to_write() >= 2, "{}", flaky.asked_to_write());
    team.end().await;
}

/// The worker itself ends it, no later than its lease: nobody else has to ask.
pub async fn without_renewal_it_is_cancelled_in_time(place: &Place) {
    struct Ended(Count);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.one();
        }
    }
    let (flaky, cancelled) = (Flaky::over(&place.store), Count::default());
    flaky.renewals(Mood::Hangs);
    add(&place.store, &plain("a")).await;
    let count = cancelled.clone();
    let runner = runner(&flaky).recovery_elsewhere(quick()).lease(Duration::from_secs(2));
    let team = Team::start(runner.on(move |_: Plain, _: JobContext| {
        let ended = Ended(count.clone());
        async move {
            let _ended = ended;
            std::future::pending::<()>().await;
            Ok::<_, BoxError>(())
        }
    }));
    until_state(&place.store, State::Processing, 1).await;
    let claimed = Instant::now();
    until("its end", || async { cancelled.get() == 1 }).await;
    let took = claimed.elapsed();
    assert!((1500..2100).contains(&took.as_millis()), "{took:?}");
    team.end().await;
    assert_eq!(states(&all(&place.store).await), [State::Processing], "a ghost, which a sweep will find");
}

pub async fn what_is_done_is_written_when_the_database_is_back(place: &Place) {
    let (flaky, runs) = (Flaky::over(&place.store), Count::default());
    flaky.writes(Mood::Fails);
    add(&place.store, &plain("done")).await;
    add(&place.store, &plain("failed")).await;
    let count = runs.clone();
    let runner = runner(&flaky).recovery_elsewhere(quick()).on(move |job: Plain, _: JobContext| {
        count.one();
        async move { if job.name == "done" { Ok(()) } else { Err("no luck") } }
    });
    let team = Team::start(runner);
    until("some tries", || async { flaky.asked_to_write() >= 6 }).await;
    assert_eq!(states(&all(&place.store).await), [State::Processing, State::Processing]);
    flaky.writes(Mood::Answers);
    until_state(&place.store, State::Failed, 1).await;
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Completed, State::Failed]);
    assert_eq!(runs.get(), 2);
    team.end().await;
}
