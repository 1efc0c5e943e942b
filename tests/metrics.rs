//! What is counted (feature `metrics`), as the Prometheus exporter shows it.
//!
//! `cargo test --features metrics --test metrics -- --nocapture page` prints the page of a small bad day.
#![cfg(feature = "metrics")]

#[path = "common/policies.rs"]
mod policies;
#[path = "common/script.rs"]
mod script;

use std::time::Duration;

use http::{Method, Request};
use http_body_util::Full;
use metrics_exporter_prometheus::PrometheusBuilder;
use policies::builder;
use redial::{Budget, RequestOptions, RetryLayer, Routes, StandardPolicy, StopReason, metrics::describe};
use script::{Failure, Script, Step, fail, hang, ms, request, status};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

fn policy() -> StandardPolicy {
    builder().budget(Budget::usual()).build().unwrap()
}

/// One call with these steps; its request may be one that the caller gives up after `patience`.
struct Call {
    policy: StandardPolicy,
    request: Request<Full<bytes::Bytes>>,
    steps: Vec<Step>,
    patience: Duration,
}

fn call(method: Method, steps: impl IntoIterator<Item = Step>) -> Call {
    let (policy, request) = (policy(), request(method));
    Call { policy, request, steps: steps.into_iter().collect(), patience: ms(3_600_000) }
}

/// The page after these calls, one after the other.
fn page(calls: impl IntoIterator<Item = Call>) -> String {
    rendered(|| async {
        for Call { policy, request, steps, patience } in calls {
            let call = RetryLayer::new(policy).layer(Script::new(steps)).oneshot(request);
            let _ = timeout(patience, call).await;
        }
    })
}

fn rendered<F: Future<Output = ()>>(run: impl FnOnce() -> F) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        describe();
        runtime.block_on(run());
    });
    handle.render()
}

/// The value of one series, by its labels beside `provider` and `operation`; zero where there is none.
fn value(page: &str, name: &str, labels: &str) -> f64 {
    let comma = if labels.is_empty() { "" } else { "," };
    let line = format!("{name}{{provider=\"shop\",operation=\"any\"{comma}{labels}}} ");
    let found = page.lines().find_map(|found| found.strip_prefix(&line));
    found.map_or(0.0, |value| value.parse().unwrap())
}

#[test]
fn a_call_that_succeeds_at_once() {
    let page = page([call(Method::GET, [status(200)])]);
    assert_eq!(value(&page, "redial_calls_total", r#"outcome="success""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="success",error_type="""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_budget_level", ""), 12.5, "{page}");
    for name in ["redial_retries_total", "redial_stops_total", "redial_wait_seconds", "redial_unclassified_total"] {
        assert!(!page.contains(&format!("{name}{{")), "{name} in {page}");
    }
}

#[test]
fn a_success_at_the_third_try() {
    let page = page([call(Method::GET, [status(503), fail(Failure::Reset), status(200)])]);
    assert_eq!(value(&page, "redial_calls_total", r#"outcome="success""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="success",error_type="""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="transient",error_type="503""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="transient",error_type="reset""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_retries_total", r#"error_type="503""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_retries_total", r#"error_type="reset""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_wait_seconds_count", r#"by="policy""#), 2.0, "{page}");
    assert!((value(&page, "redial_wait_seconds_sum", r#"by="policy""#) - 0.2).abs() < 1e-9, "{page}");
    assert!(!page.contains("redial_stops_total{"), "{page}");
}

#[test]
fn one_that_fails_finally_and_the_server_asked_for_time() {
    let page = page([call(Method::GET, [status(503).retry_after("1"), status(503), status(503)])]);
    assert_eq!(value(&page, "redial_calls_total", r#"outcome="transient""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_stops_total", r#"stop="attempts""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="transient",error_type="503""#), 3.0, "{page}");
    assert_eq!(value(&page, "redial_wait_seconds_count", r#"by="server""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_wait_seconds_count", r#"by="policy""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_budget_level", ""), 9.5, "{page}");
}

#[test]
fn an_answer_that_is_final_at_once() {
    let listed = Call { policy: builder().business([404]).build().unwrap(), ..call(Method::GET, [status(404)]) };
    let page = page([listed, call(Method::GET, [status(418)]), call(Method::POST, [status(503)])]);
    assert_eq!(value(&page, "redial_calls_total", r#"outcome="permanent""#), 2.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="permanent",error_type="404""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="unclassified",error_type="418""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_unclassified_total", r#"error_type="418""#), 1.0, "{page}");
    assert_eq!(value(&page, "redial_stops_total", r#"stop="no-evidence""#), 1.0, "{page}");
}

#[test]
fn a_cancelled_call() {
    let page = page([Call { patience: ms(10), ..call(Method::GET, [hang()]) }]);
    assert_eq!(value(&page, "redial_calls_total", r#"outcome="cancelled""#), 1.0, "{page}");
    assert!(!page.contains("redial_attempts_total{"), "an attempt that has not ended: {page}");
}

/// Whatever a server answers, the number of series has a bound.
#[test]
fn statuses_that_nobody_knows_are_one_series_a_class() {
    let unknown = (420..1000)
        .filter(|code| http::StatusCode::from_u16(*code).is_ok_and(|status| status.canonical_reason().is_none()));
    let unknown: Vec<u16> = unknown.collect();
    let calls = unknown.len();
    assert!(calls > 500);
    let page = page(unknown.into_iter().map(|code| call(Method::GET, [status(code)])));
    let series = page.lines().filter(|line| line.starts_with("redial_unclassified_total{")).count();
    assert_eq!(series, 3, "{page}");
    let counted: f64 = ["4xx", "5xx", "other"]
        .map(|kind| value(&page, "redial_unclassified_total", &format!("error_type=\"{kind}\"")))
        .iter()
        .sum();
    assert_eq!(counted, calls as f64);
}

/// A vendor's own status keeps its number where the policy speaks of it.
#[test]
fn a_status_of_the_vendor_that_is_listed() {
    let policy =
        StandardPolicy::builder("shop", policies::timeouts(1_000, 60_000), redial::Transient::usual().status(529))
            .operation("any")
            .build()
            .unwrap();
    let page = page([Call { policy, ..call(Method::POST, [status(529)]) }]);
    assert_eq!(value(&page, "redial_attempts_total", r#"outcome="transient",error_type="529""#), 1.0, "{page}");
}

#[test]
fn a_second_layer_counts_every_request_that_it_passes_on() {
    use tower::ServiceBuilder;
    let page = rendered(|| async {
        let erased = tower::util::MapRequestLayer::new(|request: Request<redial::AttemptBody<Full<bytes::Bytes>>>| {
            request.map(http_body_util::combinators::UnsyncBoxBody::new)
        });
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(erased)
            .layer(RetryLayer::new(policy()))
            .service(tower::service_fn(|_: Request<_>| async {
                Ok::<_, std::convert::Infallible>(
                    http::Response::builder().status(503).body(Full::<bytes::Bytes>::default()).unwrap(),
                )
            }));
        let _ = stack.oneshot(request(Method::GET)).await;
    });
    assert_eq!(value(&page, "redial_stops_total", r#"stop="stacked""#), 3.0, "{page}");
    assert_eq!(value(&page, "redial_stops_total", r#"stop="attempts""#), 1.0, "{page}");
}

#[test]
fn a_request_that_no_route_matches() {
    let page = rendered(|| async {
        let default = StandardPolicy::unretried("other", ms(1000)).unwrap();
        let routes = Routes::builder(default).route("elsewhere.example GET /", policy()).build().unwrap();
        let _ = RetryLayer::new(routes).layer(Script::new([status(200)])).oneshot(request(Method::GET)).await;
    });
    let line = page.lines().find(|line| line.starts_with("redial_unmatched_total{")).expect("counted");
    assert!(line.contains("provider=\"other\"") && line.ends_with(" 1"), "{line}");
}

/// What a stacked layer says and counts of a request needs its plan, and a plan is made once.
#[test]
fn a_stacked_request_is_planned_once() {
    use tower::ServiceBuilder;
    let default = StandardPolicy::unretried("other", ms(1000)).unwrap();
    let routes = Routes::builder(default).route("elsewhere.example GET /", policy()).build().unwrap();
    let inner = routes.clone();
    let page = rendered(|| async {
        let erased = tower::util::MapRequestLayer::new(|request: Request<redial::AttemptBody<Full<bytes::Bytes>>>| {
            request.map(http_body_util::combinators::UnsyncBoxBody::new)
        });
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(erased)
            .layer(RetryLayer::new(inner))
            .service(Script::new([status(503), status(200)]));
        let _ = stack.oneshot(request(Method::GET)).await;
    });
    assert_eq!(routes.unmatched(), 2, "two attempts came by: {page}");
    assert!(page.contains("redial_stops_total{provider=\"other\",operation=\"any\",stop=\"stacked\"} 2"), "{page}");
}

/// The table in the docs and what is emitted are one.
#[test]
fn the_page_of_a_bad_day() {
    let mut never = call(Method::GET, [status(503)]);
    never.request.extensions_mut().insert(RequestOptions::new().never_retry());
    let page = page([
        call(Method::GET, [status(200)]),
        call(Method::GET, [status(503), status(200)]),
        call(Method::GET, [status(429).retry_after("1"), fail(Failure::Reset), status(200)]),
        call(Method::POST, [fail(Failure::Reset)]),
        call(Method::GET, [status(418)]),
        Call { patience: ms(10), ..call(Method::GET, [hang()]) },
        never,
    ]);
    println!("{page}");
    let docs = include_str!("../src/metrics.rs");
    for name in page.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()) {
        assert!(docs.contains(&format!("| `{name}` |")), "{name} is not in the docs");
    }
    let documented = docs.lines().filter_map(|line| line.strip_prefix("//! | `redial_")?.split('`').next());
    let missing = documented.filter(|name| !["unmatched_total"].contains(name));
    for name in missing {
        assert!(page.contains(&format!("redial_{name}")), "redial_{name} is not in the page");
    }
    assert_eq!(value(&page, "redial_stops_total", &format!("stop=\"{}\"", StopReason::NoEvidence)), 1.0, "{page}");
}
