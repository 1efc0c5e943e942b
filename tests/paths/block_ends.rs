//! When a block ends: its total, a caller's deadline, and whoever drops it.

use std::cell::Cell;

use http::Method;
use redial::{Budget, Deadline, Failure, OutboundHints, RetryLayer, StopReason, policy::budget::BudgetSetting};
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, ServiceExt};
use tracing::Level;

use crate::{
    block::reset,
    capture::Capture,
    policies::{builder, builder_within, policy, timeouts},
    script::{Script, ms, request, secs, status},
};

#[tokio::test(start_paused = true)]
async fn never_past_the_total() {
    let policy = builder_within(timeouts(1_000, 1_500)).build().unwrap();
    let start = Instant::now();
    let block = redial::retry(&policy, |_| std::future::pending::<Result<(), Failure>>());
    let error = block.idempotent("it only reads").await.unwrap_err();
    assert_eq!(start.elapsed(), ms(1_500));
    assert_eq!(
        (error.is_deadline(), error.is_outer_deadline(), error.stop()),
        (true, false, Some(StopReason::Deadline))
    );
    assert_eq!(error.report().unwrap().attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn never_past_a_deadline() {
    let policy = policy();
    let hang = || redial::retry(&policy, |_| std::future::pending::<Result<(), Failure>>()).idempotent("it only reads");
    let start = Instant::now();
    let error = hang().deadline(Deadline::after(ms(300))).deadline(Deadline::after(secs(9))).await.unwrap_err();
    assert_eq!((start.elapsed(), error.is_outer_deadline()), (ms(300), true));

    // The deadline of whoever is being served.
    let start = Instant::now();
    let error =
        OutboundHints::new().with_deadline(Deadline::after(ms(200))).scope(async { hang().await }).await.unwrap_err();
    assert_eq!((start.elapsed(), error.is_outer_deadline()), (ms(200), true));

    // Too late to begin.
    let ran = Cell::new(false);
    let block = redial::retry(&policy, |_| {
        ran.set(true);
        async { Ok(()) }
    });
    let error = block.idempotent("it only reads").deadline(Deadline::at(Instant::now())).await.unwrap_err();
    assert!(error.is_outer_deadline() && !ran.get());
    assert!(error.report().unwrap().attempts().is_empty());
}

/// A wait that would cross it is not begun.
#[tokio::test(start_paused = true)]
async fn no_wait_across_the_end() {
    let policy = policy();
    let start = Instant::now();
    let block = redial::retry(&policy, |_| async { Err::<(), Failure>(reset().into()) });
    let error = block.idempotent("it only reads").deadline(Deadline::after(ms(150))).await.unwrap_err();
    assert_eq!((start.elapsed(), error.stop()), (ms(100), Some(StopReason::Deadline)));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_repeats_is_not_repeated_for() {
    let ran = Cell::new(0);
    let policy = policy();
    let hints = OutboundHints::new().with_caller_attempt(2).once_when_caller_retries();
    let block = redial::retry(&policy, |_| {
        ran.set(ran.get() + 1);
        async { Err::<(), Failure>(reset().into()) }
    });
    let error = hints.scope(async { block.idempotent("it only reads").await }).await.unwrap_err();
    assert_eq!((ran.get(), error.stop()), (1, Some(StopReason::CallerRetries)));
    assert!(error.to_string().contains("the caller itself is a retry"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_point_it_leaves_nothing_behind() {
    for (at, phase, attempt, spent) in
        [(50, "in flight", "1", 0.0), (150, "waiting", "1", 0.0), (250, "in flight", "2", 1.0)]
    {
        let (capture, _guard) = Capture::start();
        let budget = Budget::custom(BudgetSetting::bucket(5.0)).unwrap();
        let policy = builder().budget(budget.clone()).build().unwrap();
        let running = std::rc::Rc::new(());
        let block = redial::retry(&policy, |_| {
            let running = std::rc::Rc::clone(&running);
            async move {
                let _running = running;
                sleep(ms(100)).await;
                Err::<(), Failure>(reset().into())
            }
        });
        assert!(timeout(ms(at), async { block.idempotent("it only reads").await }).await.is_err());
        assert_eq!((std::rc::Rc::strong_count(&running), budget.level()), (1, 5.0 - spent), "{phase}");
        let cancelled: Vec<_> = capture.ours().into_iter().filter(|said| said.get("message") == "cancelled").collect();
        assert_eq!(cancelled.len(), 1, "{phase}");
        assert_eq!((cancelled[0].get("phase"), cancelled[0].get("attempt")), (phase, attempt));
        assert!(capture.at(Level::ERROR).is_empty());
        assert_eq!(OutboundHints::current(), OutboundHints::new());
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_nothing_until_it_is_polled() {
    let (capture, _guard) = Capture::start();
    let policy = policy();
    let block = redial::retry(&policy, |_| -> std::future::Ready<Result<(), Failure>> { unreachable!("not polled") });
    drop(std::future::IntoFuture::into_future(block.idempotent("it only reads")));
    assert!(capture.ours().is_empty());
}

/// After a block, dropped or not, calls are paths of their own again.
#[tokio::test(start_paused = true)]
async fn what_comes_after_is_on_its_own() {
    let policy = policy();
    let block = redial::retry(&policy, |_| async {
        sleep(ms(10)).await;
        Ok(())
    });
    block.idempotent("it only reads").await.unwrap();
    let panics = redial::retry(&policy, |_| -> std::future::Ready<Result<(), Failure>> { panic!("as planned") });
    let panics = panics.idempotent("it only reads");
    let panics = std::panic::AssertUnwindSafe(async { panics.await });
    assert!(futures_util::FutureExt::catch_unwind(panics).await.is_err());
    let script = Script::always(status(503));
    RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 3);
}
