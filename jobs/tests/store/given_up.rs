//! Each method, dropped at each point where it waits: what was asked for is done or not, as a whole, and the next one who asks
//! meets nothing of it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::{Duration, SystemTime},
};

use redial_jobs::{
    Claim, Failure, FailureClass, Filter, ImportOptions, Imported, JobStore, Kind, Lease, NewJob, Plan, Recovery,
    RecoveryStore, Retention, Scope, SqlOptions, SqlStore, State, plan,
};

use crate::place::{LEASE, Place, claim, exhausted, job};

const METHODS: [&str; 18] = [
    "enqueue",
    "every",
    "claim",
    "renew",
    "complete",
    "fail",
    "snooze",
    "release",
    "abandon",
    "revive",
    "pause",
    "resume",
    "prune",
    "import",
    "candidates",
    "apply",
    "tick",
    "stats",
];

/// More than one statement takes.
const BATCH: usize = 120;

/// Polls it so often at most: dropped as soon as it waits for the last time, or when it is woken after that. Says whether it
/// ended by itself.
async fn given_up(polls: usize, at_once: bool, mut future: Pin<Box<dyn Future<Output = ()> + '_>>) -> bool {
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if at_once && left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// What there is to do it with.
struct Given {
    batch: Vec<NewJob>,
    leases: Vec<Lease>,
    plan: Plan,
}

fn quick() -> Recovery {
    Recovery::default().every(Duration::from_millis(1)).jitter(Duration::ZERO)
}

async fn given(store: &SqlStore, method: &str, what: &str) -> Given {
    let few: Vec<_> = (0..3).map(|n| job(&format!("few {n}"))).collect();
    store.enqueue(&few).await.unwrap();
    let leases: Vec<_> = claim(store, 3).await.iter().map(|job| job.lease).collect();
    assert_eq!(leases.len(), 3, "{what}");
    let batch: Vec<_> = (0..BATCH).map(|n| job(&format!("{what} {n}"))).collect();
    match method {
        "claim" => drop(store.enqueue(&batch).await.unwrap()),
        "revive" => drop(store.fail(leases[0], &Failure::new(FailureClass::Business, "no"), &quick()).await.unwrap()),
        "apply" => {
            for lease in &leases {
                let _ = store.fail(*lease, &exhausted(), &quick()).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        _ => {}
    }
    let plan = plan(store.candidates(&quick()).await.unwrap(), &quick());
    assert!(method != "apply" || plan.steps.len() == 3, "{plan:?}");
    Given { batch, leases, plan }
}

fn ask<'a>(store: &'a SqlStore, method: &'a str, given: &'a Given) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    let Given { batch, leases, plan } = given;
    Box::pin(async move {
        let scope = Scope::Type("nobody".to_owned());
        match method {
            "enqueue" => drop(store.enqueue(batch).await.unwrap()),
            "every" => drop(store.enqueue_every("nightly", Duration::ZERO, batch).await.unwrap().unwrap()),
            "claim" => {
                let kinds = [Kind::named("mail")];
                let claim = Claim { kinds: &kinds, worker: "w", lease: LEASE, max: 1000 };
                assert_eq!(store.claim(&claim).await.unwrap().len(), BATCH);
            }
            "renew" => assert_eq!(store.renew(leases, LEASE).await.unwrap(), *leases),
            "complete" => assert_eq!(store.complete(leases).await.unwrap(), *leases),
            "fail" => drop(store.fail(leases[0], &exhausted(), &quick()).await.unwrap()),
            "snooze" => drop(store.snooze(leases[0], LEASE).await.unwrap()),
            "release" => assert_eq!(store.release(leases).await.unwrap(), *leases),
            "abandon" => assert_eq!(store.abandon(leases).await.unwrap(), *leases),
            "revive" => drop(store.revive(leases[0].id).await.unwrap()),
            "pause" => store.pause(&scope, None).await.unwrap(),
            "resume" => drop(store.resume(&scope).await.unwrap()),
            "prune" => drop(store.prune(&Retention::default()).await.unwrap()),
            "import" => {
                let old = |job: &NewJob| Imported {
                    job: job.clone(),
                    failed_at: SystemTime::now(),
                    class: FailureClass::Business,
                    reason: "old".to_owned(),
                };
                let failures: Vec<_> = batch[..6].iter().map(old).collect();
                assert_eq!(store.import(&failures, &ImportOptions::default()).await.unwrap().dead, 6);
            }
            "candidates" => drop(store.candidates(&quick()).await.unwrap()),
            "apply" => assert_eq!(store.apply(plan).await.unwrap().recovered, 3),
            "tick" => drop(store.tick("t", LEASE).await.unwrap()),
            _ => assert_eq!(store.stats().await.unwrap().types.len(), 1),
        }
    })
}

/// Whether the next ones are answered as if nothing had been.
async fn look(store: &SqlStore, place: &Place, what: &str, method: &str) {
    assert_eq!(place.left_in_transactions().await, 0, "{what}");
    // Another process may write at once.
    let asked = tokio::time::timeout(Duration::from_secs(4), place.store.enqueue(&[job("other")])).await;
    asked.unwrap_or_else(|_| panic!("{what}: something is locked")).unwrap();
    let own: Vec<_> = (0..5).map(|n| job(&format!("own {n}"))).collect();
    assert!(store.enqueue(&own).await.unwrap().iter().all(|own| own.is_new()), "{what}");
    // All connections of a pool, the one that was in use among them.
    let stats = tokio::join!(store.stats(), store.stats(), store.stats(), store.stats(), place.store.stats());
    for stats in [stats.0, stats.1, stats.2, stats.3, stats.4] {
        assert!(stats.unwrap().types.contains_key("mail"), "{what}");
    }
    let rows = store.list(&Filter { limit: Some(1000), ..Filter::default() }).await.unwrap();
    let of: Vec<_> = rows.iter().filter(|row| row.target.starts_with(what)).collect();
    let whole = if method == "import" { 6 } else { BATCH };
    assert!(of.is_empty() || of.len() == whole, "{what}: {} rows", of.len());
    assert!(of.windows(2).all(|two| two[0].state == two[1].state), "{what}: half claimed");
    for failed in rows.iter().filter(|row| row.state == State::Failed && row.retry_at.is_none()) {
        assert!(rows.iter().any(|row| row.parent == Some(failed.id)), "{what}: {failed:?}");
    }
}

async fn all_methods(store: &SqlStore, place: &Place, on: &str) {
    for method in METHODS {
        for at_once in [true, false] {
            let mut polls = 0;
            loop {
                let what = format!("{on} {method} {polls} {at_once}:");
                let given = given(store, method, &what).await;
                let ended = given_up(polls, at_once, ask(store, method, &given)).await;
                look(store, place, &what, method).await;
                place.empty().await;
                if ended {
                    break;
                }
                polls += 1;
            }
        }
    }
}

pub async fn whatever_is_given_up_is_done_or_not(place: &Place) {
    match &place.database {
        crate::place::Database::Sqlite(_) => {
            all_methods(&place.store.clone(), place, "pool").await;
            let file = SqlStore::sqlite(place.path(), SqlOptions::new()).await.unwrap();
            all_methods(&file, place, "file").await;
        }
        crate::place::Database::Postgres(_) => all_methods(&place.store.clone(), place, "postgres").await,
    }
}
