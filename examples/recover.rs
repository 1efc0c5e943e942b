//! What a failure comes to, in one place: a business failure passes unchanged, a network failure that no retry mended is
//! the service's own "AI server unavailable", and where there is something to offer instead, that is the answer. Needs
//! nothing: it starts flaky servers of its own.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    Backoff, Budget, RecoverLayer, RetryLayer, StandardPolicy, Timeouts, Transient,
    layers::{Failure, RecoverBody},
};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;

/// All that the code above this client is to know of the network.
#[derive(Debug)]
struct AiServerUnavailable {
    attempts: usize,
    /// The quiz may have been made: look for it before asking for another.
    perhaps_done: bool,
    /// `None`: it was answered, and the answer was "not now".
    cause: Option<redial::Error>,
}

impl fmt::Display for AiServerUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AI server unavailable, after {} attempts", self.attempts)
    }
}

impl Error for AiServerUnavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// Called for what failed finally, once a call.
fn recover<B>(failure: Failure<B>) -> Result<Response<RecoverBody<B>>, AiServerUnavailable> {
    if failure.method() == Method::GET && failure.uri().path() == "/" {
        return Ok(Response::new(RecoverBody::from("yesterday's quiz")));
    }
    Err(AiServerUnavailable {
        attempts: failure.report().map_or(0, |report| report.attempts().len()),
        perhaps_done: failure.outcome_unknown(),
        cause: failure.into_answer().err(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let backoff = Backoff::exponential(Duration::from_millis(60)).max(Duration::from_millis(120));
    let policy = StandardPolicy::builder("ai", timeouts, Transient::usual())
        .backoff(backoff)
        .budget(Budget::unlimited("most of these calls fail, and each is to show what becomes of it"))
        .build()?;
    let client = ServiceBuilder::new()
        .layer(RecoverLayer::new(recover))
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());

    // Nobody listens on a port that was free a moment ago.
    let closed = format!("http://{}/", tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?);
    let make = |url: &str| Request::put(format!("{url}quizzes/42")).body(Full::<Bytes>::from("about frogs"));
    for (what, request) in [
        ("made at the second attempt", make(&flaky::server([503, 201]).await?)?),
        ("a topic that is refused", make(&flaky::server([422]).await?)?),
        ("a server that is overloaded", make(&flaky::server([503]).await?)?),
        ("a server that is gone", make(&closed)?),
        ("the quiz of the day", Request::get(flaky::server([503]).await?).body(Full::default())?),
    ] {
        match client.clone().oneshot(request).await {
            Ok(response) => {
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                println!("{what}: {status}, {:?}", String::from_utf8_lossy(&body));
            }
            Err(error) => {
                println!("{what}: {error}; perhaps done: {}, cause: {}", error.perhaps_done, error.source().is_some());
            }
        }
    }
    Ok(())
}
