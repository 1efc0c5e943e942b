//! kube, whose default is fifteen retries of 429, 503 and 504, of any method.

use std::{iter, time::Duration};

use futures_util::TryStreamExt;
use http::{Request, Response};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    api::{ListParams, PostParams},
    client::{Body, ConfigExt, retry::RetryPolicy},
    runtime::watcher::{self, Event, watcher},
};
use redial::{
    BoxError, RetryLayer, StopReason, Streamed,
    testing::{Reply, Server},
};
use redial_recipes::kube::client;
use serde_json::{Value, json};
use tower::{
    ServiceBuilder,
    retry::{Policy, RetryLayer as TowerRetryLayer},
};
use tower_http::map_request_body::MapRequestBodyLayer;

use crate::support::{Counts, Tried, ours, policy};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config(server: &Server) -> Config {
    Config::new(server.url("").parse().unwrap())
}

/// Fifteen retries take minutes: kube's own policy with fewer.
fn fewer() -> RetryPolicy {
    RetryPolicy::new(Duration::from_millis(5), Duration::from_millis(20), 3, true).unwrap()
}

/// As kube's own builder puts it together.
fn theirs(tried: &Tried, server: &Server) -> kube::Client {
    let config = config(server);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(TowerRetryLayer::new(fewer()))
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build(tried.connector()));
    kube::Client::new(stack, "default")
}

fn recipe(tried: &Tried, server: &Server) -> kube::Client {
    client(policy(), tried.connector(), config(server)).unwrap()
}

fn both(tried: &Tried, server: &Server) -> kube::Client {
    let config = config(server);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(TowerRetryLayer::new(fewer()))
        .map_err(BoxError::from)
        .layer(MapRequestBodyLayer::new(Streamed::new))
        .layer(RetryLayer::new(policy()))
        .service(Client::builder(TokioExecutor::new()).build(tried.connector()));
    kube::Client::new(stack, "default")
}

fn map(name: &str, version: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "resourceVersion": version.to_string() },
    })
}

fn list(version: u32, maps: &[Value]) -> Reply {
    let metadata = json!({ "resourceVersion": version.to_string() });
    Reply::ok(json!({ "apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": maps }).to_string())
}

fn event(kind: &str, object: Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

async fn get(client: kube::Client) -> kube::Result<usize> {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    Ok(maps.list(&ListParams::default()).await?.items.len())
}

async fn post(client: kube::Client) -> kube::Result<ConfigMap> {
    let one: ConfigMap = serde_json::from_value(map("one", 0)).unwrap();
    Api::<ConfigMap>::default_namespaced(client).create(&PostParams::default(), &one).await
}

async fn counts(client: impl Fn(&Tried, &Server) -> kube::Client) -> [usize; 4] {
    let (answering, refusing) = (Server::http1([Reply::status(503)]), Server::refusing());
    let (of_gets, of_posts) = (Tried::default(), Tried::default());

    assert!(get(client(&Tried::default(), &answering)).await.is_err());
    assert!(post(client(&Tried::default(), &answering)).await.is_err());
    assert!(get(client(&of_gets, &refusing)).await.is_err());
    assert!(post(client(&of_posts, &refusing)).await.is_err());

    let seen = answering.seen();
    let sent = |route| seen.to(route).requests.len();
    [sent("GET /{*all}"), sent("POST /{*all}"), of_gets.count(), of_posts.count()]
}

#[tokio::test]
async fn counts_of_kube() {
    let columns = ["GET 503", "POST 503", "GET refused", "POST refused"];
    let mut table = Counts::new("kube: requests, or connections tried", columns);
    table.row("its retries alone, three of them", counts(theirs).await);
    table.row("the recipe: ours alone", counts(recipe).await);
    table.row("both", counts(both).await);
    table.are(&[[4, 4, 1, 1], [3, 1, 3, 3], [12, 4, 3, 3]]);
}

/// The default of kube's client, asked until it says no.
#[tokio::test]
async fn its_own_policy_retries_fifteen_times() {
    let mut policy = RetryPolicy::server_retry();
    let mut request = Request::post("/").body(Body::from(b"once, please".to_vec())).unwrap();
    let mut answer = Ok::<_, BoxError>(Response::builder().status(503).body(()).unwrap());
    assert_eq!(iter::from_fn(|| policy.retry(&mut request, &mut answer)).count(), 15);
}

/// What `kube::Client::try_from` makes, and how to switch its retries off.
#[tokio::test]
async fn its_own_client_retries_a_post_unless_told_not_to() {
    for (default_retry, sent) in [(true, 3), (false, 1)] {
        let server = Server::http1([Reply::status(503), Reply::status(503), Reply::ok(map("one", 1).to_string())]);
        let mut config = config(&server);
        config.default_retry = default_retry;
        let outcome = post(config.try_into().unwrap()).await;
        assert_eq!(outcome.is_ok(), default_retry);
        server.seen().sent(sent);
    }
}

#[tokio::test]
async fn the_recipe_lists_from_a_server_in_trouble() {
    let trouble = [Reply::status(429).header("retry-after", "1"), Reply::status(503), list(7, &[map("one", 7)])];
    let server = Server::http1(trouble);
    assert_eq!(get(recipe(&Tried::default(), &server)).await.unwrap(), 1);

    let seen = server.seen();
    assert!(seen.sent(3).requests.iter().all(|request| request.path.starts_with(MAPS)), "{seen}");
    assert!(seen.gaps()[0] >= Duration::from_secs(1), "Retry-After: {seen}");

    let error = get(recipe(&Tried::default(), &Server::refusing())).await.unwrap_err();
    assert_eq!(ours(&error).report().unwrap().stop(), Some(StopReason::Attempts));
}

/// A watch that broke is not repeated by us, who handed its answer on: kube's watcher asks anew, from the version that
/// it has seen. What we repeat is a watch that was refused.
#[tokio::test]
async fn a_broken_watch_is_resumed_by_the_watcher() {
    let until = |version| Reply::ok(event("MODIFIED", map("one", version)));
    let watches = [until(8).close_within(), Reply::status(503), until(9).break_within(), until(10).stall_within()];
    let server = Server::http1([list(7, &[map("one", 7)])].into_iter().chain(watches).collect::<Vec<_>>());

    let maps = Api::<ConfigMap>::default_namespaced(recipe(&Tried::default(), &server));
    let mut events = Box::pin(watcher(maps, watcher::Config::default()));
    let (mut versions, mut failures) = (Vec::new(), Vec::new());
    while versions.last().is_none_or(|version| version != "10") {
        match events.try_next().await {
            Ok(Some(Event::Apply(map) | Event::InitApply(map))) => versions.extend(map.metadata.resource_version),
            Ok(Some(_)) => {}
            Ok(None) => panic!("a watcher has no end"),
            Err(error) => failures.push(error),
        }
    }
    assert_eq!(versions, ["7", "8", "9", "10"]);
    // kube takes a body that was cut off for the end of a watch, and says so of one that was broken.
    assert!(matches!(failures[..], [watcher::Error::WatchFailed(_)]), "{failures:?}");

    let seen = server.seen();
    let from = |path: &str| Some(path.split_once("&resourceVersion=")?.1.split('&').next()?.to_owned());
    let from: Vec<_> = seen.sent(5).requests.iter().map(|request| from(&request.path).unwrap_or_default()).collect();
    println!("\nkube: from which version a broken watch is asked for: {from:?}");
    assert_eq!(from, ["", "7", "8", "8", "9"], "the list; a watch that breaks; a refused one, ours again; two more");
}
