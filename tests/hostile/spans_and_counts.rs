//! What is said and counted of hostile names and numbers.

use http::{Method, Request};
use http_body_util::Full;
use metrics_exporter_prometheus::PrometheusBuilder;
use redial::{Error, Failure, RetryLayer, layers::AttemptSpanLayer};
use tower::{Layer, ServiceBuilder, ServiceExt};

use crate::{
    capture::{Capture, Said},
    policies::policy,
    script::{Failure as Fails, Script, ScriptBody, fail, request, status},
};

async fn span(method: &str, uri: &str) -> Said {
    let (capture, _guard) = Capture::start();
    let request = Request::builder().method(method).uri(uri).body(Full::<bytes::Bytes>::default()).unwrap();
    AttemptSpanLayer::new().layer(Script::new([status(200)])).oneshot(request).await.unwrap();
    capture.all().into_iter().find(|said| said.fields.contains_key("span")).expect("a span")
}

/// OpenTelemetry, attribute `server.address`: an IP address, which has no brackets (those are the URL's).
#[tokio::test(start_paused = true)]
async fn an_ipv6_address_is_an_address() {
    let span = span("GET", "http://[2001:db8::1]:8080/a").await;
    assert_eq!((span.get("server.address"), span.get("server.port")), ("2001:db8::1", "8080"));
}

/// "If the HTTP request method is not known to instrumentation, it MUST set the `http.request.method` attribute to
/// `_OTHER` and … SHOULD/MUST carry `http.request.method_original`" (HTTP client span: conditionally required).
#[tokio::test(start_paused = true)]
async fn an_unknown_method_is_kept_beside() {
    let span = span("PROPFIND", "http://dav.example/a").await;
    assert_eq!(span.get("http.request.method"), "_OTHER");
    assert_eq!(span.get("http.request.method_original"), "PROPFIND");
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_in_a_span() {
    let (capture, _guard) = Capture::start();
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).layer(AttemptSpanLayer::new());
    let script = Script::new([fail(Fails::Reset), status(503), fail(Fails::Strange)]);
    let mut request = request(Method::GET);
    *request.uri_mut() = "http://user:hunter2@api.example/a?token=hunter2".parse().unwrap();
    request.headers_mut().insert("authorization", "Bearer hunter2".parse().unwrap());
    let error = stack.service(script).oneshot(request).await.map(drop).unwrap_err();
    for said in capture.all() {
        assert!(!format!("{said:?}").contains("hunter2"), "{said}");
    }
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}

fn page<F: Future<Output = ()>>(run: impl FnOnce() -> F) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(run()));
    handle.render()
}

/// A server that answers with every number makes no series of each.
#[test]
fn statuses_are_bounded() {
    let page = page(|| async {
        for code in 200..1_000 {
            let client = RetryLayer::new(policy()).layer(Script::always(status(code)));
            client.oneshot(request(Method::POST)).await.unwrap();
        }
    });
    let series = page.lines().filter(|line| line.contains("redial_attempts_total{")).count();
    assert!(series < 100, "{series}");
}

/// "calls that ended": a block, and its three calls, which are attempts of it.
#[test]
fn a_block_is_counted_once() {
    let page = page(|| async {
        let script = Script::always(status(503));
        let client = RetryLayer::new(policy()).layer(script);
        let block = redial::retry(&policy(), |_| async {
            Failure::check(client.clone().oneshot(request(Method::GET)).await?).map(drop)
        });
        let result: Result<(), Error> = block.idempotent("it only reads").await;
        result.unwrap_err();
    });
    let value = |name: &str| -> f64 {
        page.lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    assert_eq!(
        (value("redial_calls_total{"), value("redial_attempts_total{"), value("redial_retries_total{")),
        (1.0, 3.0, 2.0),
        "{page}"
    );
    // "`stacked` counts every request that a second layer passed on"
    let stacked: Vec<_> = page.lines().filter(|line| line.contains("stacked")).collect();
    assert_eq!(stacked.len(), 1, "three requests were passed on by a layer that is not the first of its path: {page}");
}

/// Above a `BufferResponseLayer` the span covers the body: one that broke within it is a failed attempt, and the span says so.
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_is_in_its_attempts_span() {
    let (capture, _guard) = Capture::start();
    let script = Script::new([status(200).body(ScriptBody::text("half").failing()), status(200)]);
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(AttemptSpanLayer::new())
        .layer(redial::BufferResponseLayer::new(1 << 20));
    stack.service(script.clone()).oneshot(request(Method::GET)).await.unwrap();
    let told = capture.all();
    assert!(
        told.iter().any(|said| said.fields.contains_key("error.type") && said.target == "recorded later"),
        "{told:?}"
    );
}

/// A code of gRPC is named.
#[cfg(feature = "grpc")]
#[test]
fn a_code_of_grpc_is_an_error_type() {
    use redial::testing::{Reply, service};
    let page = page(|| async {
        let unavailable = Reply::status(200).header("content-type", "application/grpc").header("grpc-status", "14");
        let mut channel = redial::grpc::channel(service([unavailable]), policy());
        use tower::Service;
        let call = http::Request::post("http://shop.example/shop.Orders/Get").body(tonic::body::Body::empty()).unwrap();
        std::future::poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
        let _ = channel.call(call).await;
    });
    assert!(page.contains("error_type=\"UNAVAILABLE\""), "{page}");
}

fn lines<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    page.lines().filter(|line| line.starts_with(name)).collect()
}

/// "A budget without a limit has no level."
#[test]
fn a_budget_without_a_limit_has_no_level() {
    let page = page(|| async {
        let client = RetryLayer::new(policy()).layer(Script::always(status(503)));
        client.oneshot(request(Method::GET)).await.unwrap();
    });
    assert_eq!(lines(&page, "redial_budget_level{"), [""; 0]);
}

/// "`by`: whose wait it was: `policy`, `server` or `hold`": a `Retry-After: 0` is no wait of the server's.
#[test]
fn a_wait_of_nothing_is_the_policys() {
    let page = page(|| async {
        let client = RetryLayer::new(policy()).layer(Script::new([status(503).retry_after("0"), status(200)]));
        client.oneshot(request(Method::GET)).await.unwrap();
    });
    let counts = lines(&page, "redial_wait_seconds_count{");
    assert!(counts.len() == 1 && counts[0].contains("by=\"policy\""), "{counts:?}");
}

/// And `hold`: a wait that is longer than a call's own because of what another call was told.
#[test]
fn a_held_wait_is_the_holds() {
    use redial::{Hold, HoldScope, Transient};
    let page = page(|| async {
        let transient = Transient::usual().rejected(429, "API guide, section 4");
        let policy = redial::StandardPolicy::builder("shop", crate::policies::timeouts(1_000, 60_000), transient)
            .backoff(redial::Backoff::fixed(crate::policies::WAIT, "tests are exact"))
            .hold(HoldScope::Retries, Hold::new())
            .build()
            .unwrap();
        let told = RetryLayer::new(policy.clone()).layer(Script::new([status(429).retry_after("30"), status(200)]));
        let held = RetryLayer::new(policy).layer(Script::new([status(503), status(200)]));
        let (told, held) = tokio::join!(told.oneshot(request(Method::GET)), held.oneshot(request(Method::GET)));
        assert!(told.is_ok() && held.is_ok());
    });
    let counts = lines(&page, "redial_wait_seconds_count{");
    assert!(counts.iter().any(|count| count.contains("by=\"hold\"")), "{counts:?}");
}
