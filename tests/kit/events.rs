//! Events, captured.

use redial::{RetryLayer, StandardPolicy, Timeouts, Transient, testing::Events};
use tower::Layer;
use tracing::Level;

use super::*;

async fn call(replies: Vec<Reply>) -> Result<u16, redial::Error> {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(60) };
    let layer = RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap());
    let request = Request::get("/x").body(Full::<Bytes>::default()).unwrap();
    layer.layer(testing::service(replies)).oneshot(request).await.map(|response| response.status().as_u16())
}

#[tokio::test(start_paused = true)]
async fn one_error() {
    let events = Events::capture();
    tracing::error!("somebody else's");
    call(vec![Reply::reset()]).await.unwrap_err();
    let error = events.one_error();
    assert_eq!((error.level, &*error.message), (Level::ERROR, "failed"));
    assert_eq!([error.get("stop"), error.get("provider"), error.get("nothing")], ["attempts", "orders", ""]);
    assert_eq!(events.at(Level::DEBUG).len(), 2);
    assert_eq!(events.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_error() {
    let events = Events::capture();
    assert_eq!(call(vec![Reply::reset(), Reply::ok("done")]).await.unwrap(), 200);
    events.no_error();
    assert_eq!(events.at(Level::INFO).len(), 1);
}

#[tokio::test(start_paused = true)]
#[should_panic = "expected one ERROR, but this was said: nothing"]
async fn none_where_one_is_expected() {
    Events::capture().one_error();
}

#[tokio::test(start_paused = true)]
#[should_panic = "expected one ERROR, but this was said:\n  DEBUG attempt failed, will be repeated"]
async fn two_where_one_is_expected() {
    let events = Events::capture();
    for _ in 0..2 {
        call(vec![Reply::reset()]).await.unwrap_err();
    }
    events.one_error();
}

/// Captured too when other threads, which do not listen, were there first; and nothing of theirs.
#[test]
fn beside_other_threads() {
    let run = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let others: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(move || run().block_on(call(vec![Reply::reset()])).map(drop).unwrap_err()))
        .collect();
    let events = Events::capture();
    run().block_on(call(vec![Reply::reset()])).unwrap_err();
    events.one_error();
    others.into_iter().for_each(|other| drop(other.join().unwrap()));
    events.one_error();
}
