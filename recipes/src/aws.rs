//! The SDKs of AWS: our stack as their HTTP client, below their signer.

use std::fmt;

use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn},
    orchestrator::{HttpRequest, HttpResponse},
    result::ConnectorError,
};
use aws_smithy_types::{body::SdkBody, retry::RetryConfig};
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::TokioExecutor,
};
use redial::{RetryLayer, StandardPolicy, Streamed, retry::Retry};
use tower::{Layer, ServiceExt};

/// For `aws_config::defaults(…).retry_config(aws::no_retries()).http_client(aws::http_client(…))`.
pub fn no_retries() -> RetryConfig {
    RetryConfig::disabled()
}

/// An HTTP client for an SDK.
pub fn http_client<C>(policy: StandardPolicy, connector: C) -> SharedHttpClient
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let stack = RetryLayer::new(policy).layer(Client::builder(TokioExecutor::new()).build(connector));
    let connector = SharedHttpConnector::new(Stack(stack));
    http_client_fn(move |_, _| connector.clone())
}

struct Stack<C>(Retry<Client<C, redial::AttemptBody<Streamed<SdkBody>>>, StandardPolicy>);

impl<C: Connect + Clone + Send + Sync + 'static> HttpConnector for Stack<C> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let stack = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let response = stack.oneshot(request.map(Streamed::new)).await.map_err(failed)?;
            let response = HttpResponse::try_from(response.map(SdkBody::from_body_1_x));
            response.map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

fn failed(error: redial::Error) -> ConnectorError {
    match error.is_timeout() {
        true => ConnectorError::timeout(error.into()),
        false => ConnectorError::io(error.into()),
    }
}

impl<C> fmt::Debug for Stack<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}
