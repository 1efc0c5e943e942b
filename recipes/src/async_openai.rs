//! async-openai: its executor, which retries, replaced by a stack of ours.

use async_openai::{error::OpenAIError, middleware::HttpRequestFactory};
use redial::{BoxError, RetryLayer, StandardPolicy, Streamed};
use reqwest::{Body, Response};
use tower::{Service, ServiceBuilder, ServiceExt};

/// For `Client::with_config(config).with_http_service(async_openai::service(policy, http))`. `http` is the transport,
/// its own retries switched off.
pub fn service(policy: StandardPolicy, http: reqwest::Client) -> impl OpenAiService {
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy)).service_fn(move |request: http::Request<_>| {
        let request = request.map(Body::wrap).try_into().map(|request| http.execute(request));
        async move { Ok::<_, reqwest::Error>(http::Response::from(request?.await?)) }
    });
    tower::service_fn(move |factory: HttpRequestFactory| {
        let stack = stack.clone();
        async move {
            let request = http::Request::<Body>::try_from(factory.build().await?)?;
            let answer = stack.oneshot(request.map(Streamed::new)).await;
            Ok(answer.map_err(BoxError::from)?.map(reqwest::Body::wrap).into())
        }
    })
}

/// What `with_http_service` takes.
pub trait OpenAiService:
    Service<HttpRequestFactory, Response = Response, Error = OpenAIError, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> OpenAiService for S where
    S: Service<HttpRequestFactory, Response = Response, Error = OpenAIError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}
