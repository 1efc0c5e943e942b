//! A verdict of one's own: this provider says 409 while a lock is held, and 403 with a header when it throttles.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use redial::{
    AttemptBody, Backoff, CallReport, Outcome, Plan, RetryLayer, StandardPolicy, Timeouts, Transient, Verdict,
};
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// Overrides what the standard verdict would be. It cannot claim that a request was never sent, and it cannot shorten a
/// wait that the server asked for.
fn judge(_: &Plan, outcome: &Outcome<'_>, standard: Verdict) -> Verdict {
    let throttled = outcome.headers().is_some_and(|headers| headers.contains_key("x-throttled"));
    match outcome.status() {
        Some(StatusCode::CONFLICT) => Verdict::transient(),
        Some(StatusCode::FORBIDDEN) if throttled => Verdict::rejected("API guide: refused before any work"),
        _ => standard,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("locks", timeouts, Transient::usual())
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .judge_with(judge)
        .build()?;

    for (method, first, header) in [
        ("PUT", StatusCode::CONFLICT, "x-other"),
        ("POST", StatusCode::CONFLICT, "x-other"),
        ("POST", StatusCode::FORBIDDEN, "x-throttled"),
        ("POST", StatusCode::FORBIDDEN, "x-other"),
    ] {
        // In the place of a client: answers once with this status and header, then with 200.
        let answered = Arc::new(AtomicBool::new(false));
        let provider = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
            let status = if answered.swap(true, Ordering::Relaxed) { StatusCode::OK } else { first };
            let response = Response::builder().status(status).header(header, "1").body(Full::<Bytes>::default());
            async move { response }
        });
        let client = ServiceBuilder::new().layer(RetryLayer::new(policy.clone())).service(provider);
        let request = Request::builder().method(method).uri("http://locks.example/1").body(Full::<Bytes>::default())?;

        let response = client.oneshot(request).await?;
        let report = response.extensions().get::<CallReport>();
        let attempts = report.map_or(1, |report| report.attempts().len());
        let stop = report.and_then(CallReport::stop).map(|stop| format!(", stopped: {stop}")).unwrap_or_default();
        let (first, last) = (first.as_u16(), response.status().as_u16());
        println!("{method} answered {first} with {header}: {attempts} attempts, then {last}{stop}");
    }
    Ok(())
}
