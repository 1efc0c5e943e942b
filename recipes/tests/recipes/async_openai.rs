//! async-openai, whose default is three retries of 429, of 5xx and of failed connections, of any method.

use std::time::Duration;

use async_openai::{
    Client,
    config::OpenAIConfig,
    error::OpenAIError,
    middleware::retry::OpenAIRetryLayer,
    types::{models::ListModelResponse, moderations::CreateModerationRequest},
};
use redial::{
    StopReason,
    testing::{Reply, Server},
};
use redial_recipes::async_openai::service;
use serde_json::json;
use tower::Layer;

use crate::support::{Counts, ours, policy};

fn config(server: &Server) -> OpenAIConfig {
    OpenAIConfig::new().with_api_base(server.url("/v1")).with_api_key("a key")
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build().unwrap()
}

fn theirs(server: &Server) -> Client<OpenAIConfig> {
    Client::build(http(), config(server))
}

fn recipe(server: &Server) -> Client<OpenAIConfig> {
    Client::with_config(config(server)).with_http_service(service(policy(), http()))
}

fn both(server: &Server) -> Client<OpenAIConfig> {
    let stack = OpenAIRetryLayer::default().layer(service(policy(), http()));
    Client::with_config(config(server)).with_http_service(stack)
}

async fn get(client: &Client<OpenAIConfig>) -> Result<ListModelResponse, OpenAIError> {
    client.models().list().await
}

async fn post(client: &Client<OpenAIConfig>) -> Result<(), OpenAIError> {
    let request = CreateModerationRequest { input: "once, please".into(), model: None };
    client.moderations().create(request).await.map(drop)
}

async fn counts(client: impl Fn(&Server) -> Client<OpenAIConfig>) -> [usize; 2] {
    let server = Server::http1([Reply::status(503)]);
    assert!(get(&client(&server)).await.is_err());
    assert!(post(&client(&server)).await.is_err());
    let seen = server.seen();
    let sent = |route| seen.to(route).requests.len();
    [sent("GET /{*all}"), sent("POST /{*all}")]
}

#[tokio::test]
async fn counts_of_async_openai() {
    let mut table = Counts::new("async-openai: requests", ["GET 503", "POST 503"]);
    table.row("its three retries alone", counts(theirs).await);
    table.row("the recipe: ours alone", counts(recipe).await);
    table.row("both", counts(both).await);
    table.are(&[[4, 4], [3, 1], [12, 4]]);
}

#[tokio::test]
async fn the_recipe_repeats_the_whole_request() {
    let none = json!({ "object": "list", "data": [] }).to_string();
    let server = Server::http1([Reply::status(503), Reply::status(429).header("retry-after", "1"), Reply::ok(none)]);
    assert_eq!(get(&recipe(&server)).await.unwrap().data, []);
    let seen = server.seen();
    assert!(seen.sent(3).requests.iter().all(|request| request.headers["authorization"] == "Bearer a key"), "{seen}");
    assert!(seen.gaps()[1] >= Duration::from_secs(1), "Retry-After: {seen}");
}

/// `Boxed` shows what is in ours, and not ours: it has to be asked.
#[tokio::test]
async fn its_errors_hold_ours() {
    let error = get(&recipe(&Server::refusing())).await.unwrap_err();
    let OpenAIError::Boxed(error) = error else { panic!("{error:?}") };
    let ours = ours(&*error);
    assert!(ours.find_source::<reqwest::Error>().is_some_and(reqwest::Error::is_connect));
    assert_eq!(ours.report().unwrap().stop(), Some(StopReason::Attempts));
}
