//! J2, J4, J9, J10, J13: what a failure's row says.

use std::time::{Duration, SystemTime};

use redial_jobs::{AttemptRecord, DeadReason, Failed, Failure, FailureClass, JobStore, Recovery, State};

use crate::place::{HOUR, LEASE, Place, claim, claim_one, exhausted, recovery, sweep};

pub async fn a_failure_says_when_it_is_due(place: &Place) {
    let id = place.enqueue("a").await;
    let claimed = claim_one(&place.store).await;
    let attempt = AttemptRecord {
        number: 1,
        started_ms: 0,
        took_ms: 12,
        outcome: "503".to_owned(),
        unknown: true,
        wait_ms: Some(100),
    };
    let failure = exhausted().unknown(true).attempts([attempt.clone()]);
    let failed = place.store.fail(claimed.lease, &failure, &recovery()).await.unwrap();
    assert_eq!(failed, Failed::Recoverable { failures: 1 });

    let row = place.row(id).await;
    assert_eq!((row.state, row.failure), (State::Failed, Some(FailureClass::Exhausted)));
    assert_eq!(row.error.as_deref(), Some("503 after 3 attempts"));
    assert_eq!(row.history, [attempt]);
    assert!(row.outcome_unknown);
    let wait = row.retry_at.unwrap().duration_since(row.finished_at.unwrap()).unwrap();
    assert!((2 * HOUR..=2 * HOUR + Duration::from_secs(720)).contains(&wait), "{wait:?}");
}

pub async fn the_third_failure_is_dead(place: &Place) {
    place.enqueue("a").await;
    for (failures, state) in [(1, State::Failed), (2, State::Failed), (3, State::Dead)] {
        let store = place.later(4 * HOUR * failures);
        let claimed = claim_one(&store).await;
        assert_eq!(claimed.attempt, failures);
        let failed = store.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
        assert_eq!(failed.state(), Some(state));
        if state == State::Dead {
            assert_eq!(failed, Failed::Dead { reason: DeadReason::Failures, failures: 3 });
            let row = place.row(claimed.lease.id).await;
            assert_eq!((row.dead, row.retry_at), (Some(DeadReason::Failures), None));
        }
        let swept = sweep(&place.later(4 * HOUR * (failures + 1) - LEASE)).await;
        assert_eq!(swept.recovered, u32::from(state == State::Failed));
    }
    assert_eq!(place.store.stats().await.unwrap().count(State::Dead), 1);
}

pub async fn a_completed_job_starts_the_count_anew(place: &Place) {
    for round in 0..3 {
        let at = place.later(100 * HOUR * round);
        crate::place::enqueue(&at, crate::place::job("a")).await;
        for failures in 1..=2 {
            let claimed = claim_one(&at).await;
            let failed = at.fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
            assert_eq!(failed, Failed::Recoverable { failures });
            crate::place::enqueue(&at, crate::place::job("a")).await;
        }
        let claimed = claim_one(&at).await;
        assert_eq!(at.complete(&[claimed.lease]).await.unwrap().len(), 1);
    }
}

pub async fn ghosts_are_no_failures(place: &Place) {
    place.enqueue("a").await;
    let mut at = Duration::ZERO;
    for _ in 0..2 {
        claim_one(&place.later(at)).await;
        at += HOUR;
        assert_eq!(sweep(&place.later(at)).await.ghosts, 1);
        at += HOUR;
    }
    let claimed = claim_one(&place.later(at)).await;
    assert_eq!(claimed.attempt, 3);
    assert!(claimed.unknown_before, "nobody knows how far the dead worker got");
    let failed = place.later(at).fail(claimed.lease, &exhausted(), &recovery()).await.unwrap();
    assert_eq!(failed, Failed::Recoverable { failures: 1 });
}

pub async fn a_business_failure_is_dead_at_once(place: &Place) {
    for (target, class, reason) in [
        ("a", FailureClass::Business, DeadReason::Business),
        ("b", FailureClass::Undecodable, DeadReason::Undecodable),
        ("c", FailureClass::UnknownType, DeadReason::UnknownType),
        ("d", FailureClass::PutOff, DeadReason::PutOff),
    ] {
        let id = place.enqueue(target).await;
        let lease = claim_one(&place.store).await.lease;
        let failed = place.store.fail(lease, &Failure::new(class, "no"), &recovery()).await.unwrap();
        assert_eq!(failed, Failed::Dead { reason, failures: 1 });
        let row = place.row(id).await;
        assert_eq!((row.state, row.dead, row.failure), (State::Dead, Some(reason), Some(class)));
    }
    assert_eq!(sweep(&place.later(100 * HOUR)).await.recovered, 0);
    assert!(claim(&place.later(200 * HOUR), 1).await.is_empty());
}

/// Never earlier than the server said, by jitter or by a short interval of ours; and no longer than need be.
pub async fn the_servers_wait_is_kept(place: &Place) {
    let often = Recovery::default().every(Duration::from_secs(1)).jitter(Duration::from_secs(60));
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    let limited = exhausted().not_before(SystemTime::now() + HOUR);
    let _ = place.store.fail(lease, &limited, &often).await.unwrap();
    let row = place.row(id).await;
    let wait = |at: Option<SystemTime>| at.unwrap().duration_since(row.finished_at.unwrap()).unwrap();
    assert!((HOUR - LEASE / 6..=HOUR).contains(&wait(row.not_before)), "{row:?}");
    assert!((wait(row.not_before)..=HOUR + LEASE).contains(&wait(row.retry_at)), "{row:?}");

    assert_eq!(sweep(&place.later(HOUR / 2)).await.recovered, 0);
    assert_eq!(sweep(&place.later(2 * HOUR)).await.recovered, 1);
}

pub async fn asking_again_is_answered_the_same(place: &Place) {
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    let first = place.store.fail(lease, &exhausted(), &recovery()).await.unwrap();
    let row = place.row(id).await;
    assert_eq!(place.store.fail(lease, &exhausted(), &recovery()).await.unwrap(), first);
    let again = place.row(id).await;
    assert_eq!((again.retry_at, again.finished_at), (row.retry_at, row.finished_at));
}

/// What a call over HTTP went through is in the row.
pub async fn a_report_is_handed_over(place: &Place) {
    use redial::{FaultKind, StopReason, testing::ReportBuilder};
    let until = SystemTime::now() + 3 * HOUR;
    let report = ReportBuilder::new()
        .answered(503)
        .wait(Duration::from_millis(200))
        .failed(FaultKind::Reset)
        .stop(StopReason::Attempts)
        .retry_at(until)
        .build();
    let id = place.enqueue("a").await;
    let lease = claim_one(&place.store).await.lease;
    let failure = Failure::of_report(&report, "503");
    let _ = place.store.fail(lease, &failure, &recovery()).await.unwrap();
    let row = place.row(id).await;
    let told: Vec<_> = row.history.iter().map(|attempt| (attempt.outcome.as_str(), attempt.unknown)).collect();
    assert_eq!(told, [("503", false), ("reset", true)]);
    assert_eq!(row.history[0].wait_ms, Some(200));
    assert_eq!(row.failure, Some(FailureClass::Exhausted));
    assert!(row.outcome_unknown && row.not_before.is_some());

    let refused = ReportBuilder::new().answered(422).stop(StopReason::Permanent).build();
    assert_eq!(Failure::of_report(&refused, "422").class(), FailureClass::Business);
}
