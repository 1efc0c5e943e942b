//! How runs end, and what their rows say.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use redial_jobs::{
    BoxError, DeadReason, FailureClass, JobContext, JobError, JobStore, Jobs, NewJob, Recovery, Runner, Scope, State,
};
use tokio::time::sleep;

use crate::{
    place::Place,
    team::{Count, Short, Team, add, all, plain, quick, runner, states, until, until_state},
};

pub async fn a_job_is_done(place: &Place) {
    add(&place.store, &plain("a")).await;
    let team = Team::start(runner(&place.store).on(|job: crate::team::Plain, cx: JobContext| async move {
        assert_eq!((job.name.as_str(), cx.target(), cx.attempt()), ("a", "a", 1));
        assert!(cx.deadline().remaining() > Duration::from_secs(15));
        Ok::<_, BoxError>(())
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!((rows.len(), rows[0].token), (1, 1));
    team.end().await;
}

pub async fn an_error_is_a_failure_that_recovery_repairs(place: &Place) {
    let (runs, counted) = (Count::default(), Count::default());
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: crate::team::Plain, cx: JobContext| {
        let run = count.one();
        assert_eq!(cx.attempt(), run);
        async move { if run < 3 { Err("no luck with https://x.example/?token=s3cret") } else { Ok(()) } }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Completed]);
    for failed in &rows[..2] {
        assert_eq!(failed.failure, Some(FailureClass::Unclassified));
        // Nobody said how far it got.
        assert!(failed.outcome_unknown);
        assert_eq!(failed.error.as_deref(), Some("no luck with https://x.example/?…"));
    }
    assert_eq!((runs.get(), counted.get()), (3, 0));
    team.end().await;
}

pub async fn a_panic_is_a_failure(place: &Place) {
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: crate::team::Plain, _: JobContext| {
        let run = count.one();
        // In the handler itself the first time, in its future the second.
        assert!(run != 1, "at once");
        async move {
            assert!(run != 2, "later, at https://ada:pw@x.example");
            Ok::<_, BoxError>(())
        }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Completed]);
    assert_eq!(rows[0].error.as_deref(), Some("panicked: at once"));
    assert_eq!(rows[1].error.as_deref(), Some("panicked: later, at https://x.example"));
    assert!(rows[..2].iter().all(|row| row.failure == Some(FailureClass::Panic) && row.outcome_unknown));
    team.end().await;
}

pub async fn a_run_that_lasts_too_long_is_cancelled(place: &Place) {
    struct Ended(Count);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.one();
        }
    }
    let cancelled = Count::default();
    add(&place.store, &Short).await;
    let count = cancelled.clone();
    let once = Recovery::default();
    let team = Team::start(runner(&place.store).recovery(once).on(move |_: Short, _: JobContext| {
        let ended = Ended(count.clone());
        async move {
            let _ended = ended;
            std::future::pending::<()>().await;
            Ok::<_, BoxError>(())
        }
    }));
    let rows = until_state(&place.store, State::Failed, 1).await;
    assert_eq!((rows[0].failure, rows[0].outcome_unknown), (Some(FailureClass::Timeout), true));
    let ran = rows[0].finished_at.unwrap().duration_since(rows[0].started_at.unwrap()).unwrap();
    assert!((290..3000).contains(&ran.as_millis()), "{ran:?}");
    assert_eq!(cancelled.get(), 1, "what it held was dropped");
    team.end().await;
}

pub async fn a_business_failure_is_dead_with_its_reason(place: &Place) {
    let deaths = Arc::new(Mutex::new(Vec::new()));
    add(&place.store, &plain("a")).await;
    let told = deaths.clone();
    let team = Team::start(
        runner(&place.store)
            .on(|_: crate::team::Plain, _: JobContext| async { Err(JobError::business("the user is gone")) })
            .on_dead(move |death| told.lock().unwrap().push(death.clone()))
            .on_dead(|_| panic!("a hook that panics")),
    );
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!((rows.len(), rows[0].dead), (1, Some(DeadReason::Business)));
    assert_eq!(rows[0].error.as_deref(), Some("the user is gone"));
    until("the hook", || async { !deaths.lock().unwrap().is_empty() }).await;
    team.end().await;
    let deaths = deaths.lock().unwrap();
    assert_eq!(deaths.len(), 1);
    assert_eq!((deaths[0].id, deaths[0].reason), (rows[0].id, DeadReason::Business));
    assert_eq!(deaths[0].error.as_deref(), Some("the user is gone"));
}

pub async fn spent_failures_are_dead_and_told_once(place: &Place) {
    let deaths = Count::default();
    add(&place.store, &plain("a")).await;
    let told = deaths.clone();
    let team = Team::start(
        runner(&place.store)
            .on(|_: crate::team::Plain, _: JobContext| async { Err(JobError::transient("503")) })
            .on_dead(move |_| {
                told.one();
            }),
    );
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Failed, State::Dead]);
    assert_eq!(rows[2].dead, Some(DeadReason::Failures));
    // Several sweeps later nothing has come of it.
    sleep(Duration::from_millis(200)).await;
    team.end().await;
    assert_eq!((all(&place.store).await.len(), deaths.get()), (3, 1));
}

pub async fn a_payload_that_cannot_be_read_is_dead(place: &Place) {
    let job = NewJob::raw("plain", "a", r#"{"name": {"secret": "s3cret"}}"#).unwrap();
    place.store.enqueue(&[job]).await.unwrap();
    let team =
        Team::start(runner(&place.store).on(|_: crate::team::Plain, _: JobContext| async { Ok::<_, BoxError>(()) }));
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!(rows[0].dead, Some(DeadReason::Undecodable));
    let error = rows[0].error.as_deref().unwrap();
    assert!(error.starts_with("the payload is no `plain`: a field is missing or has another type, line 1"), "{error}");
    team.end().await;
}

pub async fn an_unknown_type_is_dead_where_asked(place: &Place) {
    let done = |_: crate::team::Plain, _: JobContext| async { Ok::<_, BoxError>(()) };
    place.store.enqueue(&[NewJob::raw("retired", "a", "{}").unwrap()]).await.unwrap();
    // Another release may handle it.
    let team = Team::start(runner(&place.store).on(done));
    add(&place.store, &plain("b")).await;
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    assert_eq!(all(&place.store).await[0].state, State::Pending);

    let team = Team::start(runner(&place.store).on(done).refuse_unknown_types());
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!(rows[0].dead, Some(DeadReason::UnknownType));
    assert_eq!(rows[0].error.as_deref(), Some("no handler takes the type `retired`"));
    team.end().await;
}

pub async fn putting_off_does_not_count(place: &Place) {
    let runs = Count::default();
    add(&place.store, &plain("a")).await;
    let count = runs.clone();
    let team = Team::start(runner(&place.store).on(move |_: crate::team::Plain, cx: JobContext| {
        let run = count.one();
        assert_eq!((cx.attempt(), cx.snoozes()), (1, run - 1));
        // It was claimed before, and yet nothing is in doubt.
        assert!(!cx.unknown_before());
        async move { if run < 6 { Err(JobError::snooze(Duration::from_millis(5))) } else { Ok(()) } }
    }));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!((rows.len(), rows[0].snoozes, rows[0].attempt), (1, 5, 1));
    team.end().await;
}

pub async fn put_off_too_often_is_dead(place: &Place) {
    add(&place.store, &plain("a")).await;
    let team = Team::start(
        runner(&place.store)
            .max_snoozes(2)
            .on(|_: crate::team::Plain, _: JobContext| async { Err(JobError::snooze(Duration::from_millis(1))) }),
    );
    let rows = until_state(&place.store, State::Dead, 1).await;
    assert_eq!((rows.len(), rows[0].dead, rows[0].snoozes), (1, Some(DeadReason::PutOff), 2));
    assert_eq!(rows[0].error.as_deref(), Some("put off 2 times already, which is as often as it may be"));
    team.end().await;
}

pub async fn a_paused_type_waits_in_a_running_worker(place: &Place) {
    let scope = Scope::Type("plain".to_owned());
    place.store.pause(&scope, None).await.unwrap();
    let team = Team::start(
        runner(&place.store)
            .on(|_: crate::team::Plain, _: JobContext| async { Ok::<_, BoxError>(()) })
            .on(|_: Short, _: JobContext| async { Ok::<_, BoxError>(()) }),
    );
    add(&place.store, &plain("a")).await;
    add(&place.store, &Short).await;
    until_state(&place.store, State::Completed, 1).await;
    // Some looks later.
    sleep(Duration::from_millis(100)).await;
    assert_eq!(states(&all(&place.store).await), [State::Pending, State::Completed]);
    assert!(place.store.resume(&scope).await.unwrap());
    until_state(&place.store, State::Completed, 2).await;
    team.end().await;
}

pub async fn the_key_is_the_chains(place: &Place) {
    let keys = Arc::new(Mutex::new(Vec::new()));
    add(&place.store, &plain("a")).await;
    let seen = keys.clone();
    let team = Team::start(runner(&place.store).on(move |job: crate::team::Plain, cx: JobContext| {
        let text = |key: http::HeaderValue| key.to_str().unwrap().to_owned();
        let run =
            [text(cx.key("put")), text(cx.key("post")), text(cx.key_for("put", b"1")), text(cx.key_for("put", b"2"))];
        assert_eq!(text(cx.key("put")), format!("\"{}\"", text(cx.raw_key("put"))));
        seen.lock().unwrap().push(run);
        let attempt = cx.attempt();
        async move { if job.name == "a" && attempt == 1 { Err("again") } else { Ok(()) } }
    }));
    until_state(&place.store, State::Completed, 1).await;
    add(&place.store, &plain("b")).await;
    until_state(&place.store, State::Completed, 2).await;
    team.end().await;
    let keys = keys.lock().unwrap();
    assert_eq!((keys.len(), &keys[0]), (3, &keys[1]), "a successor has its chain's keys");
    // No two steps, bodies or chains share one.
    let distinct: std::collections::HashSet<_> = keys[1].iter().chain(&keys[2]).collect();
    assert_eq!(distinct.len(), 8);
    // A string of structured fields, as RFC 9651 writes it.
    assert!(keys[0][0].starts_with('"') && keys[0][0].ends_with('"') && keys[0][0].len() == 38, "{}", keys[0][0]);
}

pub async fn concurrency_is_a_limit(place: &Place) {
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for target in 0..20 {
        add(&place.store, &plain(&target.to_string())).await;
    }
    let (now, peak) = (running.clone(), most.clone());
    let handler = move |_: crate::team::Plain, _: JobContext| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            let running = now.fetch_add(1, SeqCst) + 1;
            peak.fetch_max(running, SeqCst);
            sleep(Duration::from_millis(20)).await;
            now.fetch_sub(1, SeqCst);
            Ok::<_, BoxError>(())
        }
    };
    let team = Team::start(runner(&place.store).concurrency(3).batch(7).on(handler));
    until_state(&place.store, State::Completed, 20).await;
    team.end().await;
    assert_eq!(most.load(SeqCst), 3);
}

pub async fn rules_are_named(place: &Place) {
    let new = || Runner::new(Jobs::new(place.store.clone()));
    let done = |_: crate::team::Plain, _: JobContext| async { Ok::<_, BoxError>(()) };
    let refused = [
        (new(), "the runner handles no type of jobs: give it a handler with `on`"),
        (new().on(done).on(done), "the type `plain` has two handlers: give it one"),
        (new().on(done).concurrency(0), "Runner::concurrency is 0: it must be 1 to 10000"),
        (new().on(done).batch(0), "Runner::batch is 0: it must be 1 to 1000"),
        (new().on(done).lease(Duration::from_millis(10)), "Runner::lease is 10ms: it must be 1s to a day"),
        (new().on(done).recovery(quick().failures(0)), "Recovery::failures is 0: it must be 1 to 20"),
    ];
    for (runner, why) in refused {
        let error = runner.run_until(std::future::pending()).await.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(error.to_string(), why);
    }
}
