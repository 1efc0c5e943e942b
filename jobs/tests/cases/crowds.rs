//! Many at once.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, SystemTime},
};

use redial_jobs::{
    Claim, Failure, FailureClass, Filter, JobRow, JobStore, Kind, Lease, NewJob, Recovery, SqlStore, State, Sweeper,
};

use crate::place::{LEASE, Place, claim, enqueue, exhausted, job, recovery};

/// One transaction each thousand.
async fn fill(store: &SqlStore, count: usize) {
    let jobs: Vec<NewJob> = (0..count).map(|target| job(&target.to_string())).collect();
    for chunk in jobs.chunks(1000) {
        store.enqueue(chunk).await.unwrap();
    }
}

async fn every(store: &SqlStore, state: State) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = Vec::new();
    loop {
        let before = rows.last().map(|row| row.id);
        let page = store.list(&Filter { state: Some(state), limit: Some(1000), before, ..Filter::default() }).await;
        let page = page.unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page);
    }
}

pub async fn c162_many_claim_while_others_write(place: &Place) {
    fill(&place.store, 200).await;
    let writer = place.store.clone();
    let writing = tokio::spawn(async move {
        for target in 0.. {
            writer.enqueue(&[NewJob::raw("other", target.to_string(), "{}").unwrap()]).await.unwrap();
        }
    });
    let claimers = (0..8).map(|number| {
        let store = place.store.clone();
        tokio::spawn(async move {
            let (kinds, worker) = ([Kind::named("mail")], format!("w{number}"));
            let mut mine = Vec::new();
            loop {
                let claim = Claim { kinds: &kinds, worker: &worker, lease: LEASE, max: 3 };
                // No "database is locked" reaches us.
                let jobs = store.claim(&claim).await.unwrap();
                if jobs.is_empty() {
                    return mine;
                }
                mine.extend(jobs.into_iter().map(|job| job.lease));
            }
        })
    });
    let claimers: Vec<_> = claimers.collect();
    let mut claimed: Vec<Lease> = Vec::new();
    for claimer in claimers {
        claimed.extend(claimer.await.unwrap());
    }
    writing.abort();
    let _ = writing.await;
    assert_eq!(claimed.len(), 200);
    assert_eq!(claimed.iter().map(|lease| lease.id).collect::<HashSet<_>>().len(), 200);
    assert!(claimed.iter().all(|lease| lease.token == 1));
}

/// How far apart these are, at least: how many distinct times, and from first to last.
fn apart(times: impl IntoIterator<Item = SystemTime>) -> (usize, Duration) {
    let times: HashSet<SystemTime> = times.into_iter().collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    (times.len(), last.duration_since(*first).unwrap())
}

pub async fn c164_what_is_rescued_at_once_starts_apart(place: &Place) {
    // A thousand fail at once.
    fill(&place.store, 1000).await;
    for job in claim(&place.store, 1000).await {
        let _ = place.store.fail(job.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let failed = every(&place.store, State::Failed).await;
    assert_eq!(failed.len(), 1000);
    let (distinct, span) = apart(failed.iter().map(|row| row.retry_at.unwrap()));
    assert!(distinct > 900 && span > Duration::from_secs(600), "{distinct} times within {span:?}");

    // Half of them again, and their workers die: all are found in one sweep.
    fill(&place.store, 500).await;
    let second = claim(&place.store, 500).await;
    assert_eq!(second.len(), 500);
    let later = place.later(LEASE * 2);
    let all = recovery().per_sweep(500);
    let swept = Sweeper::new(later.clone(), all.clone()).unwrap().run_once().await.unwrap();
    assert_eq!((swept.ghosts, swept.recovered), (500, 500));
    let rescued = every(&later, State::Pending).await;
    let (distinct, span) = apart(rescued.iter().map(|row| row.run_at));
    assert!(distinct > 400 && span > Duration::from_secs(40), "{distinct} times within {span:?}");
    let first_start = rescued.iter().map(|row| row.run_at).min().unwrap();

    // A job that is a ghost once more waits longer than after the first time.
    let third = claim(&place.later(LEASE * 4), 500).await;
    assert_eq!(third.len(), 500);
    let much_later = place.later(LEASE * 6);
    Sweeper::new(much_later.clone(), all).unwrap().run_once().await.unwrap();
    let again = every(&much_later, State::Pending).await;
    let created: HashMap<_, _> = again.iter().map(|row| (row.id, row.created_at)).collect();
    assert!(again.iter().all(|row| row.run_at.duration_since(created[&row.id]).unwrap() >= Duration::from_secs(60)));
    let quickest = rescued.iter().filter(|row| row.run_at == first_start).map(|row| row.created_at).next().unwrap();
    assert!(first_start.duration_since(quickest).unwrap() < Duration::from_secs(5), "the first rescue is fast");
}

pub async fn c168_all_that_is_overdue_is_scheduled(place: &Place) {
    fill(&place.store, 350).await;
    for job in claim(&place.store, 350).await {
        let _ = place.store.fail(job.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let overdue = place.later(Duration::from_secs(24 * 3600));
    // By default a pass enqueues a hundred: four passes, none of it twice.
    let mut passes = Vec::new();
    for _ in 0..4 {
        let swept = Sweeper::new(overdue.clone(), Recovery::default()).unwrap().run_once().await.unwrap();
        passes.push(swept.recovered);
    }
    assert_eq!(passes, [100, 100, 100, 50]);
    assert_eq!(every(&overdue, State::Pending).await.len(), 350);

    // Or all of them in one, where the cap allows it.
    for job in claim(&place.later(25 * Duration::from_secs(3600)), 350).await {
        let _ = overdue.fail(job.lease, &exhausted(), &recovery()).await.unwrap();
    }
    let next_day = place.later(Duration::from_secs(48 * 3600));
    let swept = Sweeper::new(next_day, Recovery::default().per_sweep(1000)).unwrap().run_once().await.unwrap();
    assert_eq!((swept.recovered, swept.waiting), (350, 0));
}

pub async fn c169_what_a_later_job_has_done_is_not_rescued(place: &Place) {
    for run in 1..=3 {
        assert!(enqueue(&place.store, job("a")).await.is_new());
        let claimed = claim(&place.store, 1).await;
        match run {
            2 => {
                let gone = Failure::new(FailureClass::Exhausted, "its worker was cut off");
                let _ = place.store.fail(claimed[0].lease, &gone, &recovery()).await.unwrap();
            }
            _ => assert_eq!(place.store.complete(&[claimed[0].lease]).await.unwrap().len(), 1),
        }
    }
    let tomorrow = place.later(Duration::from_secs(24 * 3600));
    let swept = Sweeper::new(tomorrow.clone(), recovery()).unwrap().run_once().await.unwrap();
    assert_eq!((swept.recovered, swept.buried.len()), (0, 0), "{swept:?}");
    assert!(claim(&tomorrow, 9).await.is_empty());
}
