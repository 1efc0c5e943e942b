//! kube: a client on a stack of ours.

use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::TokioExecutor,
};
use kube::client::ConfigExt;
use redial::{BoxError, RetryLayer, StandardPolicy, Streamed};
use tower::ServiceBuilder;
use tower_http::map_request_body::MapRequestBodyLayer;

/// `connector` is `config.rustls_https_connector()?`, or whichever you have.
///
/// # Errors
///
/// Where the configuration's credentials or headers cannot be read.
pub fn client<C>(policy: StandardPolicy, connector: C, config: kube::Config) -> kube::Result<kube::Client>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(MapRequestBodyLayer::new(Streamed::new))
        .layer(RetryLayer::new(policy))
        // Below: a token that has expired meanwhile is fetched anew.
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build(connector));
    Ok(kube::Client::new(stack, config.default_namespace))
}
