//! axum's body in a retry layer: a proxy hands its caller's request on.

use axum_core::body::Body;
use http::Request;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use redial::{
    CallReport, RetryLayer,
    testing::{Reply, Server},
};
use tower::{Layer, ServiceExt};

use crate::policy;

#[tokio::test]
async fn what_is_in_memory_is_repeated_at_any_size() {
    let large = vec![7; 1 << 20];
    for (body, whole) in
        [(Body::from(large.clone()), large), (Body::from("one more"), b"one more".to_vec()), (Body::empty(), vec![])]
    {
        let server = Server::http1([Reply::status(503), Reply::reset(), Reply::ok("")]);
        let client =
            RetryLayer::new(policy().build().unwrap()).layer(Client::builder(TokioExecutor::new()).build_http());
        let response = client.oneshot(Request::put(server.url("/")).body(body).unwrap()).await.unwrap();
        assert_eq!(response.extensions().get::<CallReport>().unwrap().attempts().len(), 3);
        let seen = server.until(|seen| seen.complete() == 3).await;
        assert!(seen.sent(3).requests.iter().all(|request| request.body.is(&whole)), "{seen}");
    }
}

#[tokio::test]
async fn a_stream_is_repeated_where_it_fits_the_tape() {
    for (chunks, attempts) in [(10, 3), (100, 1)] {
        let server = Server::http1([Reply::status(503)]);
        let client =
            RetryLayer::new(policy().build().unwrap()).layer(Client::builder(TokioExecutor::new()).build_http());
        let frames = futures_util::stream::iter((0..chunks).map(|_| Ok::<_, std::io::Error>(vec![7; 1024])));
        let body = Body::from_stream(frames);
        let response = client.oneshot(Request::put(server.url("/")).body(body).unwrap()).await.unwrap();
        assert_eq!(response.status(), 503);
        let seen = server.until(|seen| seen.complete() == attempts).await;
        assert!(seen.sent(attempts).requests.iter().all(|request| request.body.is(vec![7; chunks * 1024])), "{seen}");
    }
}
