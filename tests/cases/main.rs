//! Real reports from people who run HTTP clients, each reduced to an input and the right behaviour.
//!
//! Named by their ids (`c025_…`), as those elsewhere in these tests are: `README.md` lists all. On paused time and in
//! memory, but for `clients`: what else was about sockets is in `faults`, `once`, `drain` and `replay`.

#[path = "../common/capture.rs"]
mod capture;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod body;
mod classify;
#[cfg(all(feature = "reqwest-middleware", feature = "testing"))]
mod clients;
mod hostile;
mod layering;
mod listed;
mod provider;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use redial::{CallReport, Error, RetryLayer, StandardPolicy, StopReason};
use script::{Script, ScriptBody};
use tower::{Layer, ServiceExt};

type Answer = Response<redial::AnswerBody<ScriptBody>>;

async fn call(policy: &StandardPolicy, script: &Script, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    RetryLayer::new(policy.clone()).layer(script.clone()).oneshot(request).await
}

fn stop<B>(answer: &Response<B>) -> Option<StopReason> {
    answer.extensions().get().and_then(CallReport::stop)
}
