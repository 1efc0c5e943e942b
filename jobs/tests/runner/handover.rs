//! How the error of a call becomes the end of a job.

use std::time::{Duration, SystemTime};

use redial::{
    FaultKind, StopReason,
    testing::{ReportBuilder, error},
};
use redial_jobs::{BoxError, DeadReason, FailureClass, JobContext, JobRow, State};

use crate::{
    place::Place,
    team::{Plain, Team, add, all, plain, quick, runner, until},
};

/// As a caller's own layers wrap it.
#[derive(Debug)]
struct Wrapped(redial::Error);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order could not be placed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn spent(report: ReportBuilder) -> redial::Error {
    error::with_report(error::reset(), report.build())
}

/// The row of a job whose handler fails with this.
async fn ends<E: Into<BoxError> + 'static>(
    place: &Place,
    name: &str,
    error: impl Fn() -> E + Send + Sync + 'static,
) -> JobRow {
    add(&place.store, &plain(name)).await;
    let runner = runner(&place.store).recovery_elsewhere(quick().every(Duration::from_secs(3600)));
    let team = Team::start(runner.on(move |_: Plain, _: JobContext| {
        let error = error().into();
        async move { Err::<(), BoxError>(error) }
    }));
    let row = || async { all(&place.store).await.into_iter().rfind(|row| row.target == name).unwrap() };
    until("its end", || async { !row().await.state.is_active() }).await;
    team.end().await;
    row().await
}

pub async fn spent_attempts_are_recoverable(place: &Place) {
    let unsent = || ReportBuilder::new().unsent(FaultKind::Connect).wait(Duration::from_millis(200));
    let row = ends(place, "a", move || spent(unsent().unsent(FaultKind::Connect).stop(StopReason::Attempts))).await;
    assert_eq!((row.state, row.failure, row.outcome_unknown), (State::Failed, Some(FailureClass::Exhausted), false));
    assert_eq!(row.history.len(), 2);
    assert_eq!((row.history[0].outcome.as_str(), row.history[0].wait_ms), ("connect", Some(200)));
    assert!(row.retry_at.is_some());
}

pub async fn a_lost_answer_is_recorded_through_a_callers_own_error(place: &Place) {
    let row =
        ends(place, "a", || Wrapped(spent(ReportBuilder::new().failed(FaultKind::Timeout).stop(StopReason::Budget))))
            .await;
    assert_eq!((row.state, row.failure, row.outcome_unknown), (State::Failed, Some(FailureClass::Exhausted), true));
    assert_eq!(row.error.as_deref(), Some("the order could not be placed"));
}

pub async fn a_permanent_failure_is_dead(place: &Place) {
    let row = ends(place, "a", || spent(ReportBuilder::new().unsent(FaultKind::Tls).stop(StopReason::Permanent))).await;
    assert_eq!((row.state, row.dead, row.retry_at), (State::Dead, Some(DeadReason::Business), None));
}

pub async fn the_servers_not_before_is_the_successors(place: &Place) {
    let at = SystemTime::now() + Duration::from_secs(5 * 3600);
    let row =
        ends(place, "a", move || spent(ReportBuilder::new().answered(503).stop(StopReason::Deadline).retry_at(at)))
            .await;
    assert_eq!((row.state, row.failure), (State::Failed, Some(FailureClass::Exhausted)));
    // By the clock of the database.
    let off = row.not_before.unwrap().duration_since(at - Duration::from_secs(5)).unwrap();
    assert!(off < Duration::from_secs(10), "{off:?}");
}

pub async fn an_error_without_a_report_says_how_far_it_got(place: &Place) {
    let row = ends(place, "a", error::connect).await;
    assert_eq!((row.state, row.outcome_unknown), (State::Failed, false));
    let row = ends(place, "b", error::reset).await;
    assert_eq!((row.state, row.outcome_unknown), (State::Failed, true));
    // Nobody classified it: it may have got anywhere.
    let row = ends(place, "c", || "no luck").await;
    assert_eq!((row.failure, row.outcome_unknown), (Some(FailureClass::Unclassified), true));
}
