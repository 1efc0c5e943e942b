//! J3, J4, J5, J7, J12: one pass repairs failures and ghosts, once.

use std::collections::BTreeSet;

use redial_jobs::{
    DeadReason, JobStore, NewJob, Origin, Recovery, RecoveryStore, SqlStore, State, Step, Sweeper, Swept, WaitReason,
};

use crate::place::{HOUR, LEASE, Place, claim, claim_one, enqueue, exhausted, job, recovery, sweep};

async fn sweep_by(store: &SqlStore, recovery: Recovery) -> Swept {
    Sweeper::new(store.clone(), recovery).unwrap().run_once().await.unwrap()
}

pub async fn a_failure_has_one_successor(place: &Place) {
    place.enqueue("a").await;
    let failed = place.fail("a").await;
    let before = place.row(failed).await;
    assert_eq!(sweep(&place.later(HOUR)).await, Swept::new(), "it is not due");

    let store = place.later(3 * HOUR);
    assert_eq!(sweep(&store).await.recovered, 1);
    assert_eq!(sweep(&store).await, Swept::new());
    let chain = place.store.chain(failed).await.unwrap();
    assert_eq!(chain.len(), 2);
    let (old, new) = (&chain[0], &chain[1]);
    assert_eq!((new.state, new.origin, new.attempt), (State::Pending, Origin::Recovered, 2));
    assert_eq!((new.parent, new.root, new.chain), (Some(failed), failed, old.chain));
    // The row of the failure is history.
    let told = |row: &redial_jobs::JobRow| (row.state, row.error.clone(), row.failure, row.finished_at, row.attempt);
    assert_eq!(told(old), told(&before));
    assert_eq!(old.retry_at, None);
}

pub async fn three_sweepers_do_it_once(place: &Place) {
    let targets: Vec<_> = (0..60).map(|target| target.to_string()).collect();
    place.store.enqueue(&targets.iter().map(|target| job(target)).collect::<Vec<_>>()).await.unwrap();
    for claimed in claim(&place.store, 30).await {
        let _ = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    }
    claim(&place.store, 30).await; // these become ghosts
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = place.later(3 * HOUR);
        tasks.spawn(async move { sweep(&store).await });
    }
    let swept = tasks.join_all().await;
    assert_eq!(swept.iter().map(|swept| swept.recovered).sum::<u32>(), 60, "{swept:?}");
    assert_eq!(swept.iter().map(|swept| swept.ghosts).sum::<u32>(), 30);
    let stats = place.store.stats().await.unwrap();
    assert_eq!((stats.count(State::Pending), stats.count(State::Failed)), (60, 60));
}

pub async fn a_ghost_is_replaced(place: &Place) {
    let id = place.enqueue("a").await;
    claim_one(&place.store).await;
    assert_eq!(sweep(&place.store).await, Swept::new(), "its lease holds");
    let store = place.later(LEASE * 2);
    let swept = sweep(&store).await;
    assert_eq!((swept.ghosts, swept.recovered), (1, 1));
    let chain = place.store.chain(id).await.unwrap();
    assert_eq!((chain[0].state, chain[1].state), (State::Failed, State::Pending));
    assert!(chain[0].outcome_unknown && chain[0].error.as_deref().unwrap().contains("worker w"), "{chain:?}");
    assert_eq!(claim(&place.later(LEASE * 4), 1).await.len(), 1, "the first one is replaced within a sweep");
}

pub async fn a_ghost_that_returns_is_refused(place: &Place) {
    let id = place.enqueue("a").await;
    let ghost = claim_one(&place.store).await.lease;
    sweep(&place.later(LEASE * 2)).await;
    let row = place.row(id).await;
    assert!(place.store.complete(&[ghost]).await.unwrap().is_empty());
    assert_eq!(place.store.fail(ghost, &exhausted(), &recovery()).await.unwrap().state(), None);
    assert!(place.store.renew(&[ghost], LEASE).await.unwrap().is_empty());
    let after = place.row(id).await;
    assert_eq!((after.state, after.error, after.token), (row.state, row.error, row.token));

    // One that returns before anybody looked is no ghost.
    let second = claim_one(&place.later(LEASE * 4)).await.lease;
    assert_eq!(place.later(LEASE * 9).complete(&[second]).await.unwrap(), [second]);
    assert_eq!(sweep(&place.later(LEASE * 9)).await.ghosts, 0);
}

/// The attempt is counted when it is claimed: a job that kills its process runs as often as the limit says.
pub async fn a_job_that_kills_its_worker_ends(place: &Place) {
    place.enqueue("a").await;
    let mut runs = 0;
    let mut last = Swept::new();
    for hour in 1..10 {
        runs += claim(&place.later(HOUR * hour), 1).await.len();
        let swept = sweep(&place.later(HOUR * hour + LEASE * 2)).await;
        if !swept.buried.is_empty() {
            last = swept;
        }
    }
    assert_eq!(runs, 3);
    assert_eq!(last.buried[0].reason, DeadReason::Ghosts);
    let row = place.row(last.buried[0].job.id).await;
    assert_eq!((row.state, row.dead, row.attempt), (State::Dead, Some(DeadReason::Ghosts), 3));
}

pub async fn the_newest_job_alone_counts(place: &Place) {
    place.enqueue("a").await;
    let failed = place.fail("a").await;
    let plan = Sweeper::new(place.later(3 * HOUR), recovery()).unwrap().plan().await.unwrap();
    // Between the plan and its end somebody enqueues the target, and it completes.
    place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    place.store.complete(&[claimed.lease]).await.unwrap();

    let swept = place.later(3 * HOUR).apply(&plan).await.unwrap();
    assert_eq!((swept.recovered, swept.overtaken), (0, 1));
    assert_eq!(sweep(&place.later(3 * HOUR)).await, Swept::new());
    assert_eq!(place.store.chain(failed).await.unwrap().len(), 2);
}

/// A provider that was down is tried out by one job alone.
pub async fn a_canary_goes_first(place: &Place) {
    let of = |target: &str, provider: &str| job(target).provider(provider).unwrap();
    for target in ["a", "b", "c"] {
        enqueue(&place.store, of(target, "github")).await;
    }
    enqueue(&place.store, of("d", "other")).await;
    for claimed in claim(&place.store, 4).await {
        let _ = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let store = place.later(3 * HOUR);
    let swept = sweep(&store).await;
    assert_eq!((swept.recovered, swept.waiting), (2, 2), "one of each provider");
    assert_eq!(sweep(&store).await.recovered, 0, "while it is out, the others wait");

    // It fails: another one tries, no sooner.
    let canaries = claim(&store, 9).await;
    let canary = canaries.iter().find(|job| job.provider.as_deref() == Some("github")).unwrap();
    let _ = store.fail(canary.lease, &exhausted(), &recovery()).await.unwrap();
    let other = canaries.iter().find(|job| job.target == "d").unwrap();
    store.complete(&[other.lease]).await.unwrap();
    assert_eq!(sweep(&store).await.recovered, 1);
    let second = claim(&store, 9).await.remove(0);
    assert_ne!(second.target, canary.target);
    // It succeeds: the way is free.
    store.complete(&[second.lease]).await.unwrap();
    assert_eq!(sweep(&place.later(6 * HOUR)).await.recovered, 2, "the third, and the first canary again");
}

pub async fn caps_spread_a_backlog(place: &Place) {
    let recovery = recovery().per_sweep(10).per_provider(4).canary(false);
    let mut jobs: Vec<_> = (0..10).map(|n| job(&format!("g{n}")).provider("github").unwrap()).collect();
    jobs.extend((0..10).map(|n| job(&format!("n{n}"))));
    place.store.enqueue(&jobs).await.unwrap();
    for claimed in claim(&place.store, 20).await {
        let _ = place.store.fail(claimed.lease, &exhausted(), &recovery).await.unwrap();
    }
    let store = place.later(3 * HOUR);
    let plan = Sweeper::new(store.clone(), recovery.clone()).unwrap().plan().await.unwrap();
    let waits = |why: WaitReason| {
        plan.steps.iter().filter(|step| matches!(step, Step::Wait { reason, .. } if *reason == why)).count()
    };
    assert_eq!(waits(WaitReason::ProviderCap) + waits(WaitReason::SweepCap), 10);
    let mut passes = Vec::new();
    while passes.iter().sum::<u32>() < 20 && passes.len() < 10 {
        passes.push(sweep_by(&store, recovery.clone()).await.recovered);
    }
    assert_eq!(passes.iter().sum::<u32>(), 20);
    assert!(passes.iter().all(|recovered| *recovered <= 10), "{passes:?}");
}

pub async fn all_that_is_due_in_one_pass(place: &Place) {
    let jobs: Vec<_> = (0..350).map(|target| job(&target.to_string())).collect();
    place.store.enqueue(&jobs).await.unwrap();
    for claimed in claim(&place.store, 350).await {
        let _ = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let swept = sweep_by(&place.later(3 * HOUR), recovery().per_sweep(1000)).await;
    assert_eq!(swept.recovered, 350);
}

pub async fn successors_start_apart(place: &Place) {
    let jobs: Vec<_> = (0..100).map(|target| job(&target.to_string())).collect();
    place.store.enqueue(&jobs).await.unwrap();
    claim(&place.store, 50).await;
    let due: BTreeSet<_> = {
        for claimed in claim(&place.store, 50).await {
            let _ = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
        }
        rows(place, State::Failed).await.into_iter().map(|row| row.retry_at).collect()
    };
    assert!(due.len() > 40, "jitter sets them apart: {}", due.len());
    sweep(&place.later(LEASE * 2)).await;
    let rows = rows(place, State::Pending).await;
    let starts: BTreeSet<_> = rows.iter().map(|row| row.run_at).collect();
    assert_eq!(rows.len(), 50);
    assert!(starts.len() > 40, "{}", starts.len());
}

async fn rows(place: &Place, state: State) -> Vec<redial_jobs::JobRow> {
    let filter = redial_jobs::Filter { state: Some(state), limit: Some(1000), ..Default::default() };
    place.store.list(&filter).await.unwrap()
}

pub async fn a_dead_target_is_revived(place: &Place) {
    let one = recovery().failures(1);
    let id = place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    assert!(place.store.revive(id).await.unwrap_err().is_state());
    let _ = place.store.fail(claimed.lease, &exhausted(), &one).await.unwrap();
    assert_eq!(place.row(id).await.state, State::Dead);

    let revived = place.store.revive(id).await.unwrap();
    assert!(place.store.revive(id).await.unwrap_err().is_state(), "one successor");
    assert!(place.store.revive(redial_jobs::JobId(i64::MAX)).await.unwrap_err().is_missing());
    let row = place.row(revived).await;
    assert_eq!((row.origin, row.parent, row.chain), (Origin::Revived, Some(id), claimed.chain));
    // The count starts anew.
    let claimed = claim_one(&place.store).await;
    let failed = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    assert_eq!(failed, redial_jobs::Failed::Recoverable { failures: 1 });
}

pub async fn ticks_are_shared(place: &Place) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = place.store.clone();
        tasks.spawn(async move { store.tick("nightly", HOUR).await.unwrap() });
    }
    assert_eq!(tasks.join_all().await.into_iter().filter(|ours| *ours).count(), 1);
    assert!(!place.later(HOUR - LEASE).tick("nightly", HOUR).await.unwrap());
    assert!(place.later(HOUR + LEASE).tick("nightly", HOUR).await.unwrap());
    assert!(place.store.tick("weekly", HOUR).await.unwrap(), "each name has its own");
    // A clock that was far ahead does not stop the ticks for ever.
    assert!(place.later(1000 * HOUR).tick("nightly", HOUR).await.unwrap());
    assert!(place.later(3 * HOUR).tick("nightly", HOUR).await.unwrap());

    let sweeper = Sweeper::new(place.store.clone(), recovery()).unwrap();
    assert!(sweeper.run_if_due().await.unwrap().is_some());
    assert!(sweeper.run_if_due().await.unwrap().is_none());
}

pub async fn a_plan_changes_nothing(place: &Place) {
    place.enqueue("a").await;
    place.fail("a").await;
    place.enqueue("b").await;
    claim_one(&place.store).await;
    let sweeper = Sweeper::new(place.later(3 * HOUR), recovery()).unwrap();
    let plan = sweeper.plan().await.unwrap();
    assert_eq!(plan.steps.iter().filter(|step| matches!(step, Step::Recover { .. })).count(), 2);
    let stats = place.store.stats().await.unwrap();
    assert_eq!((stats.count(State::Failed), stats.count(State::Processing)), (1, 1));
    assert_eq!(sweeper.run_once().await.unwrap().recovered, 2);
}

/// Reported, never failed.
pub async fn a_waiting_job_is_reported(place: &Place) {
    let id = enqueue(&place.store, NewJob::raw("orphan", "a", "{}").unwrap()).await.id();
    assert!(sweep(&place.later(HOUR / 2)).await.stuck.is_empty());
    let stuck = sweep(&place.later(3 * HOUR)).await.stuck;
    assert_eq!((stuck[0].id, stuck[0].job_type.as_str()), (id, "orphan"));
    assert!(stuck[0].waited >= 2 * HOUR);
    assert_eq!(place.row(id).await.state, State::Pending);
}

/// One of each type, and none that is paused.
pub async fn a_backlog_is_reported_once(place: &Place) {
    let jobs: Vec<_> = (0..50).map(|target| job(&target.to_string())).collect();
    place.store.enqueue(&jobs).await.unwrap();
    enqueue(&place.store, NewJob::raw("orphan", "a", "{}").unwrap()).await;
    let store = place.later(3 * HOUR);
    let types = async || sweep(&store).await.stuck.into_iter().map(|stuck| stuck.job_type).collect::<Vec<_>>();
    assert_eq!(types().await, ["mail", "orphan"]);
    store.pause(&redial_jobs::Scope::Type("mail".to_owned()), None).await.unwrap();
    assert_eq!(types().await, ["orphan"]);
}

/// Whatever order they come in: nobody waits for another in a circle, which a database ends by breaking one off.
pub async fn batches_and_sweepers_pass_each_other(place: &Place) {
    let store = place.later(3 * HOUR);
    let targets: Vec<_> = (0..30).map(|target| target.to_string()).collect();
    for target in &targets {
        place.enqueue(target).await;
    }
    for claimed in claim(&place.store, 30).await {
        let _ = place.store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let mut tasks = tokio::task::JoinSet::new();
    for turn in 0..4 {
        let (store, mut targets) = (store.clone(), targets.clone());
        targets.rotate_left(turn * 7);
        if turn % 2 == 0 {
            targets.reverse();
        }
        let batch: Vec<_> = targets.iter().map(|target| job(target)).collect();
        tasks.spawn(async move {
            let enqueued = store.enqueue(&batch).await.unwrap();
            enqueued.iter().filter(|each| each.is_new()).count()
        });
    }
    let mut sweepers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let store = store.clone();
        sweepers.spawn(async move { sweep(&store).await.recovered as usize });
    }
    let new: usize = tasks.join_all().await.into_iter().chain(sweepers.join_all().await).sum();
    assert_eq!(new, 30, "each failure has one successor");
    assert_eq!(rows(place, State::Pending).await.len(), 30);
    sweep(&store).await;
    assert!(rows(place, State::Failed).await.iter().all(|row| row.retry_at.is_none()));
}
