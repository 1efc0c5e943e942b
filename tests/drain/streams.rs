//! HTTP/2: answers that are dropped reset their streams, and a server counts resets.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use redial::testing::{Reply, Script, Server};
use tower::ServiceExt;

use crate::support::{Wire, attempts, client, noise, put, soon};

/// Read to their end.
#[tokio::test]
async fn sixteen_calls_at_once_with_failures_of_a_megabyte() {
    all_succeed(1 << 20).await;
}

/// Too large to be read: each is a reset.
#[tokio::test]
async fn sixteen_calls_at_once_with_larger_ones() {
    all_succeed(3 << 20).await;
}

/// Each call is answered twice by a failure of this length, and then as it should be.
async fn all_succeed(length: usize) {
    let failure = Reply::status(503).body(noise(length));
    let replies = || [failure.clone(), failure.clone(), Reply::ok("")];
    let script = Script::new([Reply::status(404)]);
    let script = (0..16).fold(script, |script, number| script.route(&format!("/{number}"), replies()));
    let server = Server::http2(script);
    let client = client(Wire::Http2);
    let calls = (0..16).map(|number: u32| {
        let request = put(&server.url(&number.to_string()), Empty::<Bytes>::new());
        let client = client.clone();
        async move {
            let response = soon(client.oneshot(request)).await.unwrap();
            assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3));
            soon(response.into_body().collect()).await.unwrap();
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(server.seen().sent(48).connections, 1);
}
