//! J14: what a person sees.

use redial_jobs::{FailureClass, Filter, JobStore, Retention, SqlOptions, SqlStore, State, Unique};

use crate::place::{HOUR, Place, claim, claim_one, enqueue, exhausted, job, recovery, sweep};

pub async fn lists_are_paged(place: &Place) {
    for target in 0..7 {
        place.enqueue(&target.to_string()).await;
    }
    claim(&place.store, 2).await;
    let list = async |filter: Filter| place.store.list(&filter).await.unwrap();
    let first = list(Filter { limit: Some(3), ..Filter::default() }).await;
    assert_eq!(first.iter().map(|row| row.target.as_str()).collect::<Vec<_>>(), ["6", "5", "4"]);
    let next = list(Filter { before: Some(first[2].id), ..Filter::default() }).await;
    assert_eq!(next.len(), 4);
    let working = list(Filter { state: Some(State::Processing), ..Filter::default() }).await;
    assert_eq!(working.len(), 2);
    assert_eq!(list(Filter { target: Some("3".to_owned()), ..Filter::default() }).await.len(), 1);
    assert!(list(Filter { job_type: Some("other".to_owned()), ..Filter::default() }).await.is_empty());
}

pub async fn a_chain_is_shown_whole(place: &Place) {
    place.enqueue("a").await;
    let failed = place.fail("a").await;
    sweep(&place.later(3 * HOUR)).await;
    let chain = place.store.chain(failed).await.unwrap();
    assert_eq!(chain.len(), 2);
    let from_the_end = place.store.chain(chain[1].id).await.unwrap();
    assert_eq!(from_the_end.iter().map(|row| row.id).collect::<Vec<_>>(), [chain[0].id, chain[1].id]);
    assert!(place.store.chain(redial_jobs::JobId(i64::MAX)).await.unwrap().is_empty());
    let json = serde_json::to_value(&chain[0]).unwrap();
    assert_eq!((json["state"].as_str(), json["failure"].as_str()), (Some("FAILED"), Some("exhausted")));
    let due = json["retry_at"].as_str().or(json["finished_at"].as_str()).unwrap();
    assert!(due.contains('T') && due.ends_with('Z'), "{due}");
}

pub async fn stats_count(place: &Place) {
    for target in 0..5 {
        place.enqueue(&target.to_string()).await;
    }
    let claimed = claim(&place.store, 3).await;
    place.store.complete(&[claimed[0].lease]).await.unwrap();
    let _ = place.store.fail(claimed[1].lease, &exhausted(), &recovery()).await.unwrap();
    let stats = place.later(HOUR).stats().await.unwrap();
    assert_eq!((stats.types["mail"].pending, stats.types["mail"].processing), (2, 1));
    assert_eq!((stats.count(State::Completed), stats.count(State::Failed), stats.count(State::Dead)), (1, 1, 0));
    assert_eq!((stats.ghosts, stats.due), (1, 1));
    assert!(stats.oldest_pending.unwrap() >= HOUR);

    let backlog = place.later(HOUR).backlog().await.unwrap();
    let history = |stats: &redial_jobs::Stats| stats.count(State::Completed) + stats.count(State::Failed);
    assert_eq!((history(&stats), history(&backlog)), (2, 0));
    for state in [State::Pending, State::Processing, State::Dead] {
        assert_eq!(backlog.count(state), stats.count(state), "{state}");
    }
    assert_eq!((backlog.ghosts, backlog.due), (stats.ghosts, stats.due));
}

pub async fn what_still_counts_is_kept(place: &Place) {
    let all = Retention { completed: Some(HOUR), failed: Some(HOUR), dead: Some(HOUR), batch: 100 };
    // Completed, and nothing more.
    place.enqueue("done").await;
    let claimed = claim_one(&place.store).await;
    place.store.complete(&[claimed.lease]).await.unwrap();
    // Completed, and enough for ever.
    enqueue(&place.store, job("once").unique(Unique::ActiveOrCompleted)).await;
    let claimed = claim_one(&place.store).await;
    place.store.complete(&[claimed.lease]).await.unwrap();
    // Failed once, and to be repaired; then active again.
    place.enqueue("failed").await;
    place.fail("failed").await;

    assert_eq!(place.store.prune(&all).await.unwrap(), 0, "all of it is young");
    assert_eq!(place.later(2 * HOUR).prune(&all).await.unwrap(), 1);
    assert!(enqueue(&place.store, job("once").unique(Unique::ActiveOrCompleted)).await.id() == claimed.lease.id);
    sweep(&place.later(3 * HOUR)).await;
    assert_eq!(place.later(5 * HOUR).prune(&all).await.unwrap(), 0, "it counts against its target");

    // Then it completes: the failure counts no more, and goes first.
    let claimed = claim_one(&place.later(4 * HOUR)).await;
    assert_eq!(claimed.target, "failed");
    place.later(4 * HOUR).complete(&[claimed.lease]).await.unwrap();
    let later = place.later(9 * HOUR);
    let keep_failed = Retention { failed: None, ..all };
    assert_eq!(later.prune(&keep_failed).await.unwrap(), 0, "without it the failure would count again");
    let one = Retention { batch: 1, ..all };
    assert_eq!((later.prune(&one).await.unwrap(), later.prune(&one).await.unwrap()), (1, 1));
    assert_eq!(later.prune(&all).await.unwrap(), 0);
}

pub async fn another_table_stands_beside(place: &Place) {
    let other = place.table("night_jobs");
    other.migrate().await.unwrap();
    place.enqueue("a").await;
    assert!(claim(&other, 1).await.is_empty());
    assert!(enqueue(&other, job("a")).await.is_new());
    let claimed = claim_one(&other).await;
    let _ = other.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    assert_eq!(other.stats().await.unwrap().count(State::Failed), 1);
    assert_eq!(place.store.stats().await.unwrap().count(State::Failed), 0);
    assert!(other.tick("sweep", HOUR).await.unwrap() && place.store.tick("sweep", HOUR).await.unwrap());
}

use redial_jobs::RecoveryStore;

pub async fn migrating_twice_does_nothing(place: &Place) {
    place.enqueue("a").await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = place.store.clone();
        tasks.spawn(async move { store.migrate().await.unwrap() });
    }
    tasks.join_all().await;
    assert_eq!(claim(&place.store, 9).await.len(), 1);
    place.say_version(9).await;
    let error = place.store.migrate().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("a later one"), "{error}");
}

pub async fn names_cannot_break_out(place: &Place) {
    for bad in ["", "Jobs", "1jobs", "jobs; drop table x", "jobs\"", "ünter", &"x".repeat(31)] {
        let error = SqlStore::from_pool(place.database.clone(), SqlOptions::new().table(bad)).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("SqlOptions::table"), "{error}");
    }
    // What is stored may hold anything.
    let nasty = r#"'; DROP TABLE redial_jobs; -- {jobs} $1 "" \"#;
    place.enqueue(nasty).await;
    let claimed = claim_one(&place.store).await;
    assert_eq!(claimed.target, nasty);
    let secret = "GET http://me:hunter2@localhost/a?token=hunter2 failed";
    let text = format!("{nasty}\0\n{secret} {}", "é".repeat(9000));
    let failure = redial_jobs::Failure::new(FailureClass::Exhausted, text);
    let _ = place.store.fail(claimed.lease, &failure, &recovery()).await.unwrap();
    let error = place.row(claimed.lease.id).await.error.unwrap();
    assert!(error.starts_with(nasty) && error.contains("localhost/a") && error.len() < 900, "{error}");
    assert!(!error.contains("hunter2") && !error.contains(char::is_control), "{error}");
    for bad in ["", "a\0b", "a\nb", &"x".repeat(501)] {
        assert!(redial_jobs::NewJob::raw("mail", bad, "{}").unwrap_err().is_invalid());
    }
    assert!(redial_jobs::NewJob::raw("mail", "a", "x".repeat(2_000_000)).unwrap_err().is_invalid());
}
