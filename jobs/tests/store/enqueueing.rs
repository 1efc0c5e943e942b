//! J6, J14: at most one active job for each target.

use std::time::{Duration, SystemTime};

use redial_jobs::{Enqueued, Failure, FailureClass, JobStore, NewJob, State, Unique};

use crate::place::{Database, HOUR, Place, claim, claim_one, enqueue, exhausted, job, recovery, sweep};

pub async fn one_active_job_for_each_target(place: &Place) {
    let first = enqueue(&place.store, job("a")).await;
    assert!(first.is_new());
    assert_eq!(enqueue(&place.store, job("a")).await, Enqueued::AlreadyActive(first.id()));
    assert!(enqueue(&place.store, job("b")).await.is_new());
    assert!(enqueue(&place.store, NewJob::raw("report", "a", "{}").unwrap()).await.is_new());

    let claimed = claim_one(&place.store).await;
    assert_eq!(enqueue(&place.store, job("a")).await, Enqueued::AlreadyActive(first.id()));
    assert_eq!(place.store.complete(&[claimed.lease]).await.unwrap(), [claimed.lease]);
    assert!(enqueue(&place.store, job("a")).await.is_new());
}

pub async fn of_many_at_once_one_gets_in(place: &Place) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = place.store.clone();
        tasks.spawn(async move {
            let mut new = 0;
            for target in 0..20 {
                new += usize::from(enqueue(&store, job(&target.to_string())).await.is_new());
            }
            new
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 20);
    assert_eq!(place.store.stats().await.unwrap().count(State::Pending), 20);
}

pub async fn a_delay_is_the_earliest_start(place: &Place) {
    enqueue(&place.store, job("a").delay(HOUR)).await;
    assert!(claim(&place.store, 10).await.is_empty());
    assert!(claim(&place.later(HOUR - Duration::from_secs(60)), 10).await.is_empty());
    assert_eq!(claim(&place.later(HOUR), 10).await.len(), 1);
}

pub async fn once_completed_is_enough(place: &Place) {
    let quiz = || job("a").unique(Unique::ActiveOrCompleted);
    let id = enqueue(&place.store, quiz()).await.id();
    let failed = claim_one(&place.store).await;
    let _ = place.store.fail(failed.lease, &exhausted(), &recovery()).await.unwrap();
    let again = enqueue(&place.store, quiz()).await;
    assert!(again.is_new() && again.id() != id, "a failure is not enough");

    let claimed = claim_one(&place.store).await;
    place.store.complete(&[claimed.lease]).await.unwrap();
    assert_eq!(enqueue(&place.store, quiz()).await, Enqueued::AlreadyCompleted(again.id()));
    assert_eq!(enqueue(&place.later(1000 * HOUR), quiz()).await, Enqueued::AlreadyCompleted(again.id()));
    assert!(enqueue(&place.store, job("a")).await.is_new(), "another rule asks for less");
}

pub async fn within_a_time_one_completed_is_enough(place: &Place) {
    let daily = || job("a").unique(Unique::Within(24 * HOUR));
    let id = enqueue(&place.store, daily()).await.id();
    let claimed = claim_one(&place.store).await;
    assert_eq!(enqueue(&place.store, daily()).await, Enqueued::AlreadyActive(id));
    place.store.complete(&[claimed.lease]).await.unwrap();
    assert_eq!(enqueue(&place.later(23 * HOUR), daily()).await, Enqueued::AlreadyCompleted(id));
    assert!(enqueue(&place.later(25 * HOUR), daily()).await.is_new());
}

pub async fn a_transaction_of_the_callers(place: &Place) {
    let enqueue_in = async |commit: bool| match &place.database {
        Database::Sqlite(pool) => {
            let mut tx = pool.begin().await.unwrap();
            let enqueued = place.store.enqueue_in(&mut tx, &job("a")).await.unwrap();
            if commit {
                tx.commit().await.unwrap()
            } else {
                tx.rollback().await.unwrap()
            }
            enqueued
        }
        Database::Postgres(pool) => {
            let mut tx = pool.begin().await.unwrap();
            let enqueued = place.store.enqueue_in(&mut tx, &job("a")).await.unwrap();
            if commit {
                tx.commit().await.unwrap()
            } else {
                tx.rollback().await.unwrap()
            }
            enqueued
        }
    };
    assert!(enqueue_in(false).await.is_new());
    assert!(claim(&place.store, 1).await.is_empty(), "what was rolled back was never enqueued");
    assert!(enqueue_in(true).await.is_new());
    assert!(!enqueue_in(true).await.is_new());
    assert_eq!(claim(&place.store, 9).await.len(), 1);
}

/// The intent to repair is fulfilled by whoever is first.
pub async fn a_failed_target_is_taken_over(place: &Place) {
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let unknown = exhausted().unknown(true);
    let _ = place.store.fail(claimed.lease, &unknown, &recovery()).await.unwrap();

    let by_hand = place.enqueue("a").await;
    let row = place.row(by_hand).await;
    assert_eq!((row.parent, row.root, row.attempt), (Some(claimed.lease.id), claimed.lease.id, 2));
    assert_eq!(row.chain, claimed.chain, "the same work, under the same keys");
    assert_eq!(place.row(claimed.lease.id).await.retry_at, None);
    assert!(claim_one(&place.store).await.unknown_before, "it verifies before it repeats");

    let swept = sweep(&place.later(100 * HOUR)).await;
    assert_eq!((swept.recovered, swept.ghosts), (1, 1), "{swept:?}");
    assert_eq!(place.store.chain(by_hand).await.unwrap().len(), 3);
}

pub async fn the_providers_word_outlives_an_enqueue(place: &Place) {
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let limited = Failure::new(FailureClass::Exhausted, "429").not_before(SystemTime::now() + 5 * HOUR);
    let _ = place.store.fail(claimed.lease, &limited, &recovery()).await.unwrap();
    place.enqueue("a").await;
    assert!(claim(&place.later(5 * HOUR - Duration::from_secs(5)), 1).await.is_empty());
    assert_eq!(claim(&place.later(5 * HOUR + Duration::from_secs(1)), 1).await.len(), 1);
}

pub async fn another_payload_is_other_work(place: &Place) {
    place.enqueue("a").await;
    let first = claim_one(&place.store).await;
    let _ = place.store.fail(first.lease, &exhausted(), &recovery()).await.unwrap();
    enqueue(&place.store, NewJob::raw("mail", "a", r#"{"text":"edited"}"#).unwrap()).await;
    let second = claim_one(&place.store).await;
    assert_eq!(second.parent, Some(first.lease.id));
    assert_ne!(second.chain, first.chain, "another body must not go under the first one's key");
    assert!(second.chain_started >= first.chain_started);
}

/// Of many instances one enqueues the nightly batch, each night.
pub async fn a_batch_is_enqueued_once_a_night(place: &Place) {
    let batch = || (0..5).map(|target| job(&target.to_string())).collect::<Vec<_>>();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (store, batch) = (place.store.clone(), batch());
        tasks.spawn(async move { store.enqueue_every("nightly", 24 * HOUR, &batch).await.unwrap() });
    }
    let enqueued: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(enqueued.len(), 1);
    assert!(enqueued[0].iter().all(|each| each.is_new()));
    let next = place.later(25 * HOUR).enqueue_every("nightly", 24 * HOUR, &batch()).await.unwrap().unwrap();
    assert!(next.iter().all(|each| !each.is_new()), "they are active still");
}

pub async fn a_batch_leaves_failures_to_recovery(place: &Place) {
    let failed = place.enqueue("a").await;
    place.fail("a").await;
    let batch = [job("a"), job("b")];
    let enqueued = place.store.enqueue_every("often", HOUR, &batch).await.unwrap().unwrap();
    assert_eq!((enqueued[0], enqueued[1].is_new()), (Enqueued::AlreadyActive(failed), true));
    assert!(place.row(failed).await.retry_at.is_some(), "it is recovery's still");
    // Whoever asks for this target by itself has it at once.
    assert!(enqueue(&place.store, job("a")).await.is_new());
    assert_eq!(place.row(failed).await.retry_at, None);
    // One that recovery has given up is nobody's: the batch tries it again.
    let claimed = claim(&place.store, 9).await.into_iter().find(|claimed| claimed.target == "a").unwrap();
    let business = Failure::new(FailureClass::Business, "no");
    let _ = place.store.fail(claimed.lease, &business, &recovery()).await.unwrap();
    let later = place.later(2 * HOUR);
    assert!(later.enqueue_every("often", HOUR, &batch).await.unwrap().unwrap()[0].is_new());
}

/// Many rows go in with one statement, and are answered as if each had been enqueued by itself, in the order asked for.
pub async fn a_batch_is_answered_as_one_by_one(place: &Place) {
    let one_by_one = place.table("one_by_one");
    one_by_one.migrate().await.unwrap();
    let once = |target: &str| job(target).unique(Unique::ActiveOrCompleted);
    for store in [&place.store, &one_by_one] {
        for target in ["done", "failed", "dead"] {
            enqueue(store, job(target)).await;
            let claimed = claim_one(store).await;
            let _ = match target {
                "done" => store.complete(&[claimed.lease]).await.map(drop),
                "failed" => store.fail(claimed.lease, &exhausted().unknown(true), &recovery()).await.map(drop),
                _ => {
                    store.fail(claimed.lease, &Failure::new(FailureClass::Business, "no"), &recovery()).await.map(drop)
                }
            };
        }
        enqueue(store, job("active")).await;
    }
    let mut jobs = vec![job("z"), once("done"), job("done"), once("done"), job("dead"), job("active"), once("active")];
    // More than one statement takes, in an order that is not theirs.
    jobs.extend((0..250).rev().map(|number| job(&number.to_string()).delay(HOUR * (number % 3))));
    jobs.extend([job("z"), job("failed"), job("failed"), NewJob::raw("report", "z", "{}").unwrap().trace("t")]);
    jobs.push(NewJob::raw("mail", "quoted", r#"{"text":"\"\\ \u0000 ä"}"#).unwrap().provider("hub").unwrap());

    let all_at_once = place.store.enqueue(&jobs).await.unwrap();
    let mut each = Vec::new();
    for job in &jobs {
        each.push(enqueue(&one_by_one, job.clone()).await);
    }
    for (at, job) in jobs.iter().enumerate() {
        let mut told = Vec::new();
        for (store, enqueued) in [(&place.store, all_at_once[at]), (&one_by_one, each[at])] {
            let chain = store.chain(enqueued.id()).await.unwrap();
            let row = chain.iter().find(|row| row.id == enqueued.id()).unwrap();
            assert_eq!((row.job_type.as_str(), row.target.as_str()), (job.job_type(), job.target()));
            let kind = std::mem::discriminant(&enqueued);
            let wait = row.run_at.duration_since(row.created_at).unwrap_or_default().as_secs();
            told.push((kind, row.state, row.attempt, row.parent.is_some(), row.outcome_unknown, wait));
        }
        assert_eq!(told[0], told[1], "{}", job.target());
    }
    let row = place.row(all_at_once.last().unwrap().id()).await;
    assert_eq!((row.payload.as_str(), row.provider.as_deref()), (r#"{"text":"\"\\ \u0000 ä"}"#, Some("hub")));
    let trace = place.row(all_at_once[jobs.len() - 2].id()).await.trace;
    assert_eq!(trace.as_deref(), Some("t"));
    assert!(place.store.enqueue(&[]).await.unwrap().is_empty());
}

/// Two that enqueue the same targets, each in an order of its own, wait for each other and never in a circle.
pub async fn batches_in_any_order_do_not_block_each_other(place: &Place) {
    for round in 0..5 {
        let targets: Vec<_> = (0..300).map(|number| format!("{round} {number}")).collect();
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..4 {
            let mut jobs: Vec<_> = targets.iter().map(|target| job(target)).collect();
            if task % 2 == 1 {
                jobs.reverse();
            }
            let store = place.store.clone();
            tasks.spawn(async move { store.enqueue(&jobs).await.unwrap().iter().filter(|each| each.is_new()).count() });
        }
        assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 300);
    }
}
