//! J5, J8: how a worker comes to hold a job, and loses it.

use std::{collections::HashSet, time::Duration};

use redial_jobs::{Claim, Failure, FailureClass, Held, JobStore, Kind, Lease, NewJob, Scope, State};

use crate::place::{Database, HOUR, LEASE, Place, claim, claim_one, enqueue, exhausted, job, recovery, sweep};

pub async fn the_longest_due_first(place: &Place) {
    enqueue(&place.store, job("later").delay(Duration::from_secs(20))).await;
    for target in ["1", "2", "3"] {
        place.enqueue(target).await;
    }
    let targets = |claimed: Vec<redial_jobs::Claimed>| claimed.into_iter().map(|job| job.target).collect::<Vec<_>>();
    assert_eq!(targets(claim(&place.later(HOUR), 2).await), ["1", "2"]);
    assert_eq!(targets(claim(&place.later(HOUR), 9).await), ["3", "later"]);
}

pub async fn each_job_has_one_worker(place: &Place) {
    let jobs: Vec<_> = (0..200).map(|target| job(&target.to_string())).collect();
    place.store.enqueue(&jobs).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = place.store.clone();
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(&store, 7).await;
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|job| job.lease.id));
            }
        });
    }
    let claimed: Vec<_> = tasks.join_all().await.concat();
    assert_eq!(claimed.len(), 200);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>().len(), 200);
}

pub async fn a_late_worker_is_refused(place: &Place) {
    let id = place.enqueue("a").await;
    let first = claim_one(&place.store).await.lease;
    assert_eq!(place.store.release(&[first]).await.unwrap(), [first]);
    let second = claim_one(&place.store).await.lease;
    assert!(second.token > first.token);

    assert!(place.store.complete(&[first]).await.unwrap().is_empty());
    assert!(place.store.renew(&[first], LEASE).await.unwrap().is_empty());
    assert!(place.store.release(&[first]).await.unwrap().is_empty());
    assert_eq!(place.store.snooze(first, LEASE).await.unwrap(), Held::Lost);
    assert_eq!(place.store.fail(first, &exhausted(), &recovery()).await.unwrap().state(), None);
    assert_eq!(place.row(id).await.state, State::Processing);
    assert_eq!(place.store.complete(&[first, second]).await.unwrap(), [second]);
}

pub async fn a_lease_is_renewed(place: &Place) {
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    assert_eq!(place.store.renew(&[lease], 2 * HOUR).await.unwrap(), [lease]);
    assert_eq!(sweep(&place.later(HOUR)).await.ghosts, 0);
    assert_eq!(sweep(&place.later(3 * HOUR)).await.ghosts, 1);
    assert_eq!(place.row(id).await.state, State::Failed);
}

/// Who asks again, since the first answer was lost, gets the same answer.
pub async fn what_is_done_is_done_once(place: &Place) {
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    assert_eq!(place.store.complete(&[lease]).await.unwrap(), [lease]);
    let finished = place.row(id).await.finished_at;
    assert_eq!(place.store.complete(&[lease]).await.unwrap(), [lease]);
    assert_eq!(place.row(id).await.finished_at, finished);
    let other = Lease { id, token: lease.token + 1 };
    assert!(place.store.complete(&[other]).await.unwrap().is_empty());
}

pub async fn a_released_job_was_never_claimed(place: &Place) {
    let id = place.enqueue("a").await;
    for _ in 0..10 {
        let claimed = claim_one(&place.store).await;
        assert_eq!(claimed.attempt, 1);
        for _ in ["asked", "asked again, since the answer was lost"] {
            assert_eq!(place.store.release(&[claimed.lease]).await.unwrap(), [claimed.lease]);
        }
    }
    let row = place.row(id).await;
    assert_eq!((row.state, row.attempt, row.started_at, row.worker), (State::Pending, 1, None, None));
    // No key of its chain was sent, so none has an age; one that was begun has.
    assert_eq!(row.chain_started, None);
    let begun = claim_one(&place.store).await;
    assert_eq!(place.store.abandon(&[begun.lease]).await.unwrap(), [begun.lease]);
    let again = claim_one(&place.later(HOUR)).await;
    assert_eq!(again.chain_started, begun.chain_started);
    assert_eq!(place.store.release(&[again.lease]).await.unwrap(), [again.lease]);
    assert_eq!(place.row(id).await.chain_started, Some(begun.chain_started));
}

pub async fn putting_off_does_not_count(place: &Place) {
    let id = place.enqueue("a").await;
    for times in 1..=20 {
        let store = place.later(HOUR * times);
        let claimed = claim_one(&store).await;
        assert_eq!((claimed.attempt, claimed.snoozes), (1, times - 1));
        assert_eq!(store.snooze(claimed.lease, HOUR).await.unwrap(), Held::Yes);
        assert_eq!(store.snooze(claimed.lease, HOUR).await.unwrap(), Held::Yes, "the first answer was lost");
        assert!(claim(&store, 1).await.is_empty(), "it waits");
    }
    let row = place.row(id).await;
    assert_eq!((row.state, row.attempt, row.snoozes), (State::Pending, 1, 20));
}

pub async fn a_paused_type_waits(place: &Place) {
    place.enqueue("a").await;
    let scope = Scope::Type("mail".to_owned());
    place.store.pause(&scope, None).await.unwrap();
    assert_eq!(place.store.pauses().await.unwrap()[0].scope, scope);
    assert!(claim(&place.later(1000 * HOUR), 1).await.is_empty());
    assert!(place.store.resume(&scope).await.unwrap());
    assert!(!place.store.resume(&scope).await.unwrap());
    assert_eq!(claim(&place.store, 1).await.len(), 1);
}

/// A pause is a time that is stored, not a wake-up: whoever comes after it needs nobody who remembers it.
pub async fn a_paused_provider_waits_until_its_time(place: &Place) {
    enqueue(&place.store, job("a").provider("github").unwrap()).await;
    let kinds = [Kind { job_type: "mail".to_owned(), provider: Some("github".to_owned()) }];
    let wanted = Claim { kinds: &kinds, worker: "w", lease: LEASE, max: 1 };
    place.store.pause(&Scope::Provider("github".to_owned()), Some(HOUR)).await.unwrap();
    assert!(place.store.claim(&wanted).await.unwrap().is_empty());
    assert!(place.later(HOUR - LEASE).claim(&wanted).await.unwrap().is_empty());
    assert_eq!(place.later(HOUR + LEASE).claim(&wanted).await.unwrap().len(), 1);
    assert!(place.later(HOUR + LEASE).pauses().await.unwrap().is_empty());
}

pub async fn other_types_are_left(place: &Place) {
    enqueue(&place.store, NewJob::raw("report", "a", "{}").unwrap()).await;
    place.enqueue("a").await;
    assert_eq!(claim(&place.store, 9).await.len(), 1);
    let kinds = [Kind::named("mail"), Kind::named("report"), Kind::named("quiz")];
    let wanted = Claim { kinds: &kinds, worker: "w", lease: LEASE, max: 9 };
    assert_eq!(place.store.claim(&wanted).await.unwrap()[0].job_type, "report");
    assert!(place.store.claim(&Claim { max: 0, ..wanted.clone() }).await.unwrap().is_empty());
    assert!(place.store.claim(&Claim { kinds: &[], ..wanted }).await.unwrap().is_empty());
}

/// Whatever the planner thinks of the table: with another index, a backlog makes each claim slower. It thinks the worst
/// where it counted when nothing was pending.
pub async fn each_search_has_its_index(place: &Place) {
    place.finish(3000).await;
    let jobs: Vec<_> = (0..300).map(|target| job(&target.to_string())).collect();
    place.store.enqueue(&jobs).await.unwrap();
    claim(&place.store, 20).await;
    let [claims, completes] = place.store.explain().await.unwrap();
    assert!(claims.contains("redial_jobs_ready"), "{claims}");
    for plan in [claims, completes] {
        assert!(plan.contains("redial_jobs_pkey") || plan.contains("INTEGER PRIMARY KEY"), "{plan}");
        for wrong in ["redial_jobs_live", "redial_jobs_lease", "redial_jobs_target", "Seq Scan", "Join Filter"] {
            assert!(!plan.contains(wrong), "{wrong}: {plan}");
        }
        assert!(plan.lines().all(|line| line != "SCAN j"), "{plan}");
    }
}

/// By whoever enqueues through the same store, and in PostgreSQL by every other process.
pub async fn a_worker_is_woken(place: &Place) {
    let mut wakes = place.store.wakes();
    // Where it listens to the database, it says once that it has begun to.
    if let Database::Postgres(_) = place.database {
        tokio::time::timeout(Duration::from_secs(10), wakes.woken()).await.unwrap();
        let another_process = place.later(Duration::ZERO);
        enqueue(&another_process, job("a")).await;
        tokio::time::timeout(Duration::from_secs(10), wakes.woken()).await.unwrap();
    }
    enqueue(&place.store, job("b")).await;
    tokio::time::timeout(Duration::from_secs(10), wakes.woken()).await.unwrap();
}

/// Only SQLite takes what is no text for one.
pub async fn a_row_that_cannot_be_read_is_dead_alone(place: &Place) {
    let Database::Sqlite(pool) = &place.database else { return };
    let bad = place.enqueue("bad").await;
    place.enqueue("good").await;
    sqlx::raw_sql("UPDATE redial_jobs SET payload = x'ff00' WHERE target = 'bad'").execute(pool).await.unwrap();
    let targets: Vec<_> = claim(&place.store, 9).await.into_iter().map(|claimed| claimed.target).collect();
    assert_eq!(targets, ["good"]);
    let sql = "SELECT state || ' ' || dead_reason || ' ' || error FROM redial_jobs WHERE id = $1";
    let (said,): (String,) = sqlx::query_as(sql).bind(bad.0).fetch_one(pool).await.unwrap();
    assert!(said.starts_with("DEAD undecodable its row cannot be read: "), "{said}");
}

pub async fn keys_have_no_age_before_a_claim(place: &Place) {
    let id = place.enqueue("a").await;
    assert_eq!(place.row(id).await.chain_started, None);
    let first = claim_one(&place.later(30 * HOUR)).await;
    assert_eq!(first.chain_started, first.claimed_at, "however long it waited");
    let later = place.later(40 * HOUR);
    let business = Failure::new(FailureClass::Business, "no");
    let _ = later.fail(first.lease, &exhausted(), &recovery()).await.unwrap();
    sweep(&place.later(50 * HOUR)).await;
    let second = claim_one(&place.later(51 * HOUR)).await;
    assert_eq!((second.chain, second.chain_started), (first.chain, first.chain_started));
    assert!(second.claimed_at > second.chain_started + 20 * HOUR);
    // A person says: do it again. Its keys are the same, where they are still known.
    let _ = later.fail(second.lease, &business, &recovery()).await.unwrap();
    let revived = place.store.revive(second.lease.id).await.unwrap();
    assert_eq!(place.row(revived).await.chain_started, None);
    let third = claim_one(&place.later(60 * HOUR)).await;
    assert_eq!((third.chain, third.chain_started), (first.chain, third.claimed_at));
}
