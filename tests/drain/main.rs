//! Failed answers are let go: read to their end where that is soon, so that the connection serves the next attempt,
//! and dropped with their connection where it is not.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod dropped;
mod reused;
mod streams;

use std::time::Duration;

use http::{Method, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use redial::CallReport;
use tower::ServiceExt;

use crate::support::{RetryClient, request, soon};

type Client = RetryClient<Empty<bytes::Bytes>>;

/// How long an answer that does not end is read.
const PATIENCE: Duration = Duration::from_millis(250);

async fn call(client: &Client, method: Method, url: &str) -> Response<redial::AnswerBody<Incoming>> {
    soon(client.clone().oneshot(request(method, url, Empty::new()))).await.unwrap()
}

/// From the first attempt's answer to the second attempt.
fn pause(response: &Response<redial::AnswerBody<Incoming>>) -> Duration {
    let attempts = response.extensions().get::<CallReport>().expect("a second attempt").attempts();
    attempts[1].started - attempts[0].started - attempts[0].duration
}

/// The shortest of several pauses: on a busy machine any one of them may be long, but if an answer is waited for, all
/// are.
async fn shortest<F: Future<Output = Duration>>(pause: impl Fn() -> F) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        shortest = shortest.min(pause().await);
    }
    shortest
}
