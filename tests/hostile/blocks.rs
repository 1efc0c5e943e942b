//! Blocks within blocks, deadlines within blocks, and what a report says of them.

use std::cell::{Cell, RefCell};

use http::Method;
use redial::{Deadline, Error, Failure, OutboundHints, RetryLayer, StopReason};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};

use crate::{
    policies::policy,
    script::{Script, hang, ms, request, secs, status},
};

/// Its repeats were made: the outer block does not multiply them, however it was made.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_independent_block_is_final_though_it_was_made_of_blocks() {
    let runs = Cell::new(0);
    let part = || async {
        runs.set(runs.get() + 1);
        Err::<(), Failure>(Failure::transient("not yet"))
    };
    // An independent block with a part: three attempts of its own.
    let independent = || async {
        let whole = redial::retry(&policy(), |_| async {
            Ok(redial::retry(&policy(), |_| part()).idempotent("it only reads").await?)
        });
        redial::independent(whole.idempotent("it only reads").into_future()).await
    };
    let outer = redial::retry(&policy(), |_| async { Ok(independent().await?) });
    let error: Error = outer.idempotent("it only reads").await.unwrap_err();
    assert_eq!((runs.get(), error.stop()), (3, Some(StopReason::Permanent)), "{error}");
}

/// The same without the part within: it is final.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_plain_independent_block_is_final() {
    let runs = Cell::new(0);
    let independent = || async {
        let whole = redial::retry(&policy(), |_| async {
            runs.set(runs.get() + 1);
            Err::<(), _>(Failure::transient("not yet"))
        });
        redial::independent(whole.idempotent("it only reads").into_future()).await
    };
    let outer = redial::retry(&policy(), |_| async { Ok(independent().await?) });
    let error: Error = outer.idempotent("it only reads").await.unwrap_err();
    assert_eq!((runs.get(), error.stop()), (3, Some(StopReason::Permanent)), "{error}");
}

/// A block that was spawned, and is made of blocks.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_spawned_block_is_final_though_it_was_made_of_blocks() {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let outer = redial::retry(&policy(), |_| {
        let runs = runs.clone();
        async move {
            let spawned = tokio::spawn(async move {
                let policy = policy();
                redial::retry(&policy, |_| async {
                    let part = redial::retry(&policy, |_| async {
                        runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        Err::<(), _>(Failure::transient("not yet"))
                    });
                    Ok(part.idempotent("it only reads").await?)
                })
                .idempotent("it only reads")
                .await
            });
            Ok(spawned.await??)
        }
    });
    let error: Error = outer.idempotent("it only reads").await.unwrap_err();
    let runs = runs.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((runs, error.stop()), (3, Some(StopReason::Permanent)), "{error}");
}

/// A deadline that the request carries as a hint holds within a block as it does outside of one.
#[tokio::test(start_paused = true)]
async fn a_requests_hinted_deadline_holds_within_a_block() {
    let script = Script::new([hang(), hang(), hang()]);
    let start = Instant::now();
    let outer = redial::retry(&policy(), |_| async {
        let mut request = request(Method::GET);
        request.extensions_mut().insert(OutboundHints::new().with_deadline(Deadline::after(ms(50))));
        let result = RetryLayer::new(policy()).layer(script.clone()).oneshot(request).await.map(drop);
        assert_eq!(start.elapsed().as_millis() % 1_000, 50, "its own deadline was 50 ms: {result:?}");
        Ok(result?)
    });
    let _: Result<(), Error> =
        outer.idempotent("it only reads").options(redial::RequestOptions::new().attempts(1)).await;
    assert_eq!(start.elapsed(), ms(50));
}

/// And so does one that is around a part of the block.
#[tokio::test(start_paused = true)]
async fn a_scoped_deadline_holds_within_a_block() {
    let script = Script::new([hang()]);
    let start = Instant::now();
    let outer = redial::retry(&policy(), |_| async {
        let call =
            async { RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.map(drop) };
        Ok(OutboundHints::new().with_deadline(Deadline::after(ms(50))).scope(call).await?)
    });
    let _: Result<(), Error> =
        outer.idempotent("it only reads").options(redial::RequestOptions::new().attempts(1)).await;
    assert_eq!(start.elapsed(), ms(50));
}

/// A scoped deadline that has passed: what comes too late is not sent.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_past_a_scoped_deadline_within_a_block() {
    let script = Script::always(status(200));
    let outer = redial::retry(&policy(), |_| async {
        let call =
            async { RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await.map(drop) };
        Ok(OutboundHints::new().with_deadline(Deadline::after(ms(0))).scope(call).await?)
    });
    let _: Result<(), Error> = outer.idempotent("it only reads").await;
    assert_eq!(script.count(), 0);
}

/// "Ends by then, or earlier."
#[tokio::test(start_paused = true)]
async fn an_inner_blocks_own_deadline_holds() {
    let start = Instant::now();
    let outer = redial::retry(&policy(), |_| async {
        let inner = redial::retry(&policy(), |attempt| async move {
            assert!(attempt.deadline().remaining() <= ms(50), "{:?}", attempt.deadline().remaining());
            sleep(ms(900)).await;
            Ok(())
        });
        Ok(inner.idempotent("it only reads").deadline(Deadline::after(ms(50))).await?)
    });
    let result: Result<(), Error> =
        outer.idempotent("it only reads").options(redial::RequestOptions::new().attempts(1)).await;
    assert_eq!(start.elapsed(), ms(50), "{result:?}");
}

/// A call that is made before the block's future is polled is one of its calls (`however_it_is_called`), and its report
/// says so.
#[tokio::test(start_paused = true)]
async fn an_eager_call_is_in_the_report() {
    let script = Script::always(status(503));
    let mut ready: Vec<_> = (0..3).map(|_| RetryLayer::new(policy()).layer(script.clone())).collect();
    for client in &mut ready {
        ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(client).await.unwrap();
    }
    let ready = RefCell::new(ready);
    let outer = redial::retry(&policy(), |_| {
        let call = ready.borrow_mut().pop().unwrap().call(request(Method::GET));
        async { Failure::check(call.await.map_err(Failure::from)?).map(drop) }
    });
    let error: Error = outer.idempotent("it only reads").await.unwrap_err();
    assert_eq!(script.count(), 3);
    assert!(error.report().unwrap().inner_stacked(), "{error:?}");
}

/// What an independent block's calls came through is not this block's.
#[tokio::test(start_paused = true)]
async fn an_eager_call_of_an_independent_block_is_not_in_the_outer_report() {
    let script = Script::always(status(503));
    let outer = redial::retry(&policy(), |_| async {
        let mut client = RetryLayer::new(policy()).layer(script.clone());
        ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(&mut client).await?;
        let client = RefCell::new(Some(client));
        let whole = redial::retry(&policy(), |_| {
            let call = client.borrow_mut().take().unwrap().call(request(Method::GET));
            async { Failure::check(call.await?).map(drop) }
        });
        let whole = whole.idempotent("it only reads").options(redial::RequestOptions::new().attempts(1));
        let _ = redial::independent(whole.into_future()).await;
        Err::<(), _>(Failure::transient("nothing came through a second layer here"))
    });
    let error: Error = outer.idempotent("it only reads").await.unwrap_err();
    assert!(!error.report().unwrap().inner_stacked(), "{error:?}");
}

/// A block that sleeps beyond everything is cut, and a part of it as well.
#[tokio::test(start_paused = true)]
async fn a_part_is_cut_with_its_block() {
    let start = Instant::now();
    let outer = redial::retry(&policy(), |_| async {
        let inner = redial::retry(&policy(), |_| async {
            sleep(secs(3_600)).await;
            Ok(())
        });
        Ok(inner.idempotent("it only reads").await?)
    });
    let result: Result<(), Error> = outer.idempotent("it only reads").await;
    assert!(result.unwrap_err().is_timeout());
    assert_eq!(start.elapsed(), ms(3_200));
}
