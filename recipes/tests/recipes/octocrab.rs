//! octocrab, whose default is three retries without a delay, of any method.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Uri,
    header::{AUTHORIZATION, USER_AGENT},
};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use octocrab::{
    AuthState, OctoBody, Octocrab, OctocrabBuilder,
    service::middleware::{base_uri::BaseUriLayer, extra_headers::ExtraHeadersLayer, retry::RetryConfig},
};
use redial::{
    Budget, RetryLayer, StandardPolicy, StopReason, Streamed,
    testing::{Reply, Server},
};
use redial_recipes::octocrab::client;
use serde_json::{Value, json};
use tower::{Layer, retry::RetryLayer as TowerRetryLayer};
use tower_http::map_request_body::MapRequestBodyLayer;

use crate::support::{Counts, Tried, ours, policy, with_budget};

type Outcome = octocrab::Result<Value>;

async fn get(client: &Octocrab) -> Outcome {
    client.get("/repos/one/two", None::<&()>).await
}

async fn post(client: &Octocrab) -> Outcome {
    client.post("/repos/one/two/issues", Some(&json!({ "title": "once, please" }))).await
}

fn at(server: &Server) -> Uri {
    server.url("/").parse().unwrap()
}

/// As `OctocrabBuilder::build` puts it together, with a connector that counts.
fn theirs(tried: &Tried, server: &Server) -> Octocrab {
    let client = Client::builder(TokioExecutor::new()).build(tried.connector());
    let stack = TowerRetryLayer::new(RetryConfig::Simple(3)).layer(client);
    let Ok(client) = OctocrabBuilder::new_empty()
        .with_service(stack)
        .with_layer(&BaseUriLayer::new(at(server)))
        .with_auth(AuthState::None)
        .build();
    client
}

fn recipe(policy: StandardPolicy, tried: &Tried, server: &Server) -> Octocrab {
    client(policy, tried.connector(), at(server), AuthState::AccessToken { token: "a token".to_owned().into() })
}

/// Their retries, switched on by hand, above ours.
fn both(policy: StandardPolicy, tried: &Tried, server: &Server) -> Octocrab {
    let client = Client::builder(TokioExecutor::new()).build(tried.connector());
    let stack = MapRequestBodyLayer::new(Streamed::new).layer(RetryLayer::new(policy).layer(client));
    let agent = (USER_AGENT, HeaderValue::from_static("both"));
    let Ok(client) = OctocrabBuilder::new_empty()
        .with_service(stack)
        .with_layer(&TowerRetryLayer::new(RetryConfig::Simple(3)))
        .with_layer(&BaseUriLayer::new(at(server)))
        .with_layer(&ExtraHeadersLayer::new(Arc::new(vec![agent])))
        .with_auth(AuthState::None)
        .build();
    client
}

/// Requests that reach a server which answers 503, by GET and by POST; connections tried where they are refused.
async fn counts(client: impl Fn(&Tried, &Server) -> Octocrab) -> [usize; 4] {
    let (answering, refusing) = (Server::http1([Reply::status(503)]), Server::refusing());
    let (of_gets, of_posts) = (Tried::default(), Tried::default());

    assert!(get(&client(&Tried::default(), &answering)).await.is_err());
    assert!(post(&client(&Tried::default(), &answering)).await.is_err());
    assert!(get(&client(&of_gets, &refusing)).await.is_err());
    assert!(post(&client(&of_posts, &refusing)).await.is_err());

    let seen = answering.seen();
    let sent = |route| seen.to(route).requests.len();
    [sent("GET /{*all}"), sent("POST /{*all}"), of_gets.count(), of_posts.count()]
}

#[tokio::test]
async fn counts_of_octocrab() {
    let columns = ["GET 503", "POST 503", "GET refused", "POST refused"];
    let mut table = Counts::new("octocrab: requests, or connections tried", columns);
    table.row("its three retries alone", counts(theirs).await);
    table.row("the recipe: ours alone", counts(ours_alone).await);
    table.row("both", counts(|tried, server| both(policy(), tried, server)).await);
    let usual = |tried: &Tried, server: &Server| both(with_budget(Budget::usual()), tried, server);
    table.row("both, ours with its usual budget", counts(usual).await);
    table.are(&[[4, 4, 4, 4], [3, 1, 3, 3], [12, 4, 12, 12], [7, 4, 7, 7]]);
}

/// What `OctocrabBuilder::build` makes, with and without `RetryConfig::None`.
#[tokio::test]
async fn its_own_client_retries_a_post_unless_told_not_to() {
    for (config, sent) in [(None, 4), (Some(RetryConfig::None), 1)] {
        let server = Server::http1([Reply::status(503)]);
        let builder = Octocrab::builder().base_uri(at(&server)).unwrap();
        let builder = config.into_iter().fold(builder, |builder, config| builder.add_retry_config(config));

        assert!(post(&builder.build().unwrap()).await.is_err());
        let seen = server.seen();
        seen.sent(sent);
        assert!(seen.gaps().iter().all(|gap| *gap < Duration::from_millis(100)), "no delay: {seen}");
    }
}

/// The recipe: what it sends is what octocrab sends, each time, and its error holds ours.
#[tokio::test]
async fn the_recipe_repeats_the_whole_request() {
    let answers = [Reply::status(503), Reply::status(429).header("retry-after", "1"), Reply::ok(r#"{"id": 1}"#)];
    let server = Server::http1(answers);
    let tried = Tried::default();
    let client = recipe(policy(), &tried, &server);

    let outcome: Value = client.put("/repos/one/two/subscription", Some(&json!({ "subscribed": true }))).await.unwrap();
    assert_eq!(outcome, json!({ "id": 1 }));
    let seen = server.seen();
    for request in &seen.sent(3).requests {
        assert!(request.body.is(r#"{"subscribed":true}"#), "{seen}");
        assert_eq!(request.headers[AUTHORIZATION], "Bearer a token");
        assert_eq!(request.headers[USER_AGENT], "my-program");
    }
    assert!(seen.gaps()[1] >= Duration::from_secs(1), "Retry-After: {seen}");
    assert_eq!(tried.count(), seen.connections);

    let refusing = Server::refusing();
    let error = get(&recipe(policy(), &tried, &refusing)).await.unwrap_err();
    let ours = ours(&error);
    assert!(ours.is_connect());
    assert_eq!(ours.report().unwrap().stop(), Some(StopReason::Attempts));
}

/// A body that octocrab does not hold in memory: its retry sends an empty one in its place, ours the same.
#[tokio::test]
async fn a_streamed_body_is_repeated_as_it_was() {
    for (client, bodies) in [(theirs as fn(&_, &_) -> _, ["an asset", ""]), (ours_alone, ["an asset", "an asset"])] {
        let server = Server::http1([Reply::status(503), Reply::ok("{}")]);
        let asset = OctoBody::new(Full::new(Bytes::from("an asset")));
        let upload = Request::put("/repos/one/two/contents/three").body(asset).unwrap();
        client(&Tried::default(), &server).execute(upload).await.unwrap();
        let seen = server.until(|seen| seen.complete() == 2).await;
        assert!(seen.requests.iter().zip(bodies).all(|(request, body)| request.body.is(body)), "{seen}");
    }
}

fn ours_alone(tried: &Tried, server: &Server) -> Octocrab {
    recipe(policy(), tried, server)
}
