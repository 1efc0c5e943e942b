//! A block and the calls within it are one path (D34).

use std::{cell::Cell, cell::RefCell, future::Future};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use redial::{
    CallReport, Deadline, Error, Failure, OutboundHints, RetryLayer, StandardPolicy, StopReason,
    layers::{InboundLayer, OutboundHeadersLayer},
    retry::Retry,
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tracing::Level;

use crate::{
    capture::Capture,
    policies::policy,
    script::{Failure as Fails, Script, fail, hang, ms, request, secs, status},
};

type Client = Retry<Script, StandardPolicy>;

fn client(script: &Script) -> Client {
    RetryLayer::new(policy()).layer(script.clone())
}

/// One call, whose answer is checked.
async fn ask(client: Client) -> Result<(), Failure> {
    Failure::check(client.oneshot(request(Method::GET)).await?).map(drop)
}

/// A block of three attempts.
async fn block<Fut: Future<Output = Result<T, Failure>>, T>(call: impl Fn() -> Fut) -> Result<T, Error> {
    redial::retry(&policy(), |_| call()).idempotent("it only reads").await
}

#[tokio::test(start_paused = true)]
async fn three_attempts_stay_three() {
    let (capture, _guard) = Capture::start();
    let script = Script::always(status(503));
    let start = Instant::now();
    let error = block(|| ask(client(&script))).await.unwrap_err();
    assert_eq!((script.count(), script.millis(start)), (3, vec![0, 100, 200]));
    assert!(error.is_exhausted() && error.report().unwrap().inner_stacked(), "{error:?}");
    // One failure, said once; and that its calls do not repeat is as it is meant.
    assert_eq!(capture.at(Level::ERROR).len(), 1);
    assert!(capture.at(Level::WARN).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_answer_says_why_it_was_not_repeated() {
    let script = Script::always(status(503));
    let stop = block(|| async {
        let response = client(&script).oneshot(request(Method::GET)).await?;
        Ok(response.extensions().get().and_then(CallReport::stop))
    });
    assert_eq!((stop.await.unwrap(), script.count()), (Some(StopReason::Stacked), 1));
}

#[tokio::test(start_paused = true)]
async fn errors_pass_through() {
    let script = Script::new([fail(Fails::Reset), fail(Fails::Unsent), fail(Fails::Strange)]);
    let error = block(|| ask(client(&script))).await.unwrap_err();
    // The last is nobody's.
    assert_eq!((script.count(), error.stop()), (3, Some(StopReason::Permanent)));
    assert!(error.to_string().ends_with("something strange"), "{error}");
    assert!(error.report().unwrap().inner_stacked());
}

#[tokio::test(start_paused = true)]
async fn what_the_server_said_is_heeded() {
    let script = Script::new([status(429).retry_after("3"), status(200)]);
    let start = Instant::now();
    block(|| ask(client(&script))).await.unwrap();
    let sent = script.millis(start);
    assert!(sent.len() == 2 && sent[1] >= 3_000, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_the_blocks_attempt() {
    let script = Script::always(status(503));
    let below = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(OutboundHeadersLayer::new());
    let below = below.service(script.clone());
    block(|| async {
        tokio::time::sleep(ms(250)).await;
        Failure::check(below.clone().oneshot(request(Method::GET)).await?).map(drop)
    })
    .await
    .unwrap_err();
    let seen = script.seen();
    assert_eq!(seen.iter().map(|seen| seen.attempt).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    let told = |name| seen.iter().map(move |seen| seen.headers[name].to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(told("x-envoy-attempt-count"), ["1", "2", "3"]);
    assert_eq!(told("x-envoy-expected-rq-timeout-ms"), ["750"; 3]);
}

/// Two at once, and one that is called before the block's future is polled.
#[tokio::test(start_paused = true)]
async fn however_it_is_called() {
    let script = Script::always(status(503));
    let both = || async { tokio::join!(ask(client(&script)), ask(client(&script))).0 };
    block(both).await.unwrap_err();
    assert_eq!(script.count(), 6);

    let script = Script::always(status(503));
    let mut ready: Vec<_> = (0..3).map(|_| client(&script)).collect();
    for client in &mut ready {
        ServiceExt::<Request<Full<Bytes>>>::ready(client).await.unwrap();
    }
    let ready = RefCell::new(ready);
    let eager = || {
        let call = ready.borrow_mut().pop().unwrap().call(request(Method::GET));
        async { Failure::check(call.await?).map(drop) }
    };
    block(eager).await.unwrap_err();
    assert_eq!(script.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_independent_call_repeats_by_itself() {
    // The token is there at the second try, the page at the third attempt of the block.
    let tokens = Script::new([status(503), status(200), status(200), status(200)]);
    let pages = Script::new([status(503), status(503), status(200)]);
    block(|| async {
        redial::independent(ask(client(&tokens))).await?;
        ask(client(&pages)).await
    })
    .await
    .unwrap();
    assert_eq!((tokens.count(), pages.count()), (4, 3));
}

/// Its repeats were made: the block does not multiply them.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_independent_call_is_final() {
    let tokens = Script::always(fail(Fails::Reset));
    let error = block(|| redial::independent(ask(client(&tokens)))).await.unwrap_err();
    assert_eq!((tokens.count(), error.stop()), (3, Some(StopReason::Permanent)));
    assert!(error.find_source::<Error>().unwrap().is_exhausted());
    // Unless the block says otherwise.
    let tokens = Script::always(fail(Fails::Reset));
    let insisting = || async {
        let fetched = redial::independent(async { client(&tokens).oneshot(request(Method::GET)).await }).await;
        fetched.map(drop).map_err(Failure::transient)
    };
    block(insisting).await.unwrap_err();
    assert_eq!(tokens.count(), 9);
}

#[tokio::test(start_paused = true)]
async fn blocks_within_blocks() {
    let (capture, _guard) = Capture::start();
    let runs = Cell::new(0);
    let inner = || {
        runs.set(runs.get() + 1);
        async { Err::<(), Failure>(Failure::transient("not yet")) }
    };
    let error = block(|| async { Ok(block(inner).await?) }).await.unwrap_err();
    assert_eq!((runs.get(), error.stop()), (3, Some(StopReason::Attempts)));
    assert!(error.report().unwrap().inner_stacked());
    assert_eq!(capture.at(Level::ERROR).len(), 1);
}

/// What the inner block says, it says to the outer one.
#[tokio::test(start_paused = true)]
async fn an_inner_blocks_word_holds() {
    let start = Instant::now();
    let began = RefCell::new(Vec::new());
    let inner = || {
        began.borrow_mut().push(start.elapsed());
        let first = began.borrow().len() == 1;
        async move {
            match first {
                true => Err(Failure::retry_after("busy", secs(4))),
                false => Err::<(), _>(Failure::permanent("no such order")),
            }
        }
    };
    let error = block(|| async { Ok(block(inner).await?) }).await.unwrap_err();
    let began = began.into_inner();
    assert!(began.len() == 2 && began[1] >= secs(4), "{began:?}");
    assert_eq!(error.stop(), Some(StopReason::Permanent));
    assert!(error.to_string().ends_with("no such order"), "{error}");
}

/// A spawned task does not know: its calls repeat by themselves, and their end is final.
#[tokio::test(start_paused = true)]
async fn across_a_spawn_it_has_to_be_carried() {
    let script = Script::always(fail(Fails::Reset));
    let spawned = || async { Ok(tokio::spawn(client(&script).oneshot(request(Method::GET))).await?.map(drop)?) };
    let error = block(spawned).await.unwrap_err();
    assert_eq!((script.count(), error.stop()), (3, Some(StopReason::Permanent)));

    let script = Script::always(fail(Fails::Reset));
    let carried = || async {
        let call = OutboundHints::current().scope(client(&script).oneshot(request(Method::GET)));
        Ok(tokio::spawn(call).await?.map(drop)?)
    };
    let start = Instant::now();
    let error = block(carried).await.unwrap_err();
    assert_eq!((script.millis(start), error.stop()), (vec![0, 100, 200], Some(StopReason::Attempts)));
}

/// A server that is called in process within a block is a path of its own.
#[tokio::test(start_paused = true)]
async fn a_server_within_begins_a_new_path() {
    let script = Script::always(status(503));
    let asking = client(&script);
    let handler = service_fn(move |_: Request<Full<Bytes>>| {
        let client = asking.clone();
        async move { client.oneshot(request(Method::GET)).await.map(|answer| Response::new(answer.status())) }
    });
    let server = InboundLayer::new().layer(handler);
    block(|| async { Ok(server.clone().oneshot(request(Method::GET)).await?) }).await.unwrap();
    assert_eq!(script.count(), 3);
}

/// A request's own deadline holds, although nothing else of its layer does.
#[tokio::test(start_paused = true)]
async fn a_requests_own_deadline_holds() {
    let script = Script::new([hang(), hang(), hang()]);
    let start = Instant::now();
    let call = |left| {
        let client = client(&script);
        async move {
            let mut request = request(Method::GET);
            request.extensions_mut().insert(Deadline::after(left));
            Ok(client.oneshot(request).await.map(drop)?)
        }
    };
    let error = block(|| call(ms(50))).await.unwrap_err();
    assert_eq!((script.millis(start), start.elapsed()), (vec![0, 150, 300], ms(350)));
    assert!(error.is_timeout() && error.find_source::<Error>().unwrap().is_outer_deadline(), "{error:?}");
    // Too late to be sent at all.
    block(|| call(ms(0))).await.unwrap_err();
    assert_eq!(script.count(), 3);
}

/// A second layer below, hidden, is one too many here as anywhere.
#[tokio::test(start_paused = true)]
async fn two_layers_are_still_two() {
    let (capture, _guard) = Capture::start();
    let script = Script::always(status(503));
    let second = client(&script);
    let hidden = service_fn(move |request: Request<redial::AttemptBody<Full<Bytes>>>| {
        let (parts, _) = request.into_parts();
        second.clone().oneshot(Request::from_parts(parts, Full::<Bytes>::default()))
    });
    let stack = RetryLayer::new(policy()).layer(hidden);
    block(|| async { Failure::check(stack.clone().oneshot(request(Method::GET)).await?).map(drop) }).await.unwrap_err();
    assert_eq!((script.count(), capture.at(Level::WARN).len()), (3, 1));
}
