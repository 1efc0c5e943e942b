//! What may have been done is looked at before it is repeated, and before it is given up (J13).

use std::time::Duration;

use redial_jobs::{BoxError, DeadReason, Failure, FailureClass, Job, JobContext, JobError, JobStore, State};

use crate::{
    place::Place,
    team::{Blind, Count, Forgotten, Found, Look, Looked, Team, add, quick, runner, states, until_state},
};

/// The request was sent, and the answer is lost.
fn lost_answer() -> JobError {
    JobError::failed(Failure::new(FailureClass::Exhausted, "no answer").unknown(true))
}

pub async fn a_lost_answer_is_verified_before_the_repeat(place: &Place) {
    let (runs, look) = (Count::default(), Look::finds([Found::Done]));
    add(&place.store, &Looked).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).share(look.clone()).on(move |_: Looked, _: JobContext| {
        count.one();
        async { Err(lost_answer()) }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Completed]);
    assert!(rows[0].outcome_unknown);
    assert_eq!((runs.get(), look.looks()), (1, 1), "done before: not run again");
    team.end().await;
}

pub async fn not_done_is_done_now(place: &Place) {
    let (runs, look) = (Count::default(), Look::finds([Found::NotDone]));
    add(&place.store, &Looked).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).share(look.clone()).on(move |_: Looked, cx: JobContext| {
        let run = count.one();
        assert_eq!(cx.unknown_before(), run == 2);
        async move { if run == 1 { Err(lost_answer()) } else { Ok(()) } }
    }));
    until_state(&place.store, State::Completed, 1).await;
    assert_eq!((runs.get(), look.looks()), (2, 1));
    team.end().await;
}

/// The first PUT worked and its answer was lost. Nobody could look before the repeat, which is answered 409.
pub async fn a_409_after_a_lost_answer_is_success(place: &Place) {
    let (runs, look) = (Count::default(), Look::finds([Found::Nothing, Found::Done]));
    add(&place.store, &Looked).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).share(look.clone()).on(move |_: Looked, _: JobContext| {
        let run = count.one();
        async move { Err(if run == 1 { lost_answer() } else { JobError::business("answered 409 Conflict") }) }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Completed]);
    assert_eq!((runs.get(), look.looks()), (2, 2));
    team.end().await;
}

pub async fn doubt_outlives_a_run_that_could_not_verify(place: &Place) {
    let (runs, look) = (Count::default(), Look::finds([Found::Error, Found::Done]));
    add(&place.store, &Looked).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).share(look.clone()).on(move |_: Looked, _: JobContext| {
        count.one();
        async { Err(lost_answer()) }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Completed]);
    assert_eq!((rows[1].failure, rows[1].outcome_unknown), (Some(FailureClass::Unverified), true));
    assert_eq!(rows[1].error.as_deref(), Some("could not be verified: the provider is down"));
    assert_eq!((runs.get(), look.looks()), (1, 2), "not repeated while nobody knows");
    team.end().await;
}

pub async fn a_business_failure_without_doubt_is_not_verified(place: &Place) {
    let look = Look::finds([Found::Done]);
    add(&place.store, &Looked).await;
    let team = Team::start(
        runner(&place.store)
            .share(look.clone())
            .on(|_: Looked, _: JobContext| async { Err(JobError::business("answered 409 Conflict")) }),
    );
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!((rows.len(), rows[0].dead, look.looks()), (1, Some(DeadReason::Business), 0));
    team.end().await;
}

async fn old_key<J: Job>(place: &Place, job: &J, look: &Look) -> (u32, Vec<redial_jobs::JobRow>, State) {
    let runs = Count::default();
    add(&place.store, job).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).share(look.clone()).on(move |_: J, _: JobContext| {
        count.one();
        async {
            // Afterwards the key that it may have sent is older than its provider honours.
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err::<(), BoxError>("no answer".into())
        }
    }));
    crate::team::until("an end", || async {
        let stats = place.store.stats().await.unwrap();
        stats.count(State::Completed) + stats.count(State::Dead) == 1
    })
    .await;
    team.end().await;
    let rows = crate::team::all(&place.store).await;
    let state = rows[1].state;
    (runs.get(), rows, state)
}

pub async fn an_old_key_is_verified_not_repeated(place: &Place) {
    let look = Look::finds([Found::Done]);
    let (runs, rows, state) = old_key(place, &Forgotten, &look).await;
    assert_eq!((runs, rows.len(), state, look.looks()), (1, 2, State::Completed, 1));
}

pub async fn an_old_key_that_nothing_verifies_is_dead(place: &Place) {
    let (runs, rows, state) = old_key(place, &Blind, &Look::finds([Found::Done])).await;
    assert_eq!((runs, rows.len(), state), (1, 2, State::Dead));
    assert!(rows[1].error.as_deref().unwrap().contains("no longer honours"), "{:?}", rows[1].error);
}

pub async fn the_last_failure_is_verified(place: &Place) {
    // Twice it was not done before the run; after the last run it was.
    let look = Look::finds([Found::NotDone, Found::NotDone, Found::Done]);
    add(&place.store, &Looked).await;
    let team = Team::start(
        runner(&place.store)
            .recovery(quick().failures(3))
            .share(look.clone())
            .on(|_: Looked, _: JobContext| async { Err(lost_answer()) }),
    );
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Completed]);
    assert_eq!(look.looks(), 3);
    team.end().await;
}

/// The provider's contract says that a 409 after a lost answer may mean success: it is looked at within the same run.
pub async fn a_call_that_asks_for_a_look_gets_it_at_once(place: &Place) {
    for (found, state) in [(Found::Done, State::Completed), (Found::NotDone, State::Failed)] {
        let look = Look::finds([found]);
        add(&place.store, &Looked).await;
        let runner = runner(&place.store).recovery_elsewhere(quick()).share(look.clone());
        let team = Team::start(runner.on(|_: Looked, _: JobContext| async {
            let report = redial::testing::ReportBuilder::new()
                .failed(redial::FaultKind::Timeout)
                .answered(409)
                .stop(redial::StopReason::Verify)
                .build();
            let mut response = http::Response::new(());
            *response.status_mut() = http::StatusCode::CONFLICT;
            response.extensions_mut().insert(report);
            JobError::of_answer(&response)
        }));
        let rows = until_state(&place.store, state, 1).await;
        assert_eq!((rows.last().unwrap().state, look.looks()), (state, 1));
        team.end().await;
    }
}
