//! Redirects between the two layers, and above both.

use http::Version;
use redial::{BoxError, RetryLayer};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::follow_redirect::FollowRedirectLayer;

use super::{
    hidden, report,
    support::{Server, VERSIONS, answer, client, policy, redirect},
};

type Done = Result<(), BoxError>;

fn times(server: &Server, path: &str) -> usize {
    server.paths().iter().filter(|seen| *seen == path).count()
}

#[tokio::test]
async fn within_an_origin_keep_the_marker() -> Done {
    for version in VERSIONS {
        let server = Server::start(|_, seen| match &*seen.path {
            "/from" => redirect("/to"),
            _ => answer(503),
        })
        .await;
        let stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(FollowRedirectLayer::new())
            .service(hidden(version, RetryLayer::new(policy())));
        let response = stack.oneshot(server.get("/from")).await?;
        assert_eq!((times(&server, "/from"), times(&server, "/to")), (3, 3));
        assert!(report(&response).inner_stacked());
    }
    Ok(())
}

/// A known loss: extensions do not cross origins, for they may hold secrets. The second hop is then a call of its own.
#[tokio::test]
async fn to_another_origin_lose_it() -> Done {
    let to = Server::always(503).await;
    let there = to.url("/to");
    let from = Server::start(move |_, _| redirect(&there)).await;
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(FollowRedirectLayer::new())
        .service(hidden(Version::HTTP_11, RetryLayer::new(policy())));
    stack.oneshot(from.get("/from")).await?;
    assert_eq!((from.count(), to.count()), (3, 9));
    Ok(())
}

/// Above the retry layer, each hop is a call of its own: the marker of the hop before is not in it.
#[tokio::test]
async fn outside_are_never_stacked() -> Done {
    let server = Server::start(|_, seen| match &*seen.path {
        "/from" => redirect("/to"),
        _ => answer(503),
    })
    .await;
    let stack = ServiceBuilder::new()
        .layer(FollowRedirectLayer::new())
        .layer(RetryLayer::new(policy()).refuse_stacking())
        .service(client(Version::HTTP_11));
    let response = stack.oneshot(server.get("/from")).await?;
    assert_eq!((times(&server, "/from"), times(&server, "/to")), (1, 3));
    assert!(!report(&response).inner_stacked());
    Ok(())
}
