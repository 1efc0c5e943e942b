//! What a provider's own rules ask of a policy.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use http_body_util::Full;
use redial::{AttemptBody, CallReport, Evidence, Hint, Outcome, Plan, RetryLayer, StopReason, Transient, Verdict};
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    call,
    policies::{builder, builder_within, timeouts},
    script::{Failure, Script, ScriptBody, fail, hang, ms, request, secs, status, text},
    stop,
};

#[tokio::test(start_paused = true)]
async fn c032_without_a_look_into_the_body_a_spent_quota_is_bounded_by_attempts() {
    // With one, it is one request: that rule needs a contract file, which looks into the body.
    let mut keyed = request(Method::POST);
    keyed.headers_mut().insert("idempotency-key", "k1".parse().unwrap());
    let quota = r#"{"error":{"type":"insufficient_quota"}}"#;
    let script = Script::always(status(429).body(ScriptBody::text(quota)));
    let answer = call(&builder().build().unwrap(), &script, keyed).await.unwrap();
    assert_eq!((answer.status(), script.count()), (StatusCode::TOO_MANY_REQUESTS, 3));
    assert_eq!(stop(&answer), Some(StopReason::Attempts));
    assert_eq!(text(answer).await, quota);
}

#[tokio::test(start_paused = true)]
async fn c033_a_rule_for_rate_limits_leaves_other_faults_repeatable() {
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| {
        let limited = outcome.headers().is_some_and(|headers| headers.contains_key("retry-after"));
        if outcome.status() == Some(StatusCode::FORBIDDEN) && limited {
            return Verdict::rejected("GitHub REST, rate limits: refused before any work");
        }
        standard
    };
    let policy = builder().judge_with(judge).build().unwrap();

    let (script, start) = (Script::new([status(403).retry_after("2"), status(200)]), Instant::now());
    assert_eq!(call(&policy, &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    assert!(script.millis(start)[1] >= 2_000);

    let script = Script::new([fail(Failure::Unsent), status(200)]);
    assert_eq!(call(&policy, &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);

    // C034: a plain refusal of permission has no such header.
    let script = Script::new([status(403)]);
    call(&policy, &script, request(Method::GET)).await.unwrap();
    assert_eq!(script.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn c034_a_limit_that_names_no_wait_has_its_documented_minimum() {
    // The words in the body need a contract file; a documented minimum needs none.
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| match outcome.status() {
        Some(StatusCode::FORBIDDEN) if outcome.headers().is_some_and(|h| h.contains_key("x-ratelimit-reset")) => {
            Verdict::rejected("GitHub REST, secondary limits").with_hint(Hint::wait(secs(60)))
        }
        _ => standard,
    };
    let limited = || status(403).header("x-ratelimit-remaining", "4832").header("x-ratelimit-reset", "1700000600");
    let policy = |total| builder_within(timeouts(1_000, total)).judge_with(judge).build().unwrap();

    let (script, start) = (Script::new([limited(), status(200)]), Instant::now());
    assert_eq!(call(&policy(300_000), &script, request(Method::GET)).await.unwrap().status(), StatusCode::OK);
    assert!(script.millis(start)[1] >= 60_000);

    let (script, start) = (Script::new([limited()]), Instant::now());
    let answer = call(&policy(30_000), &script, request(Method::GET)).await.unwrap();
    assert_eq!((stop(&answer), start.elapsed()), (Some(StopReason::WaitTooLong), ms(0)));
}

#[tokio::test(start_paused = true)]
async fn c036_a_key_in_progress_is_asked_again_with_the_same_key() {
    let judge = |plan: &Plan, outcome: &Outcome<'_>, standard: Verdict| {
        let keyed = plan.evidence() == Some(&Evidence::Key);
        if outcome.status() == Some(StatusCode::CONFLICT) && keyed { Verdict::transient() } else { standard }
    };
    let policy = builder().judge_with(judge).build().unwrap();
    let mut keyed = request(Method::POST);
    keyed.headers_mut().insert("Idempotency-Key", "k1".parse().unwrap());
    let script = Script::new([hang(), status(409), status(200)]);
    assert_eq!(call(&policy, &script, keyed).await.unwrap().status(), StatusCode::OK);
    let keys: Vec<_> = script.seen().into_iter().map(|seen| seen.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys, ["k1", "k1", "k1"]);

    let script = Script::new([status(409)]);
    call(&policy, &script, request(Method::POST)).await.unwrap();
    assert_eq!(script.count(), 1, "without a key a conflict is final");
}

/// Signs with the current token; who is refused with the current one fetches the next, once.
#[derive(Clone)]
struct Tokens {
    current: Arc<Mutex<u32>>,
    refreshed: Arc<AtomicUsize>,
}

impl Tokens {
    fn sign(&self) -> (u32, HeaderValue) {
        let current = *self.current.lock().unwrap();
        (current, format!("Bearer t{current}").parse().unwrap())
    }

    fn refused(&self, with: u32) {
        let mut current = self.current.lock().unwrap();
        if *current == with {
            *current += 1;
            self.refreshed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A signer inside the retry layer, above a server that takes `t2` alone. Slow, so that many wait at once.
async fn signed(
    tokens: Tokens,
    mut request: Request<AttemptBody<Full<Bytes>>>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let (token, value) = tokens.sign();
    request.headers_mut().append(AUTHORIZATION, value);
    let all: Vec<_> = request.headers().get_all(AUTHORIZATION).iter().collect();
    assert_eq!(all.len(), 1, "one authorization on every attempt");
    tokio::time::sleep(ms(u64::from(token) * 10)).await;
    let mut response = Response::new(Full::default());
    if all[0] != "Bearer t2" {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        tokens.refused(token);
    }
    Ok(response)
}

fn refreshing() -> redial::StandardPolicy {
    let transient = Transient::usual().status_because(401, "the signer below has fetched a new token");
    redial::StandardPolicy::builder("signed", timeouts(1_000, 9_000), transient).attempts(2).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn c056_a_new_token_replaces_the_old_one() {
    let tokens = Tokens { current: Arc::new(Mutex::new(1)), refreshed: Arc::default() };
    let signer = tokens.clone();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(refreshing()))
        .service(service_fn(move |request| signed(signer.clone(), request)));
    let answer = client.oneshot(request(Method::GET)).await.unwrap();
    let report = answer.extensions().get::<CallReport>().unwrap();
    assert_eq!((answer.status(), report.attempts().len()), (StatusCode::OK, 2));
    assert_eq!(tokens.refreshed.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn c057_twenty_refusals_fetch_one_token() {
    let tokens = Tokens { current: Arc::new(Mutex::new(1)), refreshed: Arc::default() };
    let signer = tokens.clone();
    let policy = {
        let transient = Transient::usual().status_because(401, "the signer below has fetched a new token");
        let builder = redial::StandardPolicy::builder("signed", timeouts(1_000, 9_000), transient).attempts(2);
        builder.budget(redial::Budget::unlimited("every straggler replays")).build().unwrap()
    };
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(service_fn(move |request| signed(signer.clone(), request)));
    let calls = (0..20).map(|_| client.clone().oneshot(request(Method::GET)));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(tokens.refreshed.load(Ordering::SeqCst), 1);
}

/// A client that turns every failed answer into an error, as many SDKs do.
#[derive(Debug)]
struct Refused {
    status: u16,
    retry_after: Option<u64>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused with {}", self.status)
    }
}

impl std::error::Error for Refused {}

#[tokio::test(start_paused = true)]
async fn c140_a_status_inside_an_error_is_read_by_the_callers_own_judge() {
    let judge = |_: &Plan, outcome: &Outcome<'_>, standard: Verdict| match outcome
        .error()
        .and_then(|error| error.downcast_ref::<Refused>())
    {
        Some(Refused { status: 429 | 503, retry_after }) => {
            let hint = retry_after.map(|seconds| Hint::wait(secs(seconds))).unwrap_or_default();
            Verdict::transient().with_hint(hint)
        }
        _ => standard,
    };
    let start = Instant::now();
    let requests = |policy: redial::StandardPolicy| async {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let client = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let refused = Refused { status: 503, retry_after: Some(7) };
            async move { if first { Err(BoxError::from(refused)) } else { Ok(Response::new(Full::<Bytes>::default())) } }
        });
        let client = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(client);
        let result = client.oneshot(request(Method::GET)).await;
        (result.is_ok(), sent.load(Ordering::SeqCst))
    };
    assert_eq!(requests(builder().judge_with(judge).build().unwrap()).await, (true, 2));
    assert!(start.elapsed() >= secs(7));
    // Without a judge that can read it, it is opaque: not repeated.
    assert_eq!(requests(builder().build().unwrap()).await, (false, 1));
}
