//! What goes wrong around a store.

use redial_jobs::{JobStore, State};

use crate::place::{HOUR, LEASE, Place, claim, claim_one, enqueue, exhausted, job, recovery, sweep};

/// Things happen later, never twice, and nothing is lost.
pub async fn a_clock_that_is_set_back_loses_nothing(place: &Place) {
    for target in ["waits", "runs", "failed"] {
        place.enqueue(target).await;
    }
    let claimed = claim(&place.store, 3).await;
    place.store.release(&[claimed[0].lease]).await.unwrap();
    let _ = place.store.fail(claimed[2].lease, &exhausted(), &recovery()).await.unwrap();

    let back = place.earlier(5 * HOUR);
    assert!(claim(&back, 9).await.is_empty());
    assert_eq!(sweep(&back).await.ghosts, 0);
    assert_eq!(back.renew(&[claimed[1].lease], LEASE).await.unwrap(), [claimed[1].lease]);
    assert!(!enqueue(&back, job("waits")).await.is_new());
    let by_hand = enqueue(&back, job("failed")).await;
    assert!(by_hand.is_new());
    // The worker whose lease was renewed by the clock that was set back dies now.
    assert_eq!(sweep(&place.earlier(4 * HOUR)).await.ghosts, 1);

    let swept = sweep(&place.later(10 * HOUR)).await;
    assert_eq!((swept.ghosts, swept.recovered), (0, 0), "{swept:?}");
    let all = claim(&place.later(10 * HOUR), 9).await;
    assert_eq!(all.len(), 3);
    let leases: Vec<_> = all.iter().map(|job| job.lease).collect();
    assert_eq!(place.store.complete(&leases).await.unwrap().len(), 3);
    assert_eq!(place.store.stats().await.unwrap().count(State::Completed), 3);
}

/// The opposite of `a_ghost_that_returns_is_refused`: what fencing is for.
pub async fn without_fencing_work_is_done_twice(place: &Place) {
    let unfenced = place.unfenced();
    let id = place.enqueue("a").await;
    let ghost = claim_one(&unfenced).await.lease;
    sweep(&place.later(LEASE * 2)).await;
    let successor = claim_one(&place.later(LEASE * 9)).await.lease;
    unfenced.complete(&[successor]).await.unwrap();
    unfenced.complete(&[ghost]).await.unwrap();
    let chain = place.store.chain(id).await.unwrap();
    assert_eq!(chain.iter().filter(|row| row.state == State::Completed).count(), 2);
}
