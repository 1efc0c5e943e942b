//! Types and inference: the stacks that people build, each really run.
//!
//! What is written out here is what a user has to write: where a type is not named, it is inferred.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use redial::{
    AnswerBody, AttemptBody, BoxError, CallReport, Policy, RetryLayer, StandardPolicy, TimeoutLayer, retry::Retry,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_http::{
    decompression::DecompressionLayer, follow_redirect::FollowRedirectLayer, set_header::SetRequestHeaderLayer,
    trace::TraceLayer,
};

#[path = "support/counting.rs"]
mod support;

use support::{Server, VERSIONS, answer, client, policy, redirect};

/// How many attempts a call's report says.
fn attempts<B>(response: &Response<B>) -> usize {
    response.extensions().get().map_or(1, |report: &CallReport| report.attempts().len())
}

/// Calls a stack by `ready().await?.call(request)` on a server that fails the first time: two requests arrive.
macro_rules! runs {
    ($version:ident, $stack:expr) => {
        for $version in VERSIONS {
            let server = Server::flaky().await;
            let mut stack = $stack;
            let response = stack.ready().await?.call(server.get("/")).await?;
            assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{:?}", $version);
            let body = response.into_body().collect().await.map_err(|_| "the body failed")?.to_bytes();
            assert_eq!((&*body, server.count()), (&b"hello"[..], 2), "{:?}", $version);
            assert!(server.seen().iter().all(|seen| seen.version == $version));
        }
    };
}

type Done = Result<(), BoxError>;

#[tokio::test]
async fn alone() -> Done {
    runs!(version, ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(version)));
    Ok(())
}

#[tokio::test]
async fn under_and_over_traces() -> Done {
    runs!(
        version,
        ServiceBuilder::new()
            .layer(TraceLayer::new_for_http())
            .layer(RetryLayer::new(policy()))
            .layer(TraceLayer::new_for_http())
            .service(client(version))
    );
    Ok(())
}

#[tokio::test]
async fn under_and_over_set_headers() -> Done {
    let value = HeaderValue::from_static("tests");
    runs!(
        version,
        ServiceBuilder::new()
            .layer(SetRequestHeaderLayer::overriding(header::USER_AGENT, value.clone()))
            .layer(RetryLayer::new(policy()))
            .layer(SetRequestHeaderLayer::overriding(header::FROM, value.clone()))
            .service(client(version))
    );
    Ok(())
}

#[tokio::test]
async fn under_and_over_decompression() -> Done {
    runs!(
        version,
        ServiceBuilder::new()
            .layer(DecompressionLayer::new())
            .layer(RetryLayer::new(policy()))
            .service(client(version))
    );
    runs!(
        version,
        ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(DecompressionLayer::new())
            .service(client(version))
    );
    Ok(())
}

#[tokio::test]
async fn under_and_over_a_buffer() -> Done {
    runs!(version, ServiceBuilder::new().buffer(8).layer(RetryLayer::new(policy())).service(client(version)));
    runs!(version, ServiceBuilder::new().layer(RetryLayer::new(policy())).buffer(8).service(client(version)));
    Ok(())
}

#[tokio::test]
async fn under_and_over_limits() -> Done {
    let second = std::time::Duration::from_secs(1);
    runs!(
        version,
        ServiceBuilder::new()
            .load_shed()
            .concurrency_limit(2)
            .layer(RetryLayer::new(policy()))
            .load_shed()
            .concurrency_limit(1)
            .service(client(version))
    );
    // A rate limit is not `Clone`: a buffer makes it so.
    runs!(
        version,
        ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .buffer(8)
            .rate_limit(10, second)
            .service(client(version))
    );
    Ok(())
}

#[tokio::test]
async fn under_a_timeout() -> Done {
    let total = std::time::Duration::from_secs(30);
    runs!(
        version,
        ServiceBuilder::new()
            .layer(TimeoutLayer::new().total(total))
            .layer(RetryLayer::new(policy()))
            .service(client(version))
    );
    Ok(())
}

#[tokio::test]
async fn all_at_once() -> Done {
    let total = std::time::Duration::from_secs(30);
    let value = HeaderValue::from_static("tests");
    runs!(
        version,
        ServiceBuilder::new()
            .buffer(8)
            .layer(TraceLayer::new_for_http())
            .layer(DecompressionLayer::new())
            .layer(TimeoutLayer::new().total(total))
            .layer(RetryLayer::new(policy()))
            .layer(SetRequestHeaderLayer::overriding(header::FROM, value.clone()))
            .layer(TraceLayer::new_for_http())
            .buffer(8)
            .concurrency_limit(3)
            .service(client(version))
    );
    Ok(())
}

/// `/from` leads to `/to`, and each of them fails at first.
async fn redirecting() -> Server {
    Server::start(|before, seen| match (before, &*seen.path) {
        (0, _) => answer(503),
        (_, "/from") => redirect("/to"),
        _ => answer(200),
    })
    .await
}

#[tokio::test]
async fn redirects_outside_are_calls_of_their_own() -> Done {
    for version in VERSIONS {
        let server = redirecting().await;
        let mut stack = ServiceBuilder::new()
            .layer(FollowRedirectLayer::new())
            .layer(RetryLayer::new(policy()))
            .service(client(version));
        let response = stack.ready().await?.call(server.get("/from")).await?;
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
        assert_eq!(server.paths(), ["/from", "/from", "/to", "/to"]);
    }
    Ok(())
}

#[tokio::test]
async fn redirects_inside_belong_to_the_attempt() -> Done {
    for version in VERSIONS {
        let server = redirecting().await;
        let mut stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(FollowRedirectLayer::new())
            .service(client(version));
        let response = stack.ready().await?.call(server.get("/from")).await?;
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3));
        assert_eq!(server.paths(), ["/from", "/from", "/to", "/from", "/to"]);
    }
    Ok(())
}

/// A finished stack, erased, in a field.
struct Erased {
    http: BoxCloneSyncService<Request<Full<Bytes>>, Response<AnswerBody<Incoming>>, redial::Error>,
}

/// A finished stack, named, in a field.
struct Named {
    http: Retry<Client<HttpConnector, AttemptBody<Full<Bytes>>>, StandardPolicy>,
}

/// Code over any finished stack: no bound of ours.
#[derive(Clone)]
struct Generic<S> {
    http: S,
}

impl<S, RB> Generic<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<RB>, Error: Into<BoxError>> + Clone,
{
    async fn status(&self, request: Request<Full<Bytes>>) -> Result<u16, BoxError> {
        let response = self.http.clone().oneshot(request).await.map_err(Into::into)?;
        Ok(response.status().as_u16())
    }
}

/// Code that adds the layer to the caller's own transport: it alone names [`AttemptBody`] and [`AnswerBody`].
fn with_retries<S, RB>(
    transport: S,
) -> Generic<
    impl Service<Request<Full<Bytes>>, Response = Response<AnswerBody<RB>>, Error = redial::Error, Future: Send> + Clone,
>
where
    S: Service<Request<AttemptBody<Full<Bytes>>>, Response = Response<RB>, Error: Into<BoxError>, Future: Send>,
    S: Clone + Send,
    RB: http_body::Body<Data: Send, Error: Send> + Send,
{
    Generic { http: RetryLayer::new(policy()).layer(transport) }
}

#[tokio::test]
async fn in_fields() -> Done {
    for version in VERSIONS {
        let server = Server::flaky().await;
        let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(version));
        let mut named = Named { http: stack.clone() };
        assert_eq!(named.http.ready().await?.call(server.get("/named")).await?.status(), 200);
        let mut erased = Erased { http: BoxCloneSyncService::new(stack) };
        assert_eq!(erased.http.ready().await?.call(server.get("/erased")).await?.status(), 200);
        assert_eq!(server.paths(), ["/named", "/named", "/erased", "/erased"]);
    }
    Ok(())
}

#[tokio::test]
async fn in_generic_code() -> Done {
    for version in VERSIONS {
        let server = Server::flaky().await;
        let taken = Generic { http: ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(version)) };
        assert_eq!(send(taken.status(server.get("/taken"))).await?, 200);
        let added = with_retries(client(version));
        assert_eq!(send(added.status(server.get("/added"))).await?, 200);
        assert_eq!(server.paths(), ["/taken", "/taken", "/added", "/added"]);
    }
    Ok(())
}

/// Says at compile time that a future can be spawned.
fn send<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::test]
async fn a_policy_may_be_erased() -> Done {
    let policy: Arc<dyn Policy + Send + Sync> = Arc::new(policy());
    runs!(version, ServiceBuilder::new().layer(RetryLayer::new(Arc::clone(&policy))).service(client(version)));
    Ok(())
}

#[tokio::test]
async fn a_transport_may_have_one_body_type() -> Done {
    for version in VERSIONS {
        let server = Server::flaky().await;
        let fixed =
            BoxCloneSyncService::<Request<BoxBody<Bytes, BoxError>>, Response<Incoming>, _>::new(client(version));
        let mut stack = ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(tower_http::map_request_body::MapRequestBodyLayer::new(BoxBody::new))
            .service(fixed);
        let request = Request::put(server.url("/")).body(Full::new(Bytes::from_static(b"whole")))?;
        assert_eq!(stack.ready().await?.call(request).await?.status(), 200);
        assert_eq!(server.seen().iter().map(|seen| &*seen.body).collect::<Vec<_>>(), [b"whole", b"whole"]);
    }
    Ok(())
}
