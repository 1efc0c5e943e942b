//! The leases that this runner holds, and how long each is surely its own.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{JobId, Lease};

/// One lease in our hands.
///
/// It is surely ours until a lease's length after the last accepted renewal was **sent**: the database may have read it
/// as early as that.
pub(super) struct Hold {
    pub(super) lease: Lease,
    standing: watch::Sender<Standing>,
    renewed: AtomicBool,
    closing: AtomicBool,
}

#[derive(Clone, Copy)]
struct Standing {
    until: Instant,
    /// Somebody else has it, or may have by now.
    lost: bool,
}

impl Standing {
    fn is_near_its_end(self, margin: Duration) -> bool {
        before(self.until, margin) <= Instant::now()
    }
}

impl Hold {
    /// Ends when the lease is lost, or so near its end that it can no more be relied upon: `margin` before.
    pub(super) async fn lost(&self, margin: Duration) {
        let mut watched = self.standing.subscribe();
        loop {
            let Standing { until, lost } = *watched.borrow_and_update();
            if lost {
                return;
            }
            tokio::select! {
                () = sleep_until(before(until, margin)) => {
                    // Unless it was renewed just now.
                    self.standing.send_if_modified(|standing| {
                        standing.lost |= standing.is_near_its_end(margin);
                        standing.lost
                    });
                }
                // The sender lives as long as `self`.
                _ = watched.changed() => {}
            }
        }
    }

    /// Whether it was found lost.
    pub(super) fn is_lost(&self) -> bool {
        self.standing.borrow().lost
    }

    /// Whether it ends so soon, unless it is renewed.
    pub(super) fn ends_within(&self, margin: Duration) -> bool {
        self.standing.borrow().is_near_its_end(margin)
    }

    /// Ends with the lease itself, however often it is renewed until then.
    pub(super) async fn ended(&self) {
        let mut watched = self.standing.subscribe();
        loop {
            let until = watched.borrow_and_update().until;
            tokio::select! {
                () = sleep_until(until) => return,
                _ = watched.changed() => {}
            }
        }
    }

    /// From now on it runs out by itself: its handler has run for too long.
    pub(super) fn renew_no_more(&self) {
        self.renewed.store(false, Ordering::Relaxed);
    }

    /// How its run ended is being written. Until it is, the lease is renewed; once it is, a renewal that is on its way is
    /// refused, and that is no loss.
    pub(super) fn closes(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    fn refused(&self) {
        self.standing.send_modify(|standing| standing.lost = true);
    }
}

fn before(instant: Instant, margin: Duration) -> Instant {
    instant.checked_sub(margin).unwrap_or(instant)
}

/// All of them.
#[derive(Default)]
pub(super) struct Holds(Mutex<HashMap<JobId, Arc<Hold>>>);

impl Holds {
    /// A claim that was sent at this instant was granted.
    pub(super) fn take(&self, lease: Lease, sent: Instant, time: Duration) -> Arc<Hold> {
        let hold = Arc::new(Hold {
            lease,
            standing: watch::Sender::new(Standing { until: sent + time, lost: false }),
            renewed: AtomicBool::new(true),
            closing: AtomicBool::new(false),
        });
        self.entries().insert(lease.id, hold.clone());
        hold
    }

    /// It is given back: nothing is renewed any more.
    pub(super) fn forget(&self, lease: Lease) {
        let mut entries = self.entries();
        if entries.get(&lease.id).is_some_and(|hold| hold.lease == lease) {
            entries.remove(&lease.id);
        }
    }

    /// Those that are to be renewed.
    pub(super) fn renewable(&self) -> Vec<Lease> {
        let entries = self.entries();
        let held = entries.values().filter(|hold| hold.renewed.load(Ordering::Relaxed) && !hold.is_lost());
        held.map(|hold| hold.lease).collect()
    }

    /// A renewal of `asked`, sent at this instant, was granted for `granted`; returns those that are lost.
    pub(super) fn renewed(&self, asked: &[Lease], granted: &[Lease], sent: Instant, time: Duration) -> Vec<Lease> {
        let granted: HashMap<JobId, i64> = granted.iter().map(|lease| (lease.id, lease.token)).collect();
        let mut lost = Vec::new();
        for lease in asked {
            // One that was closed meanwhile is no longer here.
            let Some(hold) = self.entries().get(&lease.id).filter(|hold| hold.lease == *lease).cloned() else {
                continue;
            };
            if granted.get(&lease.id) == Some(&lease.token) {
                hold.standing.send_modify(|standing| standing.until = sent + time);
            } else if !hold.closing.load(Ordering::Relaxed) {
                hold.refused();
                lost.push(*lease);
            }
        }
        lost
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Hold>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn lease(id: i64, token: i64) -> Lease {
        Lease { id: JobId(id), token }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_counts_from_when_its_renewal_was_sent() {
        let holds = Holds::default();
        let start = Instant::now();
        let hold = holds.take(lease(1, 1), start, LEASE);
        tokio::time::advance(Duration::from_secs(20)).await;
        // Sent at 12 s, answered at 20 s.
        assert!(holds.renewed(&[lease(1, 1)], &[lease(1, 1)], start + Duration::from_secs(12), LEASE).is_empty());
        hold.ended().await;
        assert_eq!(start.elapsed().as_secs(), 42);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_renewal_is_told_at_once_and_a_missing_one_before_the_end() {
        let holds = Holds::default();
        let start = Instant::now();
        let refused = holds.take(lease(1, 1), start, LEASE);
        let silent = holds.take(lease(2, 1), start, LEASE);
        assert_eq!(holds.renewed(&[lease(1, 1)], &[lease(1, 2)], start, LEASE), [lease(1, 1)]);
        refused.lost(Duration::ZERO).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        silent.lost(Duration::from_secs(4)).await;
        assert_eq!(start.elapsed().as_secs(), 26);
        assert!(silent.is_lost() && holds.renewable().is_empty());
    }

    #[test]
    fn a_renewal_that_crosses_the_last_write_is_no_loss() {
        let holds = Holds::default();
        let now = Instant::now();
        let hold = holds.take(lease(1, 1), now, LEASE);
        hold.closes();
        assert_eq!(holds.renewable(), [lease(1, 1)], "until it is written");
        assert!(holds.renewed(&[lease(1, 1)], &[], now, LEASE).is_empty());
        assert!(!hold.is_lost());
    }

    #[test]
    fn what_a_later_claim_holds_is_not_forgotten_with_an_earlier_one() {
        let holds = Holds::default();
        let now = Instant::now();
        let _ = holds.take(lease(1, 1), now, LEASE);
        let _ = holds.take(lease(1, 2), now, LEASE);
        holds.forget(lease(1, 1));
        assert_eq!(holds.renewable(), [lease(1, 2)]);
    }
}
