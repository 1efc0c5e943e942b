//! What a caller says, read from several places at once.

use std::{cell::RefCell, convert::Infallible};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use redial::{
    Deadline, OutboundHints, RetryLayer,
    layers::{HintHeader, InboundLayer, OutboundHeadersLayer},
};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    policies::policy,
    script::{Script, hang, ms, request, secs, status},
};

async fn hints_of(
    layer: impl Layer<
        Probe,
        Service: tower::Service<Request<Full<Bytes>>, Error = Infallible, Response = Response<OutboundHints>>,
    >,
    request: Request<Full<Bytes>>,
) -> OutboundHints {
    use tower::Service;
    let mut service = layer.layer(Probe);
    std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
    match futures_like(service.call(request)).await {
        Ok(answer) => answer.into_body(),
        Err(never) => match never {},
    }
}

async fn futures_like<F: Future>(future: F) -> F::Output {
    future.await
}

/// Answers with what holds while it is polled.
#[derive(Clone)]
struct Probe;

impl tower::Service<Request<Full<Bytes>>> for Probe {
    type Response = Response<OutboundHints>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        Box::pin(async { Ok(Response::new(OutboundHints::current())) })
    }
}

/// "Of several that say something, the shortest time and the highest attempt hold, beside a `Deadline` and an
/// `OutboundHints` already in the request's extensions."
#[tokio::test(start_paused = true)]
async fn the_highest_attempt_holds_wherever_it_was_said() {
    let mut request = request(Method::GET);
    request.headers_mut().insert("x-envoy-attempt-count", "1".parse().unwrap());
    request.extensions_mut().insert(OutboundHints::new().with_caller_attempt(3));
    let hints = hints_of(InboundLayer::new().once_when_caller_retries(), request).await;
    assert_eq!((hints.caller_attempt(), hints.sends_once()), (Some(3), true));
}

/// "It only ever tightens": a second layer, of a nested router say, does not undo what the first one decided.
#[tokio::test(start_paused = true)]
async fn a_nested_layer_does_not_let_calls_be_repeated_again() {
    let mut request = request(Method::GET);
    request.headers_mut().insert("x-envoy-attempt-count", "2".parse().unwrap());
    let layers = ServiceBuilder::new().layer(InboundLayer::new().once_when_caller_retries()).layer(InboundLayer::new());
    assert!(hints_of(layers.into_inner(), request).await.sends_once());
}

/// The same where somebody put it into the request's extensions.
#[tokio::test(start_paused = true)]
async fn once_in_the_extensions_is_kept() {
    let mut request = request(Method::GET);
    let once = OutboundHints::new().with_caller_attempt(2).once_when_caller_retries();
    request.extensions_mut().insert(once);
    assert!(hints_of(InboundLayer::new(), request).await.sends_once());
}

/// A deadline that is around the server holds, although a layer within leaves its own hints to the handler.
#[tokio::test(start_paused = true)]
async fn by_hand_does_not_lift_a_deadline_that_is_around_it() {
    let deadline = Deadline::after(ms(50));
    let served = hints_of(InboundLayer::new().by_hand(), request(Method::GET));
    let hints = OutboundHints::new().with_deadline(deadline).scope(served).await;
    assert_eq!(hints.deadline(), Some(deadline));
}

/// The hops of a path, in a row: a repeat is known to all of them, whatever the first one claims.
#[tokio::test(start_paused = true)]
async fn a_repeat_is_known_along_the_path_though_its_number_is_huge() {
    for header in HintHeader::ALL {
        let script = Script::always(status(200));
        let outgoing = OutboundHeadersLayer::new().headers([header]);
        let client = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(outgoing).service(script.clone());
        let served = OutboundHints::new().with_caller_attempt(100_000_002).scope(async {
            client.oneshot(request(Method::GET)).await.unwrap();
        });
        served.await;
        let said = script.seen()[0].headers.get(header.name()).cloned();
        let Some(said) = said else { continue };
        if matches!(header, HintHeader::GrpcTimeout | HintHeader::EnvoyExpectedTimeout) {
            continue;
        }
        let mut next = request(Method::GET);
        next.headers_mut().insert(header.name().clone(), said.clone());
        let hints = hints_of(InboundLayer::new(), next).await;
        assert!(hints.caller_retries(), "{header:?} wrote {said:?}, which its reader does not read");
    }
}

/// Two requests served in one task, interleaved: neither finds the other's hints.
#[tokio::test(start_paused = true)]
async fn two_requests_in_one_task_do_not_mix() {
    let found = RefCell::new(Vec::new());
    let server = InboundLayer::new().layer(service_fn(|request: Request<Full<Bytes>>| {
        let found = &found;
        async move {
            let asked: u64 = request.headers()["x-envoy-expected-rq-timeout-ms"].to_str().unwrap().parse().unwrap();
            for _ in 0..4 {
                tokio::task::yield_now().await;
                let left = OutboundHints::current().deadline().unwrap().remaining();
                found.borrow_mut().push(left == ms(asked));
            }
            Ok::<_, Infallible>(Response::new(()))
        }
    }));
    let ask = |left: &'static str| {
        let mut request = request(Method::GET);
        request.headers_mut().insert("x-envoy-expected-rq-timeout-ms", left.parse().unwrap());
        server.clone().oneshot(request)
    };
    let (one, other) = tokio::join!(ask("100"), ask("7000"));
    one.unwrap();
    other.unwrap();
    assert_eq!(OutboundHints::current(), OutboundHints::new());
    assert_eq!(*found.borrow(), [true; 8]);
}

/// A handler that is dropped in the middle leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_leaves_nothing_behind() {
    let script = Script::new([hang()]);
    let client = RetryLayer::new(policy()).layer(script.clone());
    let server = InboundLayer::new()
        .layer(service_fn(move |_: Request<Full<Bytes>>| client.clone().oneshot(request(Method::GET))));
    let mut incoming = request(Method::GET);
    incoming.headers_mut().insert("grpc-timeout", "5S".parse().unwrap());
    let start = Instant::now();
    assert!(tokio::time::timeout(ms(10), server.oneshot(incoming)).await.is_err());
    assert_eq!((start.elapsed(), script.in_flight()), (ms(10), 0));
    assert_eq!(OutboundHints::current(), OutboundHints::new());
}

/// Garbage in every hint header, and a request is served as if nothing had been said.
#[tokio::test(start_paused = true)]
async fn garbage_is_no_hint() {
    let huge = "9".repeat(60_000);
    let garbage: [&[u8]; 14] = [
        b"",
        b" ",
        b"-1",
        b"+1",
        b"1.5",
        b"0x10",
        b"1 2",
        b"999999999",
        b"\xff\xfe",
        b"1e3",
        b"m",
        b"1m1",
        huge.as_bytes(),
        b"00000000000001",
    ];
    for value in garbage {
        let mut request = request(Method::GET);
        for header in HintHeader::ALL {
            for _ in 0..3 {
                request.headers_mut().append(header.name().clone(), http::HeaderValue::from_bytes(value).unwrap());
            }
        }
        let hints = hints_of(InboundLayer::new().once_when_caller_retries(), request).await;
        assert_eq!((hints.deadline(), hints.caller_retries()), (None, false), "{value:?}");
    }
}

/// Numbers at their ends do not overflow.
#[tokio::test(start_paused = true)]
async fn ends_of_numbers() {
    let script = Script::always(status(200));
    let outgoing = OutboundHeadersLayer::new().headers(HintHeader::ALL);
    let client = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(outgoing).service(script.clone());
    let far = Deadline::after(std::time::Duration::MAX);
    let hints = OutboundHints::new().with_caller_attempt(u32::MAX).with_deadline(far);
    hints.scope(async { client.oneshot(request(Method::GET)).await.unwrap() }).await;
    assert_eq!(script.count(), 1);
    assert!(far.remaining() > secs(86_400));
}
