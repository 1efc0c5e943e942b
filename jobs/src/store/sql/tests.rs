//! What no test from outside can see.

use super::*;
#[cfg(feature = "sqlite")]
use std::{future::Future, task::Poll};

/// A job that was enqueued outlives a power cut; what workers write need not wait for the disk.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn enqueueing_alone_waits_for_the_disk() {
    let store = SqlStore::sqlite(":memory:", SqlOptions::new()).await.unwrap();
    let pragma = || "PRAGMA synchronous".to_owned();
    let mut tx = store.0.db.begin_synced().await.unwrap();
    assert_eq!(tx.connection().fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 2, "FULL");
    tx.commit().await.unwrap();
    assert_eq!(store.0.db.fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 1, "NORMAL");

    let job = crate::NewJob::raw("mail", "a", "{}").unwrap();
    store.enqueue_on_tick(None, &[job]).await.unwrap();
    assert_eq!(store.0.db.fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 1, "NORMAL again");
}

/// Whoever gives up within a transaction leaves no lock behind, neither for us nor for another process.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn what_is_given_up_is_rolled_back() {
    let path = std::env::temp_dir().join(format!("redial-jobs-given-up-{}.db", std::process::id()));
    let store = SqlStore::sqlite(&path, SqlOptions::new()).await.unwrap();
    let other = SqlStore::sqlite(&path, SqlOptions::new()).await.unwrap();
    let job = |target: &str| crate::NewJob::raw("mail", target, "{}").unwrap();
    for given_up in 0..3 {
        let mut tx = store.0.db.begin_synced().await.unwrap();
        let pause = "INSERT INTO redial_jobs_pauses (scope, name) VALUES ('type', 'mail')".to_owned();
        tx.connection().fetch(pause, &[]).await.unwrap();
        drop(tx);
        // While it begins.
        let mut beginning = Box::pin(store.0.db.begin());
        let _ = std::future::poll_fn(|cx| Poll::Ready(beginning.as_mut().poll(cx).is_ready())).await;
        drop(beginning);
        assert_eq!(other.enqueue_on_tick(None, &[job(&format!("other {given_up}"))]).await.unwrap().unwrap().len(), 1);
        assert_eq!(store.enqueue_on_tick(None, &[job(&format!("own {given_up}"))]).await.unwrap().unwrap().len(), 1);
    }
    assert!(store.read_pauses().await.unwrap().is_empty());
    assert_eq!(store.read_stats(true).await.unwrap().count(crate::State::Pending), 6);
    drop((store, other));
    for suffix in ["", "-wal", "-shm"] {
        let mut path = path.clone().into_os_string();
        path.push(suffix);
        let _ = std::fs::remove_file(path);
    }
}

/// Whoever gives up while that is changed leaves nobody in error about it.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_change_of_care_for_the_disk_is_given_up() {
    let store = SqlStore::sqlite(":memory:", SqlOptions::new()).await.unwrap();
    let set = async |tx: &mut super::transaction::Tx| {
        let rows = tx.connection().fetch("PRAGMA synchronous".to_owned(), &[]).await.unwrap();
        rows[0].int(0).unwrap()
    };
    for polls in 0..20 {
        for synced in [true, false] {
            let begin = async |synced| match synced {
                true => store.0.db.begin_synced().await.unwrap(),
                false => store.0.db.begin().await.unwrap(),
            };
            begin(synced).await.commit().await.unwrap();
            // Dropped as soon as it waits for the last time.
            let mut other = Box::pin(begin(!synced));
            for _ in 0..polls {
                let is_ready = std::future::poll_fn(|cx| Poll::Ready(other.as_mut().poll(cx).is_ready())).await;
                if is_ready {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(other);
            let mut tx = begin(synced).await;
            assert_eq!(set(&mut tx).await, 1 + i64::from(synced), "{polls} polls");
            tx.commit().await.unwrap();
        }
    }
}

/// Of each target one, and no more than it may.
#[test]
fn one_statement_takes_what_it_may() {
    use super::enqueue::{Incoming, ROWS, groups};
    let job =
        |target: &str, size: usize| crate::NewJob::raw("mail", target, format!("\"{}\"", "x".repeat(size))).unwrap();
    let sizes = |jobs: &[crate::NewJob]| {
        let mut rows: Vec<_> = jobs.iter().enumerate().map(Incoming::new).collect();
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        groups(&rows, ROWS, |row| row.job).iter().map(|group| group.len()).collect::<Vec<_>>()
    };
    assert!(sizes(&[]).is_empty());
    assert_eq!(sizes(&[job("a", 1), job("b", 1), job("a", 1), job("c", 1), job("c", 1)]), [1, 3, 1]);
    let many: Vec<_> = (0..250).map(|number| job(&format!("{number:03}"), 1)).collect();
    assert_eq!(sizes(&many), [100, 100, 50]);
    let large: Vec<_> = (0..9).map(|number| job(&number.to_string(), 1024 * 1024 - 2)).collect();
    assert_eq!(sizes(&large), [4, 4, 1]);
}
