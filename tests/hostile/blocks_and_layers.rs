//! A whole stack within a block: a key, and a recovery.

use std::{
    cell::Cell,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use redial::{
    Error, Failure, IdempotencyKeyLayer, RecoverLayer, RequestOptions, RetryLayer,
    layers::{Failure as Final, RecoverBody},
};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    policies::policy,
    script::{Failure as Fails, Script, ScriptBody, fail, request, status},
};

/// A server that knows keys: one effect a key. What a block repeats is one call (D34), so it has one key; or none at all,
/// as below a retry layer.
#[tokio::test(start_paused = true)]
async fn a_block_never_repeats_a_post_under_another_key() {
    let script = Script::new([fail(Fails::Reset), fail(Fails::Reset), status(201)]);
    let stack = ServiceBuilder::new().layer(IdempotencyKeyLayer::new()).layer(RetryLayer::new(policy()));
    let client = stack.service(script.clone());
    let block = redial::retry(&policy(), |_| async {
        Failure::check(client.clone().oneshot(request(Method::POST)).await?).map(drop)
    });
    let result: Result<(), Error> = block.idempotent("the POST carries a key").await;
    result.unwrap();
    let mut keys: Vec<_> = script.seen().iter().map(|seen| seen.headers.get("idempotency-key").cloned()).collect();
    assert_eq!(keys.len(), 3);
    keys.dedup();
    assert_eq!(keys.len(), 1, "one call, and to the server three: {keys:?}");
}

/// Whoever stands above a `RecoverLayer` never sees a 503: "the one place where a final failure becomes the caller's own
/// error, or an answer instead".
#[tokio::test(start_paused = true)]
async fn above_a_recover_layer_there_is_no_503_within_a_block_either() {
    #[derive(Debug)]
    struct Unavailable;
    impl std::fmt::Display for Unavailable {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("not available")
        }
    }
    impl std::error::Error for Unavailable {}
    fn recover<B>(_: Final<B>) -> Result<Response<RecoverBody<B>>, Unavailable> {
        Err(Unavailable)
    }
    let script = Script::always(status(503));
    let client = ServiceBuilder::new()
        .layer(RecoverLayer::new(recover::<redial::AnswerBody<ScriptBody>>))
        .layer(RetryLayer::new(policy()))
        .service(script.clone());
    // Outside of a block, it is the caller's own error.
    client.clone().oneshot(request(Method::GET)).await.map(drop).unwrap_err();
    let seen = Cell::new(None);
    let block = redial::retry(&policy(), |_| async {
        let answer = client.clone().oneshot(request(Method::GET)).await?;
        seen.set(Some(answer.status()));
        Ok(answer.status())
    });
    let result: Result<StatusCode, Error> =
        block.idempotent("it only reads").options(RequestOptions::new().attempts(1)).await;
    assert!(result.is_err(), "the block took {result:?} for what it had asked for");
}

/// Within a block a recovery is asked at each attempt, and its answer ends the block: around the block is its place.
#[tokio::test(start_paused = true)]
async fn a_fallback_within_a_block_ends_it() {
    fn recover<B>(_: Final<B>) -> Result<Response<RecoverBody<B>>, Infallible> {
        Ok(Response::builder().status(203).body("yesterday's prices".into()).unwrap())
    }
    let script = Script::new([fail(Fails::Reset), status(200), status(200)]);
    let client = ServiceBuilder::new()
        .layer(RecoverLayer::new(recover::<redial::AnswerBody<ScriptBody>>))
        .layer(RetryLayer::new(policy()))
        .service(script.clone());
    let block = redial::retry(&policy(), |_| async {
        Ok(client.clone().oneshot(request(Method::GET)).await?.status().as_u16())
    });
    let result: Result<u16, Error> = block.idempotent("it only reads").await;
    assert_eq!((result.unwrap(), script.count()), (203, 1));
}

/// A POST that was reset may have taken effect, within a block too: whoever recovers from it is told so.
#[tokio::test(start_paused = true)]
async fn a_recovery_within_a_block_knows_that_the_outcome_is_unknown() {
    let unknown = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&unknown);
    let recover = move |failure: Final<redial::AnswerBody<ScriptBody>>| {
        told.lock().unwrap().push(failure.outcome_unknown());
        failure.into_answer()
    };
    let client = ServiceBuilder::new()
        .layer(RecoverLayer::new(recover))
        .layer(RetryLayer::new(policy()))
        .service(Script::always(fail(Fails::Reset)));
    client.clone().oneshot(request(Method::POST)).await.map(drop).unwrap_err();
    let block =
        redial::retry(&policy(), |_| async { Ok(client.clone().oneshot(request(Method::POST)).await.map(drop)?) });
    let result: Result<(), Error> = block.as_the_policy_says().await;
    result.unwrap_err();
    assert_eq!(*unknown.lock().unwrap(), [true, true], "outside of a block, and within");
}

/// The same of the error itself: "look whether it is done already".
#[tokio::test(start_paused = true)]
async fn an_error_within_a_block_does_not_say_that_nothing_happened() {
    let client = RetryLayer::new(policy()).layer(Script::always(fail(Fails::Reset)));
    let block = redial::retry(&policy(), |_| async {
        let error = client.clone().oneshot(request(Method::POST)).await.map(drop).unwrap_err();
        Ok(error.report().is_none_or(|report| report.outcome_unknown()))
    });
    let result: Result<bool, Error> = block.as_the_policy_says().await;
    assert!(result.unwrap(), "it was sent, and its answer was lost");
}

/// Two callers of one client, one within a block: the other's key and repeats are its own.
#[tokio::test(start_paused = true)]
async fn a_block_does_not_reach_the_call_beside_it() {
    let inside = Script::always(status(503));
    let outside = Script::always(status(503));
    let call = |script: &Script| {
        let client = RetryLayer::new(policy()).layer(script.clone());
        async move { client.oneshot(request(Method::GET)).await }
    };
    let block = async {
        let block = redial::retry(&policy(), |_| async { Failure::check(call(&inside).await?).map(drop) });
        block.idempotent("it only reads").await
    };
    let (block, beside) = tokio::join!(block, call(&outside));
    assert!(block.is_err() && beside.is_ok());
    assert_eq!((inside.count(), outside.count()), (3, 3));
}

/// What the server does with a key, over a block that never says it is safe: it is sent once.
#[tokio::test(start_paused = true)]
async fn a_block_without_evidence_sends_once_though_there_is_a_key() {
    let effects = Arc::new(Mutex::new(0));
    let count = Arc::clone(&effects);
    let server = service_fn(move |_: Request<redial::AttemptBody<Full<Bytes>>>| {
        *count.lock().unwrap() += 1;
        async {
            Err::<Response<Full<Bytes>>, redial::BoxError>(
                std::io::Error::from(std::io::ErrorKind::ConnectionReset).into(),
            )
        }
    });
    let stack =
        ServiceBuilder::new().layer(IdempotencyKeyLayer::new()).layer(RetryLayer::new(policy())).service(server);
    let block =
        redial::retry(&policy(), |_| async { Ok(stack.clone().oneshot(request(Method::POST)).await.map(drop)?) });
    let result: Result<(), Error> = block.as_the_policy_says().await;
    assert!(result.is_err());
    assert_eq!(*effects.lock().unwrap(), 1);
}

/// An independent call that was answered 503 three times has made its repeats, as one that was reset three times has
/// ("final: its repeats were made"): the block does not multiply them.
#[tokio::test(start_paused = true)]
async fn the_last_answer_of_an_independent_call_is_final() {
    let tokens = Script::always(status(503));
    let client = RetryLayer::new(policy()).layer(tokens.clone());
    let block = redial::retry(&policy(), |_| {
        let client = client.clone();
        redial::independent(async { Failure::check(client.oneshot(request(Method::GET)).await?).map(drop) })
    });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    assert_eq!((result.unwrap_err().stop(), tokens.count()), (Some(redial::StopReason::Permanent), 3));
}

/// So has one that was made in a task of its own.
#[tokio::test(start_paused = true)]
async fn the_last_answer_of_a_spawned_call_is_final() {
    let script = Script::always(status(503));
    let client = RetryLayer::new(policy()).layer(script.clone());
    let block = redial::retry(&policy(), |_| {
        let client = client.clone();
        async { Failure::check(tokio::spawn(client.oneshot(request(Method::GET))).await??).map(drop) }
    });
    let result: Result<(), Error> = block.idempotent("it only reads").await;
    result.unwrap_err();
    assert_eq!(script.count(), 3);
}

/// An independent call that is told to wait for longer than its block's attempt lasts: it is cut in its wait, and with it
/// goes what the server said. Had it known when the attempt ends, it would have stopped at once and said so.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_earlier_than_an_independent_call_was_told() {
    let tokens = Script::always(status(503).retry_after("50"));
    let start = tokio::time::Instant::now();
    let client = RetryLayer::new(policy()).layer(tokens.clone());
    let block = redial::retry(&policy(), |_| {
        let client = client.clone();
        redial::independent(async { Failure::check(client.oneshot(request(Method::GET)).await?).map(drop) })
    });
    let _: Result<(), Error> = block.idempotent("it only reads").await;
    assert!(tokens.millis(start).iter().skip(1).all(|at| *at >= 50_000), "{:?}", tokens.millis(start));
}

/// "The whole call may take at most this long": what one request asks for itself, within a block too.
#[tokio::test(start_paused = true)]
async fn what_one_request_asks_for_itself_holds_within_a_block() {
    let client = RetryLayer::new(policy()).layer(Script::always(crate::script::hang()));
    let start = tokio::time::Instant::now();
    let block = redial::retry(&policy(), |_| async {
        let mut request = request(Method::GET);
        request.extensions_mut().insert(RequestOptions::new().total(crate::script::ms(50)));
        Ok(client.clone().oneshot(request).await.map(drop)?)
    });
    let block = block.idempotent("it only reads").options(RequestOptions::new().attempts(1));
    let result: Result<(), Error> = block.await;
    result.unwrap_err();
    assert_eq!(start.elapsed(), crate::script::ms(50));
}

/// What does not pass does not pass within a block either.
#[tokio::test]
async fn a_recovery_within_a_block_knows_what_does_not_pass() {
    let classes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&classes);
    let recover = move |failure: Final<_>| {
        told.lock().unwrap().push(failure.class());
        failure.into_answer()
    };
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new().layer(RecoverLayer::new(recover)).layer(RetryLayer::new(policy())).service(http);
    // A scheme that this client does not speak (D15).
    let request = || Request::get("https://api.example/").body(Full::<Bytes>::default()).unwrap();
    client.clone().oneshot(request()).await.map(drop).unwrap_err();
    let block = redial::retry(&policy(), |_| async { Ok(client.clone().oneshot(request()).await.map(drop)?) });
    let result: Result<(), Error> = block.as_the_policy_says().await;
    result.unwrap_err();
    assert_eq!(*classes.lock().unwrap(), [redial::Class::Permanent; 2], "outside of a block, and within");
}
