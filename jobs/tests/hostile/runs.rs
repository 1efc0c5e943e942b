//! What handlers and their helpers do wrong.

use std::{fmt, time::Duration};

use redial_jobs::{
    BoxError, DeadReason, Failure, FailureClass, Job, JobContext, JobError, JobStore, Jobs, Runner, State, Verified,
    VerifyContext,
};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::{
    place::Place,
    team::{Count, Found, Look, Looked, Plain, Team, add, all, plain, quick, runner, until_state},
};

/// Its first looks go wrong; later ones say that it is done.
#[derive(Debug, Serialize, Deserialize)]
struct Tough {
    hangs: bool,
}

impl Job for Tough {
    const TYPE: &'static str = "tough";
    const MAX_RUNTIME: Duration = Duration::from_secs(20);

    fn target(&self) -> String {
        "the only one".to_owned()
    }

    async fn verify(&self, cx: &VerifyContext) -> Result<Verified, BoxError> {
        let looks = cx.get::<Count>().unwrap();
        if looks.one() == 1 {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            panic!("the client of the look is broken");
        }
        Ok(Verified::Done)
    }
}

/// "409, because my first PUT had worked", and the look hangs or panics: nobody knows, so nobody may close it (J13 before
/// J9). "An error says that it could not be found out: the job fails, and recovery asks again."
async fn looked_in_vain(place: &Place, hangs: bool) {
    add(&place.store, &Tough { hangs }).await;
    let looks = Count::default();
    let team = Team::start(runner(&place.store).lease(Duration::from_secs(1)).share(looks.clone()).on(
        |_: Tough, _: JobContext| async {
            Err::<(), _>(JobError::failed(Failure::new(FailureClass::Business, "answered 409").unknown(true)))
        },
    ));
    sleep(Duration::from_secs(3)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(rows.last().unwrap().state, State::Completed, "{} looks: {rows:#?}", looks.get());
}

pub async fn a_verify_that_hangs_is_asked_again(place: &Place) {
    looked_in_vain(place, true).await;
}

pub async fn a_verify_that_panics_is_asked_again(place: &Place) {
    looked_in_vain(place, false).await;
}

/// A revived target counts anew, so one failed look is not its end.
pub async fn a_verify_that_errs_after_a_revival_is_asked_again(place: &Place) {
    let look = Look::finds([Found::Error, Found::Done]);
    let first = add(&place.store, &Looked).await;
    let runs = Count::default();
    let count = runs.clone();
    let recovery = quick().failures(2);
    let team =
        Team::start(runner(&place.store).recovery(recovery).share(look.clone()).on(move |_: Looked, _: JobContext| {
            let run = count.one();
            async move {
                Err::<(), _>(match run {
                    1 => JobError::business("a setting was wrong"),
                    _ => JobError::failed(Failure::new(FailureClass::Business, "answered 409").unknown(true)),
                })
            }
        }));
    until_state(&place.store, State::Dead, 1).await;
    place.store.revive(first).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!(rows.last().unwrap().state, State::Completed, "{} looks: {rows:#?}", look.looks());
}

#[derive(Debug)]
struct Unshowable;

impl fmt::Display for Unshowable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

impl std::error::Error for Unshowable {}

/// The other job's runner must live on: "neither a job nor the database ends it".
async fn lives_on<S: JobStore>(place: &Place, runner: Runner<S>) {
    add(&place.store, &plain("bad")).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(runner.run_until(async { stopped.await.unwrap_or_default() }));
    sleep(Duration::from_millis(600)).await;
    add(&place.store, &plain("good")).await;
    let mut done = false;
    for _ in 0..100 {
        sleep(Duration::from_millis(20)).await;
        let rows = all(&place.store).await;
        done = rows.iter().any(|row| row.target == "good" && row.state == State::Completed);
        if done {
            break;
        }
    }
    let _ = stop.send(());
    let ended = timeout(Duration::from_secs(20), running).await;
    let rows = all(&place.store).await;
    assert!(done, "the runner ended with {ended:?}: {rows:#?}");
    let bad = rows.iter().find(|row| row.target == "bad").unwrap();
    assert!(!bad.state.is_active(), "{bad:?}");
}

pub async fn an_error_that_cannot_be_shown_is_a_failure(place: &Place) {
    lives_on(
        place,
        runner(&place.store)
            .on(|job: Plain, _: JobContext| async move { if job.name == "bad" { Err(Unshowable) } else { Ok(()) } }),
    )
    .await;
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a panic's own payload panics");
        }
    }
}

pub async fn a_panic_whose_text_panics_is_a_failure(place: &Place) {
    lives_on(
        place,
        runner(&place.store).on(|job: Plain, _: JobContext| async move {
            if job.name == "bad" {
                std::panic::panic_any(Bomb);
            }
            Ok::<_, JobError>(())
        }),
    )
    .await;
}

pub async fn a_hook_whose_panic_panics_ends_nothing(place: &Place) {
    lives_on(
        place,
        runner(&place.store).on_dead(|_| std::panic::panic_any(Bomb)).on(|job: Plain, _: JobContext| async move {
            if job.name == "bad" { Err(JobError::business("no")) } else { Ok(()) }
        }),
    )
    .await;
}

#[derive(Debug, Serialize, Deserialize)]
struct Dropped(String);

impl Drop for Dropped {
    fn drop(&mut self) {
        if self.0 == "bad" && !std::thread::panicking() && DROPS.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
            panic!("dropped");
        }
    }
}

static DROPS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

impl Job for Dropped {
    const TYPE: &'static str = "dropped";
    const MAX_RUNTIME: Duration = Duration::from_millis(200);

    fn target(&self) -> String {
        self.0.clone()
    }
}

pub async fn a_payload_that_panics_when_dropped_ends_nothing(place: &Place) {
    let bad = Dropped("bad".to_owned());
    add(&place.store, &bad).await;
    std::mem::forget(bad);
    let team = Team::start(runner(&place.store).on(|job: Dropped, _: JobContext| async move {
        if job.0 == "bad" {
            sleep(Duration::from_secs(9)).await;
        }
        Ok::<_, JobError>(())
    }));
    sleep(Duration::from_millis(600)).await;
    add(&place.store, &Dropped("good".to_owned())).await;
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
}

/// The nightly run must come again the next night, or somebody must be told that it never will.
pub async fn a_batch_that_panics_once_is_made_again(place: &Place) {
    let makes = Count::default();
    let count = makes.clone();
    let team = Team::start(runner(&place.store).on(|_: Plain, _: JobContext| async { Ok::<_, JobError>(()) }).every(
        "nightly",
        Duration::from_millis(100),
        move || {
            let make = count.one();
            async move {
                assert!(make > 1, "the list of users was empty, and somebody unwrapped it");
                Ok::<_, BoxError>(vec![plain(&format!("user {make}"))])
            }
        },
    ));
    sleep(Duration::from_secs(2)).await;
    team.end().await;
    let made = makes.get();
    assert!(made > 1, "the batch was made {made} time(s) in 2 s, at an interval of 100 ms, and nobody was told");
}

/// S9: no immediate repeat; the issue holds `RetryAfter` "spins 2500 times in 4 s" against others.
pub async fn putting_off_for_no_time_has_a_floor(place: &Place) {
    add(&place.store, &plain("a")).await;
    let runs = Count::default();
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: Plain, _: JobContext| {
        count.one();
        async { Err::<(), _>(JobError::snooze(Duration::ZERO)) }
    }));
    sleep(Duration::from_secs(2)).await;
    team.end().await;
    assert!(runs.get() < 50, "ran {} times in 2 s", runs.get());
}

#[derive(Debug, Serialize, Deserialize)]
struct Endless;

impl Job for Endless {
    const TYPE: &'static str = "endless";
    const MAX_RUNTIME: Duration = Duration::MAX;
    const KEY_VALID_FOR: Option<Duration> = Some(Duration::MAX);
    const UNIQUE: redial_jobs::Unique = redial_jobs::Unique::Within(Duration::MAX);

    fn target(&self) -> String {
        "the only one".to_owned()
    }
}

pub async fn a_run_without_end_may_be_stated(place: &Place) {
    add(&place.store, &Endless).await;
    let team = Team::start(
        runner(&place.store).grace(Duration::MAX).on(|_: Endless, _: JobContext| async { Ok::<_, JobError>(()) }),
    );
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    assert!(!Jobs::new(place.store.clone()).enqueue_if_absent(&Endless).await.unwrap().is_new());
}

/// "As if they had never been claimed."
pub async fn a_batch_claimed_and_given_back_unbegun_leaves_no_doubt(place: &Place) {
    let look = Look::finds([Found::NotDone]);
    add(&place.store, &plain("first")).await;
    add(&place.store, &Looked).await;
    let kinds = [redial_jobs::Kind::of::<Looked>()];
    let claim = redial_jobs::Claim { kinds: &kinds, worker: "w", lease: Duration::from_secs(60), max: 1 };
    let claimed = place.store.claim(&claim).await.unwrap();
    place.store.release(&[claimed[0].lease]).await.unwrap();
    let team = Team::start(runner(&place.store).share(look.clone()).on(|_: Looked, cx: JobContext| async move {
        if cx.unknown_before() { Err(JobError::business("in doubt")) } else { Ok(()) }
    }));
    sleep(Duration::from_millis(500)).await;
    team.end().await;
    let rows = all(&place.store).await;
    assert_eq!((rows[1].state, look.looks()), (State::Completed, 0), "{:?} {:?}", rows[1], DeadReason::Business);
}
