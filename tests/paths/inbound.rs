//! What a caller wants reaches the calls that are made while it is served, and no others.

use std::{
    convert::Infallible,
    future::{Future, IntoFuture},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use redial::{
    AttemptBody, Budget, CallReport, Deadline, Error, OutboundHints, RetryLayer, StopReason, TimeoutLayer,
    layers::{HintHeader, InboundLayer},
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    policies::{builder, builder_within, policy, timeouts},
    script::{Script, hang, ms, request, secs, status},
};

type Incoming = Request<Full<Bytes>>;

/// A request that says this of its caller.
fn incoming(headers: &[(&'static str, &str)]) -> Incoming {
    let mut request = request(Method::POST);
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

/// Serves one request, and returns what its handler does.
async fn serve<F, Fut, T>(layer: InboundLayer, request: Incoming, handler: F) -> T
where
    F: Fn(Incoming) -> Fut + Clone,
    Fut: Future<Output = T>,
{
    let handler = service_fn(move |request| {
        let answer = handler.clone()(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    layer.layer(handler).oneshot(request).await.unwrap()
}

/// An outgoing call of a policy with three attempts, a second each, within a minute.
async fn ask(script: &Script) -> Result<Response<impl Sized>, Error> {
    RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::GET)).await
}

fn stop<B>(response: &Response<B>) -> Option<StopReason> {
    response.extensions().get::<CallReport>()?.stop()
}

#[tokio::test(start_paused = true)]
async fn outgoing_calls_end_by_the_callers_deadline() {
    for header in [("grpc-timeout", "250m"), ("x-envoy-expected-rq-timeout-ms", "250")] {
        let script = Script::new([hang()]);
        let start = Instant::now();
        let error = serve(InboundLayer::new(), incoming(&[header]), |_| ask(&script)).await.map(drop).unwrap_err();
        assert_eq!((start.elapsed(), script.count()), (ms(250), 1), "{header:?}");
        assert!(error.is_outer_deadline() && error.stop() == Some(StopReason::Deadline), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_has_gone_is_not_asked_for() {
    let script = Script::new([]);
    let error = serve(InboundLayer::new(), incoming(&[("grpc-timeout", "0n")]), |_| ask(&script)).await;
    assert!(error.map(drop).unwrap_err().is_outer_deadline());
    assert_eq!(script.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_cannot_lengthen_anything() {
    for headers in [&[("grpc-timeout", "24H"), ("x-envoy-attempt-count", "1")][..], &[("grpc-timeout", "99999999H")]] {
        let script = Script::new([hang(), hang(), hang()]);
        let start = Instant::now();
        let error = serve(InboundLayer::new(), incoming(headers), |_| async {
            let policy = builder_within(timeouts(100, 1_000)).build().unwrap();
            RetryLayer::new(policy).layer(script.clone()).oneshot(request(Method::GET)).await.map(drop)
        });
        assert!(error.await.unwrap_err().is_exhausted());
        // Three attempts of 100 ms, and two waits.
        assert_eq!((start.elapsed(), script.count()), (ms(500), 3));
    }
}

/// Callers that wait for next to no time say nothing of the provider's health: the budget stays open for the others.
#[tokio::test(start_paused = true)]
async fn hasty_callers_close_no_budget() {
    let policy = builder().budget(Budget::usual()).build().unwrap();
    let script = Script::always(hang());
    let client = RetryLayer::new(policy).layer(script.clone());
    for _ in 0..100 {
        let call = serve(InboundLayer::new(), incoming(&[("grpc-timeout", "1m")]), |_| {
            client.clone().oneshot(request(Method::GET))
        });
        assert!(call.await.map(drop).unwrap_err().is_outer_deadline());
    }
    script.clear();
    script.push([status(503), status(503), status(200)]);
    let response = client.oneshot(request(Method::GET)).await.unwrap();
    assert_eq!((response.status().as_u16(), script.count()), (200, 103));
}

/// Also where a layer below, or a call within a block, runs into the caller's deadline before the attempt does.
#[tokio::test(start_paused = true)]
async fn hasty_callers_close_no_budget_whoever_notices() {
    let budget = Budget::usual();
    let policy = builder().budget(budget.clone()).build().unwrap();
    let script = Script::always(hang());
    let hasty = || incoming(&[("grpc-timeout", "1m")]);
    let below = TimeoutLayer::new().head(secs(1)).layer(script.clone());
    let client = RetryLayer::new(policy.clone()).layer(below);
    for method in [Method::GET, Method::POST].iter().cycle().take(10) {
        let call = serve(InboundLayer::new(), hasty(), |_| client.clone().oneshot(request(method.clone())));
        let error = call.await.map(drop).unwrap_err();
        assert!(error.is_timeout() && error.is_deadline(), "{method}: {error}");
        assert_eq!(error.report().unwrap().stop(), Some(StopReason::Deadline), "{method}");
    }
    assert_eq!((budget.level(), script.count()), (12.5, 10));
    for _ in 0..10 {
        let block = serve(InboundLayer::new(), hasty(), |_| {
            redial::retry(&policy, |_| async { Ok(ask(&script).await.map(drop)?) })
                .idempotent("it only reads")
                .into_future()
        });
        assert!(block.await.unwrap_err().is_timeout());
    }
    assert_eq!((budget.level(), script.count()), (12.5, 20));
    // An attempt that had its full time is the provider's failure, whoever notices.
    client.oneshot(request(Method::GET)).await.map(drop).unwrap_err();
    assert_eq!(budget.level(), 9.5);
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_deadlines_holds() {
    let mut request =
        incoming(&[("grpc-timeout", "3S"), ("grpc-timeout", "2S"), ("x-envoy-expected-rq-timeout-ms", "900")]);
    let earliest = |request| serve(InboundLayer::new(), request, |_| async { OutboundHints::current().deadline() });
    assert_eq!(earliest(request.clone()).await.unwrap().remaining(), ms(900));
    // In process, and by whoever stands above.
    request.extensions_mut().insert(Deadline::after(ms(400)));
    assert_eq!(earliest(request.clone()).await.unwrap().remaining(), ms(400));
    request.extensions_mut().insert(OutboundHints::new().with_deadline(Deadline::after(ms(300))));
    assert_eq!(earliest(request).await.unwrap().remaining(), ms(300));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_not_repeated_where_that_was_chosen() {
    let chosen = InboundLayer::new().once_when_caller_retries();
    for (layer, header, sent, expected) in [
        (&chosen, ("x-envoy-attempt-count", "1"), 3, StopReason::Attempts),
        (&chosen, ("x-envoy-attempt-count", "2"), 1, StopReason::CallerRetries),
        (&chosen, ("x-stainless-retry-count", "0"), 3, StopReason::Attempts),
        (&chosen, ("x-stainless-retry-count", "1"), 1, StopReason::CallerRetries),
        (&chosen, ("grpc-previous-rpc-attempts", "1"), 1, StopReason::CallerRetries),
        (&chosen, ("x-other", "2"), 3, StopReason::Attempts),
        (&InboundLayer::new(), ("x-envoy-attempt-count", "2"), 3, StopReason::Attempts),
    ] {
        let script = Script::always(status(503));
        let response = serve(layer.clone(), incoming(&[header]), |_| ask(&script)).await.unwrap();
        assert_eq!((script.count(), stop(&response)), (sent, Some(expected)), "{header:?}");
    }
}

/// What is more fundamental is named first.
#[tokio::test(start_paused = true)]
async fn the_callers_repeat_is_not_the_reason_where_there_is_another() {
    let layer = InboundLayer::new().once_when_caller_retries();
    let script = Script::always(status(503));
    let response = serve(layer, incoming(&[("x-envoy-attempt-count", "2")]), |_| async {
        RetryLayer::new(policy()).layer(script.clone()).oneshot(request(Method::POST)).await
    });
    assert_eq!(stop(&response.await.unwrap()), Some(StopReason::NoEvidence));
}

#[tokio::test(start_paused = true)]
async fn which_headers_are_read_is_a_choice() {
    let request =
        || incoming(&[("grpc-timeout", "1S"), ("x-envoy-attempt-count", "2"), ("x-stainless-retry-count", "4")]);
    let hints = |layer| serve(layer, request(), |_| async { OutboundHints::current() });
    let all = hints(InboundLayer::new()).await;
    assert_eq!((all.deadline().map(Deadline::remaining), all.caller_attempt()), (Some(secs(1)), Some(5)));
    let some = hints(InboundLayer::new().headers([HintHeader::EnvoyAttemptCount])).await;
    assert_eq!((some.deadline(), some.caller_attempt()), (None, Some(2)));
    assert_eq!(hints(InboundLayer::new().headers([])).await, OutboundHints::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_malformed_is_no_hint() {
    let request = incoming(&[
        ("grpc-timeout", "soon"),
        ("x-envoy-expected-rq-timeout-ms", "-1"),
        ("x-envoy-attempt-count", "0"),
        ("x-stainless-retry-count", "99999999999999999999"),
        ("grpc-previous-rpc-attempts", "1.5"),
    ]);
    let hints = serve(InboundLayer::new(), request, |_| async { OutboundHints::current() }).await;
    assert_eq!(hints, OutboundHints::new());
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_is_reached_by_hand() {
    let headers = [("grpc-timeout", "1S"), ("x-envoy-attempt-count", "2")];
    let layer = InboundLayer::new().once_when_caller_retries();

    // Lost.
    let script = Script::always(status(503));
    let spawned = |_| async {
        tokio::spawn({
            let script = script.clone();
            async move { ask(&script).await.map(drop) }
        })
        .await
    };
    serve(layer.clone(), incoming(&headers), spawned).await.unwrap().unwrap();
    assert_eq!(script.count(), 3);

    // Carried: as a scope, or in the request's extensions.
    let script = Script::always(status(503));
    let carried = |incoming: Incoming| async {
        let (hints, script) = (OutboundHints::current(), script.clone());
        let scoped = tokio::spawn(hints.scope({
            let script = script.clone();
            async move { ask(&script).await.map(drop) }
        }));
        let own = tokio::spawn(async move {
            let mut outgoing = request(Method::GET);
            outgoing.extensions_mut().insert(*incoming.extensions().get::<OutboundHints>().unwrap());
            RetryLayer::new(policy()).layer(script).oneshot(outgoing).await.map(drop)
        });
        (scoped.await.unwrap(), own.await.unwrap())
    };
    let (scoped, own) = serve(layer, incoming(&headers), carried).await;
    assert!(scoped.is_ok() && own.is_ok());
    assert_eq!(script.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn by_hand_alone() {
    let layer = InboundLayer::new().once_when_caller_retries().by_hand();
    let script = Script::always(status(503));
    let handler = |incoming: Incoming| {
        let script = script.clone();
        async move {
            assert_eq!(OutboundHints::current(), OutboundHints::new());
            ask(&script).await.unwrap();
            assert_eq!(script.count(), 3);
            let mut outgoing = request(Method::GET);
            outgoing.extensions_mut().insert(*incoming.extensions().get::<OutboundHints>().unwrap());
            RetryLayer::new(policy()).layer(script.clone()).oneshot(outgoing).await.unwrap();
            assert_eq!(script.count(), 4);
        }
    };
    serve(layer, incoming(&[("x-envoy-attempt-count", "2")]), handler).await;
}

/// Many requests are served by one thread, and each has its own.
#[tokio::test(start_paused = true)]
async fn what_one_caller_wants_is_not_anothers() {
    let seen = |attempt: &'static str| {
        serve(InboundLayer::new(), incoming(&[("x-envoy-attempt-count", attempt)]), |_| async {
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(OutboundHints::current().caller_attempt());
                tokio::time::sleep(ms(10)).await;
            }
            seen
        })
    };
    let (first, second, none) = tokio::join!(seen("1"), seen("2"), async {
        tokio::time::sleep(ms(15)).await;
        OutboundHints::current()
    });
    assert_eq!((first, second, none), (vec![Some(1); 3], vec![Some(2); 3], OutboundHints::new()));
    assert_eq!(OutboundHints::current(), OutboundHints::new());
}

/// Requests that are served at once, on threads that take each other's tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_mix_nothing_up() {
    let serving = (1..=200_u32).map(|attempt| {
        tokio::spawn(async move {
            let number = attempt.to_string();
            serve(InboundLayer::new(), incoming(&[("x-envoy-attempt-count", &number)]), |_| async move {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                    assert_eq!(OutboundHints::current().caller_attempt(), Some(attempt));
                }
            })
            .await;
            assert_eq!(OutboundHints::current(), OutboundHints::new());
        })
    });
    for served in serving.collect::<Vec<_>>() {
        served.await.unwrap();
    }
}

/// tonic's server takes it as it takes any layer.
#[test]
fn a_grpc_server_takes_it() {
    let server = tonic::transport::Server::builder().layer(InboundLayer::new().once_when_caller_retries());
    let _router = { server }.add_routes(tonic::service::Routes::default());
}

/// A handler that panics leaves nothing behind on its thread.
#[tokio::test(start_paused = true)]
async fn a_panic_leaves_nothing_behind() {
    let serving =
        serve(InboundLayer::new(), incoming(&[("x-envoy-attempt-count", "2")]), |_| async { panic!("as planned") });
    let caught = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(serving)).await;
    assert!(caught.is_err());
    assert_eq!(OutboundHints::current(), OutboundHints::new());
}

/// An inner scope tightens, and never loosens.
#[tokio::test(start_paused = true)]
async fn scopes_tighten() {
    let outer =
        OutboundHints::new().with_deadline(Deadline::after(ms(100))).with_caller_attempt(2).once_when_caller_retries();
    let inner = OutboundHints::new().with_deadline(Deadline::after(secs(9)));
    let within = outer.scope(inner.scope(async { OutboundHints::current() })).await;
    assert_eq!(within, outer);
    let independent = outer.scope(redial::independent(async { OutboundHints::current() })).await;
    assert_eq!((independent.deadline(), independent.sends_once()), (outer.deadline(), false));
}

#[tokio::test(start_paused = true)]
async fn an_independent_call_repeats_by_itself() {
    let layer = InboundLayer::new().once_when_caller_retries();
    let script = Script::always(status(503));
    let token = |_| redial::independent(async { ask(&script).await.map(drop) });
    serve(layer, incoming(&[("x-envoy-attempt-count", "2")]), token).await.unwrap();
    assert_eq!(script.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_layer_heeds_it_too() {
    let start = Instant::now();
    let error = serve(InboundLayer::new(), incoming(&[("grpc-timeout", "250m")]), |_| async {
        let script = Script::new([hang()]);
        TimeoutLayer::new().head(secs(5)).layer(script).oneshot(request(Method::GET)).await.map(drop).unwrap_err()
    })
    .await;
    assert!(error.is_outer_deadline(), "{error}");
    assert_eq!(start.elapsed(), ms(250));
}

/// A server that is called in process: what a retry layer left in the request is another path's.
#[tokio::test(start_paused = true)]
async fn it_begins_a_new_path() {
    let script = Script::always(status(503));
    let next = RetryLayer::new(policy()).layer(script.clone());
    let handler = service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
        assert_eq!(redial::attempt_number(request.extensions()), None);
        // Forwards the very request, with all of its extensions.
        let (parts, _) = request.into_parts();
        next.clone().oneshot(Request::from_parts(parts, String::new()))
    });
    let server = ServiceBuilder::new().layer(InboundLayer::new()).service(handler);
    RetryLayer::new(policy()).layer(server).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 9);
}

/// A handler may make its calls before it is polled, and the service is ready when the inner one is.
#[tokio::test(start_paused = true)]
async fn calls_that_are_made_at_once_are_reached() {
    let script = Script::always(status(503));
    let mut client = RetryLayer::new(builder().build().unwrap()).layer(script.clone());
    ServiceExt::<Incoming>::ready(&mut client).await.unwrap();
    let mut client = Some(client);
    let eager = service_fn(move |_: Incoming| client.take().unwrap().call(request(Method::GET)));
    let server = InboundLayer::new().once_when_caller_retries().layer(eager);
    let response = server.oneshot(incoming(&[("x-envoy-attempt-count", "2")])).await.unwrap();
    assert_eq!((script.count(), stop(&response)), (1, Some(StopReason::CallerRetries)));
}
