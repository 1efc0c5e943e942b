//! What a provider sees of a job.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use redial::{
    RetryLayer, StandardPolicy, Timeouts, Transient,
    testing::{self, Reply},
};
use redial_jobs::{BoxError, JobContext, JobError, State};
use tower::{Layer, ServiceExt};

use crate::{
    place::Place,
    team::{Plain, Team, add, plain, runner, states, until_state},
};

/// The first attempt is processed and its answer lost; what follows is down. Then another process repeats it.
pub async fn c166_one_key_on_every_attempt_and_every_run(place: &Place) {
    add(&place.store, &plain("a")).await;
    let replies = [Reply::reset(), Reply::status(503), Reply::status(503), Reply::ok("an order")];
    let service = testing::service(replies);
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let tick = Duration::from_millis(10);
    let quick = redial::Backoff::exponential(2 * tick).max(4 * tick).floor(tick);
    let policy = StandardPolicy::builder("shop", timeouts, Transient::usual()).backoff(quick).build().unwrap();
    let client = RetryLayer::new(policy).layer(service.clone());
    let handler = move |_: Plain, cx: JobContext| {
        let client = client.clone();
        async move {
            let request = http::Request::post("/orders").header("idempotency-key", cx.key("order"));
            let request = request.body(http_body_util::Full::<bytes::Bytes>::from("one more")).unwrap();
            JobError::of_answer(&client.oneshot(request).await?)
        }
    };
    let first = runner(&place.store).recovery_elsewhere(redial_jobs::Recovery::default());
    let first = Team::start(first.on(handler.clone()));
    let rows = until_state(&place.store, State::Failed, 1).await;
    assert!(rows[0].outcome_unknown);
    assert_eq!(
        rows[0].history.iter().map(|attempt| attempt.outcome.as_str()).collect::<Vec<_>>(),
        ["reset", "503", "503"]
    );
    first.end().await;

    let tomorrow = place.later(Duration::from_secs(24 * 3600));
    let second = Team::start(runner(&tomorrow).on(handler));
    let rows = until_state(&place.store, State::Completed, 1).await;
    assert_eq!(states(&rows), [State::Failed, State::Completed]);
    second.end().await;

    let seen = service.seen();
    seen.sent(4);
    // By which the server knows that it is one order.
    let keys: HashSet<_> = seen.requests.iter().map(|request| request.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

pub async fn c166_another_body_has_another_key(place: &Place) {
    let keys = Arc::new(Mutex::new(Vec::new()));
    add(&place.store, &plain("a")).await;
    let seen = keys.clone();
    let team = Team::start(runner(&place.store).on(move |_: Plain, cx: JobContext| {
        // Somebody edits the text before the second run; the third has that of the second.
        let body = if cx.attempt() == 1 { "first words" } else { "second thoughts" };
        seen.lock().unwrap().push(cx.key_for("post", body.as_bytes()));
        let attempt = cx.attempt();
        async move { if attempt < 3 { Err::<(), BoxError>("again".into()) } else { Ok(()) } }
    }));
    until_state(&place.store, State::Completed, 1).await;
    team.end().await;
    let keys = keys.lock().unwrap();
    assert!(keys[0] != keys[1] && keys[1] == keys[2], "{keys:?}");
}
