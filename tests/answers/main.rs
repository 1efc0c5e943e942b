//! What an answer means beyond its number (S6): rules on status and headers, an earlier attempt, and a look into its body.
#![cfg(all(feature = "testing", feature = "contract"))]

#[path = "../common/policies.rs"]
mod policies;

mod look;
mod rules;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use redial::{
    AnswerBody, CallReport, RetryLayer, StandardPolicy, StopReason,
    testing::{self, Reply, ReplyBody, ScriptService},
};
use tower::{Layer, ServiceExt};

type Answer = Response<AnswerBody<ReplyBody>>;

/// One call with these replies, and what was asked for it.
async fn call(
    policy: StandardPolicy,
    method: Method,
    replies: impl IntoIterator<Item = Reply>,
) -> (Answer, ScriptService) {
    let service = testing::service(testing::Script::new(replies).exact());
    let request = Request::builder().method(method).uri("/orders").body(Full::<Bytes>::from("one")).unwrap();
    (RetryLayer::new(policy).layer(service.clone()).oneshot(request).await.unwrap(), service)
}

fn stop(answer: &Answer) -> Option<StopReason> {
    answer.extensions().get::<CallReport>().and_then(CallReport::stop)
}
