//! What the SDKs of Google Cloud retry with. Their transport takes no service of ours: their retry loop is run here,
//! with the policies of the recipes, over a client of ours.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use google_cloud_gax::{
    backoff_policy::BackoffPolicy,
    client_builder::{
        self, ClientBuilder,
        internal::{ClientConfig, ClientFactory, new_builder},
    },
    error::Error,
    exponential_backoff::ExponentialBackoffBuilder,
    retry_loop_internal::retry_loop,
    retry_policy::{Aip194Strict, RetryPolicy, RetryPolicyExt},
    retry_throttler::CircuitBreaker,
};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    RetryLayer, StandardPolicy,
    testing::{Reply, Server},
};
use redial_recipes::google::{bounded, unretried};
use tower::{Layer, ServiceExt};

use crate::support::{Counts, Tried, policy};

/// A client that is nothing but its configuration.
struct Configuration;

impl ClientFactory for Configuration {
    type Client = ClientConfig<()>;
    type Credentials = ();

    async fn build(self, config: ClientConfig<()>) -> client_builder::Result<Self::Client> {
        Ok(config)
    }
}

type Builder = ClientBuilder<Configuration, ()>;

async fn retries(recipe: fn(Builder) -> Builder) -> Arc<dyn RetryPolicy> {
    recipe(new_builder(Configuration)).build().await.unwrap().retry_policy.unwrap()
}

/// What google-cloud-gax-internal 0.7.10 takes where none is given (src/http.rs, src/grpc.rs).
async fn default_retries() -> Arc<dyn RetryPolicy> {
    Arc::new(Aip194Strict.with_attempt_limit(10).with_time_limit(Duration::from_secs(60)))
}

fn backoff() -> Arc<dyn BackoffPolicy> {
    let [initial, max] = [5, 20].map(Duration::from_millis);
    Arc::new(ExponentialBackoffBuilder::new().with_initial_delay(initial).with_maximum_delay(max).build().unwrap())
}

async fn call(
    server: &Server,
    method: Method,
    retries: Arc<dyn RetryPolicy>,
    policy: StandardPolicy,
) -> Result<Bytes, Error> {
    let client = Client::builder(TokioExecutor::new()).build(Tried::default().connector());
    let client = RetryLayer::new(policy).layer(client);
    let send = async |_| {
        let request = Request::builder().method(&method).uri(server.url("/v1/things/one"));
        let response =
            client.clone().oneshot(request.body(Full::<Bytes>::default()).unwrap()).await.map_err(Error::io)?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Error::io)?.to_bytes();
        if head.status.is_success() { Ok(body) } else { Err(Error::http(head.status.as_u16(), head.headers, body)) }
    };
    let throttler = Arc::new(Mutex::new(CircuitBreaker::new(1_000, 0, 1).unwrap()));
    retry_loop(send, async |wait| tokio::time::sleep(wait).await, method.is_idempotent(), throttler, retries, backoff())
        .await
}

async fn counts(retries: Arc<dyn RetryPolicy>, policy: fn() -> StandardPolicy) -> [usize; 2] {
    let server = Server::http1([Reply::status(503)]);
    for method in [Method::GET, Method::POST] {
        assert!(call(&server, method, retries.clone(), policy()).await.is_err());
    }
    let seen = server.seen();
    let sent = |route| seen.to(route).requests.len();
    [sent("GET /{*all}"), sent("POST /{*all}")]
}

fn once() -> StandardPolicy {
    StandardPolicy::unretried("scripted", Duration::from_secs(5)).unwrap()
}

#[tokio::test]
async fn counts_of_a_google_cloud_sdk() {
    let mut table = Counts::new("Google Cloud: requests", ["GET 503", "POST 503"]);
    table.row("its default, ten attempts, alone", counts(default_retries().await, once).await);
    table.row("the first recipe alone: none", counts(retries(unretried).await, once).await);
    table.row("the second recipe alone: bounded", counts(retries(bounded).await, once).await);
    table.row("none of theirs above ours", counts(retries(unretried).await, policy).await);
    table.row("the default above ours", counts(default_retries().await, policy).await);
    table.are(&[[10, 1], [1, 1], [3, 1], [3, 1], [30, 1]]);
}
