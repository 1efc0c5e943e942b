//! Idempotency keys (J11).

use std::time::Duration;

use redial_jobs::{Job, JobContext, JobError, JobStore, State};
use serde::{Deserialize, Serialize};

use crate::{
    place::Place,
    team::{Blind, Count, Team, add, all, quick, runner, until_state},
};

/// Its workers were away for longer than keys are valid: no request was ever sent under this key, so there is nothing that
/// a first run could repeat ("past that age the job is verified, not repeated").
pub async fn a_job_that_never_ran_needs_no_key(place: &Place) {
    add(&place.store, &Blind).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    let runs = Count::default();
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: Blind, _: JobContext| {
        count.one();
        async { Ok::<_, JobError>(()) }
    }));
    tokio::time::sleep(Duration::from_millis(700)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(rows[0].state, State::Completed, "ran {} times: {:?}", runs.get(), rows[0]);
}

#[derive(Debug, Serialize, Deserialize)]
struct Soon;

impl Job for Soon {
    const TYPE: &'static str = "soon";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);
    const KEY_VALID_FOR: Option<Duration> = Some(Duration::from_millis(1500));

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

/// A person looked, and says: do it again. "`redial-jobs revive ID` begins anew."
pub async fn a_revived_job_runs_though_its_key_is_old(place: &Place) {
    let id = add(&place.store, &Soon).await;
    let runs = Count::default();
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: Soon, _: JobContext| {
        let run = count.one();
        async move { if run == 1 { Err(JobError::business("the account is closed")) } else { Ok(()) } }
    }));
    until_state(&place.store, State::Dead, 1).await;
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let successor = place.store.revive(id).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    team.end().await;
    assert_eq!(runs.get(), 2, "the revived job was given to its handler: {:?}", place.row(successor).await);
    let _ = quick();
}

pub async fn two_steps_never_share_a_key(place: &Place) {
    add(&place.store, &crate::team::plain("a")).await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = seen.clone();
    let team = Team::start(runner(&place.store).on(move |_: crate::team::Plain, cx: JobContext| {
        let step = format!("{}putBODY", String::from_utf8(3_u64.to_be_bytes().to_vec()).unwrap());
        keep.lock().unwrap().push((cx.key_for("put", b"BODY"), cx.key(&step)));
        async { Ok::<_, JobError>(()) }
    }));
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    let seen = seen.lock().unwrap();
    assert_ne!(seen[0].0, seen[0].1, "another step, another key");
}
