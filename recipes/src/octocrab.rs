//! octocrab: its own service replaced by a stack of ours.

use std::sync::Arc;

use http::{HeaderValue, Uri, header::USER_AGENT};
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::TokioExecutor,
};
use octocrab::{
    AuthState, Octocrab, OctocrabBuilder,
    service::middleware::{base_uri::BaseUriLayer, extra_headers::ExtraHeadersLayer},
};
use redial::{RetryLayer, StandardPolicy, Streamed};
use tower::ServiceBuilder;
use tower_http::map_request_body::MapRequestBodyLayer;

/// `connector` is hyper-rustls's, or whichever you have. What a default `Octocrab` adds besides (a user agent, the base
/// URL, the token) is added here.
pub fn client<C>(policy: StandardPolicy, connector: C, github: Uri, auth: AuthState) -> Octocrab
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(MapRequestBodyLayer::new(Streamed::new))
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build(connector));
    let agent = (USER_AGENT, HeaderValue::from_static("my-program"));
    let Ok(client) = OctocrabBuilder::new_empty()
        .with_service(stack)
        .with_layer(&BaseUriLayer::new(github))
        .with_layer(&ExtraHeadersLayer::new(Arc::new(vec![agent])))
        .with_auth(auth)
        .build();
    client
}
