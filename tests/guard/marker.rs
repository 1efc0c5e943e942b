//! Who sees the marker: services below the layer, and nobody else.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use redial::{AttemptBody, BoxError, RetryLayer, attempt_number};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use super::{
    report,
    support::{Server, VERSIONS, answer, client, policy},
};

type Done = Result<(), BoxError>;
type Attempt = Request<AttemptBody<Full<Bytes>>>;

/// Something of the caller's own, shared by all that holds the request.
#[derive(Clone, Debug, PartialEq)]
struct Own(Arc<str>);

/// C144: 1, 2, 3 on the attempts; attempts and waits in the answer's report.
#[tokio::test]
async fn c144_attempts_are_numbered() -> Done {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&numbers);
    let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(service_fn(move |request: Attempt| {
        let own = request.extensions().get::<Own>().cloned();
        let mut seen = seen.lock().expect("no panic while locked");
        seen.push((attempt_number(request.extensions()), own));
        let status = if seen.len() < 3 { 503 } else { 200 };
        async move { Ok::<_, Infallible>(answer(status)) }
    }));
    let own = Own("the caller's".into());
    let mut request = Request::new(Full::default());
    request.extensions_mut().insert(own.clone());
    let response = stack.oneshot(request).await?;
    let expected = [1, 2, 3].map(|number| (Some(number), Some(own.clone())));
    assert_eq!(*numbers.lock().expect("no panic while locked"), expected);
    let report = report(&response);
    assert_eq!(report.attempts().iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2, 3]);
    let waited: std::time::Duration = report.attempts().iter().filter_map(|attempt| attempt.wait).sum();
    assert!(!waited.is_zero() && waited <= report.elapsed());
    Ok(())
}

#[tokio::test]
async fn the_caller_never_holds_it() -> Done {
    let above = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&above);
    let stack = ServiceBuilder::new()
        .map_request(move |request: Request<Full<Bytes>>| {
            seen.lock().expect("no panic while locked").push(attempt_number(request.extensions()));
            request
        })
        .layer(RetryLayer::new(policy()).refuse_stacking())
        .service(service_fn(|request: Attempt| async move {
            let last = attempt_number(request.extensions()) == Some(3);
            Ok::<_, Infallible>(answer(if last { 200 } else { 503 }))
        }));
    let mut request = Request::new(Full::default());
    request.extensions_mut().insert(Own("the caller's".into()));
    let kept = request.clone();
    let response = stack.clone().oneshot(request).await?;
    assert_eq!(response.status(), 200);
    assert_eq!(attempt_number(response.extensions()), None);
    assert_eq!(attempt_number(kept.extensions()), None);
    // So the same request may be sent again, through the same stack.
    assert_eq!(stack.oneshot(kept).await?.status(), 200);
    assert_eq!(*above.lock().expect("no panic while locked"), [None, None]);
    Ok(())
}

#[tokio::test]
async fn no_socket_carries_it() -> Done {
    for version in VERSIONS {
        let server = Server::always(503).await;
        let stack = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(client(version));
        stack.oneshot(server.get("/")).await?;
        let seen = server.seen();
        assert_eq!(seen.iter().map(|seen| seen.attempt).collect::<Vec<_>>(), [None, None, None]);
        // Nor does anything else on the wire tell the attempts apart.
        assert!(seen.iter().all(|one| one.headers == seen[0].headers));
    }
    Ok(())
}
