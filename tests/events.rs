//! What a call says (S15, S16): one event at each turn, one ERROR where it should have worked, and no secret in any.

#[path = "common/capture.rs"]
mod capture;
#[path = "common/policies.rs"]
mod policies;
#[path = "common/script.rs"]
mod script;

use std::time::Duration;

use capture::{Capture, Said};
use http::{Method, Request};
use http_body_util::Full;
use policies::{builder, policy};
use redial::{RetryLayer, StandardPolicy, TimeoutLayer, Transient};
use script::{Failure, Readiness, Script, Step, fail, hang, ms, request, status};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};
use tracing::Level;

/// What one call with these steps says.
async fn said(title: &str, policy: StandardPolicy, method: Method, steps: impl IntoIterator<Item = Step>) -> Vec<Said> {
    let (capture, _guard) = Capture::start();
    let call = RetryLayer::new(policy).layer(Script::new(steps)).oneshot(request(method));
    let _ = timeout(Duration::from_secs(3_600), call).await;
    println!("-- {title}");
    capture.ours().iter().for_each(|said| println!("{said}"));
    capture.ours()
}

fn levels(said: &[Said]) -> Vec<Level> {
    said.iter().map(|said| said.level).collect()
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_finally() {
    let steps = [status(503), fail(Failure::Reset), status(502).retry_after("90")];
    let said = said("fails finally", policy(), Method::GET, steps).await;
    assert_eq!(levels(&said), [Level::DEBUG, Level::DEBUG, Level::ERROR]);

    let first = &said[0];
    assert_eq!(first.get("message"), "attempt failed, will be repeated");
    assert_eq!((first.get("provider"), first.get("operation")), ("shop", "any"));
    assert_eq!((first.get("attempt"), first.get("max_attempts")), ("1", "3"));
    assert_eq!((first.get("outcome"), first.get("wait_ms"), first.get("held")), ("transient", "100", "false"));
    assert_eq!((first.get("error.type"), first.get("http.response.status_code")), ("503", "503"));
    assert_eq!((first.get("http.request.method"), first.get("url")), ("GET", "http://api.example/orders"));
    assert!(!first.fields.contains_key("stop"));

    let second = &said[1];
    assert_eq!((second.get("attempt"), second.get("error.type")), ("2", "reset"));
    assert!(!second.fields.contains_key("http.response.status_code"));

    let last = &said[2];
    assert_eq!((last.get("message"), last.get("stop"), last.get("attempt")), ("failed", "attempts", "3"));
    assert_eq!((last.get("outcome"), last.get("error.type")), ("transient", "502"));
    assert_eq!((last.get("elapsed_ms"), last.get("outcome_unknown")), ("200", "true"));
}

#[tokio::test(start_paused = true)]
async fn one_that_succeeds_at_the_third_try() {
    let said = said("succeeds at the third try", policy(), Method::GET, [status(503), hang(), status(200)]).await;
    assert_eq!(levels(&said), [Level::DEBUG, Level::DEBUG, Level::INFO]);
    let last = &said[2];
    assert_eq!(
        (last.get("message"), last.get("outcome"), last.get("attempt")),
        ("succeeded after retry", "success", "3")
    );
    assert_eq!((last.get("http.response.status_code"), last.get("elapsed_ms")), ("200", "1200"));
    assert!(!last.fields.contains_key("stop"));
}

#[tokio::test(start_paused = true)]
async fn a_business_answer() {
    // Listed as one it says nothing; where nobody listed it, that is worth counting, and no more.
    let listed = builder().business([404]).build().unwrap();
    assert!(said("business 404, listed", listed, Method::GET, [status(404)]).await.is_empty());
    let said = said("business 404, not listed", policy(), Method::GET, [status(404)]).await;
    assert_eq!(levels(&said), [Level::DEBUG]);
    assert_eq!((said[0].get("outcome"), said[0].get("error.type")), ("unclassified", "404"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_one() {
    let (capture, _guard) = Capture::start();
    let call = RetryLayer::new(policy()).layer(Script::new([status(503)])).oneshot(request(Method::GET));
    assert!(timeout(ms(50), call).await.is_err());
    println!("-- cancelled");
    capture.ours().iter().for_each(|said| println!("{said}"));
    assert_eq!(levels(&capture.ours()), [Level::DEBUG, Level::DEBUG]);
    let last = &capture.ours()[1];
    assert_eq!((last.get("message"), last.get("outcome"), last.get("phase")), ("cancelled", "cancelled", "waiting"));
    assert_eq!((last.get("attempt"), last.get("provider")), ("1", "shop"));
}

#[tokio::test(start_paused = true)]
async fn success_at_once_says_nothing() {
    for code in [200, 204, 301, 304] {
        assert!(said("success at once", policy(), Method::GET, [status(code)]).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_try_that_was_held_back_is_no_retry() {
    let (hold, transient) = (redial::Hold::new(), Transient::usual().rejected(429, "documented"));
    let policy = StandardPolicy::builder("shop", policies::timeouts(1_000, 60_000), transient)
        .hold(redial::HoldScope::All, hold)
        .attempts(1)
        .build()
        .unwrap();
    let told = Script::new([status(429).retry_after("5")]);
    RetryLayer::new(policy.clone()).layer(told).oneshot(request(Method::GET)).await.unwrap();
    assert!(said("held, then success", policy, Method::GET, [status(200)]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn exactly_one_error_for_each_final_failure() {
    let calls: Vec<(&str, StandardPolicy, Method, Vec<Step>)> = vec![
        ("attempts", policy(), Method::GET, vec![status(503); 3]),
        ("no-evidence", policy(), Method::POST, vec![status(503)]),
        ("no-evidence", policy(), Method::POST, vec![hang()]),
        ("permanent", policy(), Method::GET, vec![fail(Failure::Strange)]),
        ("wait-too-long", policy(), Method::GET, vec![status(429).retry_after("3600")]),
        ("deadline", policies::builder_within(policies::timeouts(50, 90)).build().unwrap(), Method::GET, vec![hang()]),
        ("upgrade", policy(), Method::CONNECT, vec![fail(Failure::Unsent)]),
        ("attempts", builder().attempts(1).build().unwrap(), Method::GET, vec![status(503)]),
    ];
    for (stop, policy, method, steps) in calls {
        let retries = steps.len() - 1;
        let said = said(stop, policy, method, steps).await;
        let errors: Vec<_> = said.iter().filter(|said| said.level == Level::ERROR).collect();
        assert_eq!((errors.len(), errors[0].get("stop")), (1, stop));
        let retrying = said.iter().filter(|said| said.fields.contains_key("wait_ms")).count();
        assert_eq!(retrying, retries, "one for each attempt that another follows");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_a_retry_is_no_error() {
    // D33: the last verdict decides.
    let said = said("a 404 after a 503", policy(), Method::GET, [status(503), status(404)]).await;
    assert!(said.iter().all(|said| said.level == Level::DEBUG));
    assert_eq!(said.last().unwrap().get("stop"), "permanent");
}

#[tokio::test(start_paused = true)]
async fn c145_counts_of_repeats() {
    // C145: 3, 3 and 0 announcements, numbered, and one end each.
    for (attempts, steps, ends) in [
        (4, vec![status(503); 4], Some("4")),
        (4, vec![status(503), status(503), status(503), status(200)], None),
        (1, vec![status(503)], Some("1")),
    ] {
        let policy = builder().attempts_because(attempts, "the case counts to four").build().unwrap();
        let said = said("counts", policy, Method::GET, steps).await;
        let announced = said.iter().filter(|said| said.fields.contains_key("wait_ms"));
        let numbers: Vec<_> = announced.map(|said| said.get("attempt").parse::<u32>().unwrap()).collect();
        assert_eq!(numbers, (1..attempts).collect::<Vec<_>>());
        let ended = said.iter().find(|said| said.level == Level::ERROR).map(|said| said.get("attempt"));
        assert_eq!(ended, ends);
    }
}

#[tokio::test(start_paused = true)]
async fn only_ours_and_only_known_fields() {
    const KNOWN: [&str; 16] = [
        "attempt",
        "elapsed_ms",
        "error.type",
        "held",
        "http.request.method",
        "http.response.status_code",
        "max_attempts",
        "message",
        "operation",
        "outcome",
        "outcome_unknown",
        "phase",
        "provider",
        "stop",
        "url",
        "wait_ms",
    ];
    let (capture, _guard) = Capture::start();
    for steps in [vec![status(503); 3], vec![status(503), status(200)], vec![fail(Failure::Strange)], vec![hang()]] {
        let call = RetryLayer::new(policy()).layer(Script::new(steps)).oneshot(request(Method::GET));
        let _ = timeout(ms(900), call).await;
    }
    let all = capture.ours();
    assert!(all.len() > 6);
    for said in &all {
        assert!(said.names().iter().all(|name| KNOWN.contains(name)), "{said}");
        assert!(
            ["provider", "operation", "attempt", "max_attempts", "outcome"]
                .iter()
                .all(|name| !said.get(name).is_empty())
        );
    }
}

/// What must be seen nowhere.
const SECRETS: [&str; 6] = ["s3cret", "user:", "K123", "tok3n", "c00kie", "b0dy"];

#[track_caller]
fn clean(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "`{secret}` in: {text}");
    }
}

fn secretive(method: Method) -> Request<Full<bytes::Bytes>> {
    Request::builder()
        .method(method)
        .uri("http://user:s3cret@127.0.0.1:8080/p?api_key=K123&x=1")
        .header("authorization", "Bearer tok3n")
        .header("cookie", "session=c00kie")
        .header("idempotency-key", "K123")
        .body(Full::from("b0dy"))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn c146_no_secret_is_in_anything() {
    // C146, C170: recovered, exhausted, refused, failed, timed out, not ready, cancelled.
    let (capture, _guard) = Capture::start();
    let leaky = || status(503).header("set-cookie", "c00kie").header("location", "http://x/?K123");
    let calls: Vec<(Vec<Step>, Vec<Readiness>)> = vec![
        (vec![leaky(), status(200)], vec![]),
        (vec![leaky(), leaky(), leaky()], vec![]),
        (vec![fail(Failure::Strange)], vec![]),
        (vec![fail(Failure::Unsent), fail(Failure::Reset), fail(Failure::Unsent)], vec![]),
        (vec![hang(), hang(), hang()], vec![]),
        (vec![leaky()], vec![Readiness::Now, Readiness::Fails]),
        (vec![leaky()], vec![Readiness::Now, Readiness::Never]),
    ];
    let count = calls.len();
    for (steps, readiness) in calls {
        let script = Script::new(steps).readiness(readiness);
        let stack = TimeoutLayer::new().total(ms(30_000)).layer(RetryLayer::new(policy()).layer(script));
        if let Err(error) = stack.oneshot(secretive(Method::POST)).await {
            clean(&format!("{error} {error:?} {error:#?} {:?}", error.report()));
            let mut source = std::error::Error::source(&error);
            while let Some(error) = source {
                clean(&format!("{error} {error:?}"));
                source = error.source();
            }
        }
    }
    let all = capture.all();
    assert!(all.iter().filter(|said| said.target == "redial").count() > count);
    for said in &all {
        clean(&said.to_string());
        assert!(said.get("url").is_empty() || said.get("url") == "http://127.0.0.1:8080/p", "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_error_that_tells_secrets_is_redacted() {
    // The client's own error is untouched in `source()`; what we print of it loses userinfo and query.
    let (capture, _guard) = Capture::start();
    let leaky = tower::service_fn(|_: Request<redial::AttemptBody<Full<bytes::Bytes>>>| async {
        Err::<http::Response<String>, redial::BoxError>("cannot reach http://user:s3cret@host/p?api_key=K123".into())
    });
    let policy = policies::builder().judge_with(|_, _, _| redial::Verdict::transient()).build().unwrap();
    let error = RetryLayer::new(policy).layer(leaky).oneshot(secretive(Method::GET)).await.unwrap_err();
    clean(&format!("{error} {error:?} {error:#?}"));
    assert!(error.to_string().contains("cannot reach http://host/p"), "{error}");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("K123"));
    capture.all().iter().for_each(|said| clean(&said.to_string()));
}

#[tokio::test(start_paused = true)]
async fn providers_and_operations_are_named() {
    let policy = builder().operation("orders.list").build().unwrap();
    let said = said("an operation of its own", policy, Method::GET, [status(503), status(200)]).await;
    assert!(said.iter().all(|said| said.get("operation") == "orders.list" && said.get("provider") == "shop"));
}
