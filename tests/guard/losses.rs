//! Where the marker is lost. Documented at [`RetryLayer`]; here so that a change does not go unseen.

use http::{Request, Version};
use redial::{AttemptBody, BoxError, RetryLayer};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::map_request_body::MapRequestBodyLayer;

use super::{
    Erased, hidden,
    support::{Server, client, policy},
};

type Done = Result<(), BoxError>;
type Attempt = Request<AttemptBody<http_body_util::Full<bytes::Bytes>>>;

#[tokio::test]
async fn a_middleware_that_builds_a_new_request_loses_it() -> Done {
    let server = Server::always(503).await;
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .map_request(|request: Attempt| {
            let mut new = Request::new(AttemptBody::default());
            *new.uri_mut() = request.uri().clone();
            new
        })
        .service(hidden(Version::HTTP_11, RetryLayer::new(policy())));
    stack.oneshot(server.get("/")).await?;
    assert_eq!(server.count(), 9);
    Ok(())
}

/// A middleware that takes a request apart and puts it together again keeps it.
#[tokio::test]
async fn a_middleware_that_maps_a_request_keeps_it() -> Done {
    let server = Server::always(503).await;
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .layer(MapRequestBodyLayer::new(Erased::new))
        .map_request(|request: Request<Erased>| {
            let (mut parts, body) = request.into_parts();
            parts.headers.insert("x-by", http::HeaderValue::from_static("middleware"));
            Request::from_parts(parts, body)
        })
        .layer(RetryLayer::new(policy()))
        .service(client(Version::HTTP_11));
    stack.oneshot(server.get("/")).await?;
    assert_eq!(server.count(), 3);
    Ok(())
}
