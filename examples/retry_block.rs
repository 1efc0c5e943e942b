//! A block of code, repeated by a policy: what is not one request, but has to be done again as a whole.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{Backoff, Failure, RetryLayer, StandardPolicy, Timeouts, Transient};
use tower::{ServiceBuilder, ServiceExt};

#[path = "support/flaky.rs"]
mod flaky;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("reports", timeouts, Transient::usual())
        .operation("monthly")
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .build()?;
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy.clone()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let get = |url: String| {
        let client = client.clone();
        async move {
            let request = Request::get(url).body(Full::<Bytes>::default())?;
            // From 400 on it is a failure of the block, by all that the answer says.
            let answer = Failure::check(client.oneshot(request).await?)?;
            Ok::<_, Failure>(answer.into_body().collect().await?.to_bytes())
        }
    };

    // The client has a retry layer of its own. Within the block it sends once: three attempts, not nine.
    let report = flaky::server([503, 503, 200]).await?;
    let text = redial::retry(&policy, |attempt| {
        println!("attempt {}", attempt.number());
        get(report.clone())
    });
    let text = text.idempotent("it only reads").await?;
    println!("{}", String::from_utf8_lossy(&text));

    // A token serves more than this path: its fetch repeats by itself.
    let (tokens, report) = (flaky::server([503, 200]).await?, flaky::server([200]).await?);
    let pages = redial::retry(&policy, |attempt| {
        println!("attempt {}, with a token", attempt.number());
        let (token, report) = (redial::independent(get(tokens.clone())), get(report.clone()));
        async move { Ok((token.await?, report.await?)) }
    });
    let (token, text) = pages.idempotent("it only reads").await?;
    println!("{}, {}", String::from_utf8_lossy(&token), String::from_utf8_lossy(&text));

    // What the block itself knows to be final, and an answer that is.
    let empty = redial::retry(&policy, |_| async { Err::<(), _>(Failure::permanent("the report is empty")) });
    if let Err(error) = empty.idempotent("it only reads").await {
        println!("stopped: {}", error.stop().map(|stop| stop.as_str()).unwrap_or_default());
    }
    let gone = flaky::server([404]).await?;
    if let Err(error) = redial::retry(&policy, |_| get(gone.clone())).idempotent("it only reads").await {
        let report = error.report().ok_or("a block that failed has a report")?;
        println!("{} after {} attempt", report.attempts()[0].outcome, report.attempts().len());
    }

    // Nobody said that it may be done twice.
    let unsaid = redial::retry(&policy, |_| async { Err::<(), _>(Failure::transient("not yet")) });
    if let Err(error) = unsaid.as_the_policy_says().await {
        println!("stopped: {}", error.stop().map(|stop| stop.as_str()).unwrap_or_default());
    }
    Ok(())
}
