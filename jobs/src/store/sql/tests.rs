//! What no test from outside can see.

use super::*;

/// A job that was enqueued outlives a power cut; what workers write need not wait for the disk.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn enqueueing_alone_waits_for_the_disk() {
    let store = SqlStore::sqlite(":memory:", SqlOptions::new()).await.unwrap();
    let pragma = || "PRAGMA synchronous".to_owned();
    let mut tx = store.0.db.begin_synced(true).await.unwrap();
    assert_eq!(tx.connection().fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 2, "FULL");
    tx.commit().await.unwrap();
    store.0.db.end_synced(true).await.unwrap();
    assert_eq!(store.0.db.fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 1, "NORMAL");

    let job = crate::NewJob::raw("mail", "a", "{}").unwrap();
    store.enqueue_on_tick(None, &[job]).await.unwrap();
    assert_eq!(store.0.db.fetch(pragma(), &[]).await.unwrap()[0].int(0).unwrap(), 1, "NORMAL again");
}
