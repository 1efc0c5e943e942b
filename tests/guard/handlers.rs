//! Handlers that are called in process: what they forward is stacked, what they make themselves is not.

use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use redial::{AttemptBody, BoxError, RetryLayer};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use super::{
    Erased, hidden, report,
    support::{Server, client, policy},
};

type Done = Result<(), BoxError>;
type Attempt = Request<AttemptBody<Full<bytes::Bytes>>>;

#[tokio::test]
async fn a_request_of_its_own_is_a_path_of_its_own() -> Done {
    let server = Server::flaky().await;
    let url = server.url("/token");
    let own = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(Version::HTTP_11));
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(service_fn(move |_: Attempt| {
        let request = Request::get(&url).body(Full::<bytes::Bytes>::default());
        let own = own.clone();
        async move {
            let response = own.oneshot(request?).await?;
            assert_eq!(report(&response).attempts().len(), 2);
            Ok::<_, BoxError>(http::Response::new(response.into_body()))
        }
    }));
    let response = stack.oneshot(server.get("/")).await?;
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
    assert!(response.extensions().get::<redial::CallReport>().is_none());
    Ok(())
}

#[tokio::test]
async fn a_forwarded_request_is_stacked() -> Done {
    let server = Server::always(503).await;
    let next = hidden(Version::HTTP_11, RetryLayer::new(policy()));
    let stack = ServiceBuilder::new()
        .layer(RetryLayer::new(policy()))
        .service(service_fn(move |request: Attempt| next.clone().oneshot(request)));
    let response = stack.oneshot(server.get("/")).await?;
    assert_eq!(server.count(), 3);
    assert!(report(&response).inner_stacked());
    Ok(())
}

#[tokio::test]
async fn detach_starts_a_new_path() -> Done {
    let server = Server::always(503).await;
    let next = hidden(Version::HTTP_11, RetryLayer::new(policy()));
    let stack =
        ServiceBuilder::new().layer(RetryLayer::new(policy())).service(service_fn(move |mut request: Attempt| {
            redial::detach(request.extensions_mut());
            assert_eq!(redial::attempt_number(request.extensions()), None);
            next.clone().oneshot(request)
        }));
    let response = stack.oneshot(server.get("/")).await?;
    // The handler asked for it: each of three attempts is a call with three of its own.
    assert_eq!(server.count(), 9);
    assert!(!report(&response).inner_stacked());
    Ok(())
}

/// The marker is in the request's extensions, so taking the request apart and keeping them keeps it.
#[tokio::test]
async fn a_read_body_changes_nothing() -> Done {
    let server = Server::always(503).await;
    let next = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(Version::HTTP_11));
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(service_fn(move |request: Attempt| {
        let next = next.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = Full::new(body.collect().await?.to_bytes());
            let body = Erased::new(body.map_err(|never| match never {}));
            Ok::<_, BoxError>(next.oneshot(Request::from_parts(parts, body)).await?)
        }
    }));
    stack.oneshot(server.get("/")).await?;
    assert_eq!(server.count(), 3);
    Ok(())
}
