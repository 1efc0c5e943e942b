//! One retry per path, where types cannot see the second one.

#[path = "../support/counting.rs"]
mod support;

mod events;
mod handlers;
mod losses;
mod marker;
mod redirects;
mod stacked;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{Full, combinators::BoxBody};
use hyper::body::Incoming;
use redial::{AnswerBody, AttemptBody, CallReport, RetryLayer, StandardPolicy};
use tower::{ServiceBuilder, util::BoxCloneSyncService};
use tower_http::map_request_body::MapRequestBodyLayer;

use support::client;

/// A body that does not show what it was.
type Erased = BoxBody<Bytes, redial::BoxError>;

/// What stands under an outer retry layer whose types do not show that there is one more.
type Hidden = BoxCloneSyncService<Request<AttemptBody<Full<Bytes>>>, Response<AnswerBody<Incoming>>, redial::Error>;

/// A second retry layer, hidden by a boxed body.
fn hidden(version: Version, second: RetryLayer<StandardPolicy>) -> Hidden {
    let stack =
        ServiceBuilder::new().layer(MapRequestBodyLayer::new(Erased::new)).layer(second).service(client(version));
    BoxCloneSyncService::new(stack)
}

fn report<B>(response: &Response<B>) -> &CallReport {
    response.extensions().get().expect("a report")
}
