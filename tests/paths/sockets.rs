//! A block around whole exchanges, bodies included, on real sockets.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    AttemptOutcome, BoxError, Error, Failure, FaultKind, RetryLayer, StopReason,
    testing::{Reply, Server},
};
use tower::{Layer, ServiceExt};

use crate::policies::{builder, policy, timeouts};

/// Fetches a page, to the end of its body, in a block of three attempts.
async fn page(server: &Server, http2: bool) -> Result<Bytes, Error> {
    let client = Client::builder(TokioExecutor::new()).http2_only(http2).build_http();
    let client = RetryLayer::new(policy()).layer(client);
    let block = redial::retry(&policy(), |_| {
        let (client, url) = (client.clone(), server.url("/page"));
        async move {
            let request = Request::get(url).body(Full::<Bytes>::default())?;
            let answer = Failure::check(client.oneshot(request).await?)?;
            Ok(answer.into_body().collect().await?.to_bytes())
        }
    });
    block.idempotent("it only reads").await
}

#[tokio::test]
async fn three_requests_stay_three() {
    for (server, http2) in [(Server::http1([Reply::status(503)]), false), (Server::http2([Reply::status(503)]), true)] {
        let error = page(&server, http2).await.unwrap_err();
        server.seen().sent(3);
        let report = error.report().unwrap();
        assert_eq!((report.stop(), report.inner_stacked()), (Some(StopReason::Attempts), true));
        assert!(
            report
                .attempts()
                .iter()
                .all(|one| one.outcome == AttemptOutcome::Status(http::StatusCode::SERVICE_UNAVAILABLE))
        );
    }
}

/// What no layer can do that hands its answer on with the head: a body that breaks is a failed attempt.
#[tokio::test]
async fn a_body_that_breaks_is_a_failed_attempt() -> Result<(), BoxError> {
    let replies = || [Reply::ok("the whole page").close_within(), Reply::reset(), Reply::ok("the whole page")];
    for (server, http2) in [(Server::http1(replies()), false), (Server::http2(replies()), true)] {
        assert_eq!(page(&server, http2).await?, "the whole page");
        server.seen().sent(3);
    }
    Ok(())
}

/// Nobody listens: the client's own proof that nothing was sent is none for a block.
#[tokio::test]
async fn nobody_listens() {
    let server = Server::refusing();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = RetryLayer::new(policy()).layer(client);
    let policy = builder().build().unwrap();
    let block = redial::retry(&policy, |_| {
        let (client, url) = (client.clone(), server.url("/page"));
        async move { Ok(client.oneshot(Request::get(url).body(Full::<Bytes>::default())?).await.map(drop)?) }
    });
    let error = block.as_the_policy_says().await.unwrap_err();
    assert_eq!((error.stop(), error.is_connect()), (Some(StopReason::NoEvidence), true));
    assert_eq!(error.fault().map(|fault| (fault.kind(), fault.is_unsent())), Some((FaultKind::Connect, false)));
}

/// An attempt that is dropped takes its exchange with it.
#[tokio::test]
async fn an_attempt_that_is_dropped_ends_its_exchange() {
    let server = Server::http1([Reply::stall(), Reply::ok("at last")]);
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = RetryLayer::new(policy()).layer(client);
    let policy = crate::policies::builder_within(timeouts(200, 60_000)).build().unwrap();
    let block = redial::retry(&policy, |attempt| {
        let (client, url) = (client.clone(), server.url("/page"));
        async move {
            let request = Request::get(url).body(Full::<Bytes>::default())?;
            client.oneshot(request).await?;
            Ok(attempt.number())
        }
    });
    assert_eq!(block.idempotent("it only reads").await.unwrap(), 2);
    let seen = server.until(|seen| seen.requests.iter().all(|request| request.over.is_some())).await;
    seen.sent(2);
}
