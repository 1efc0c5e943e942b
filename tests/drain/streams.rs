//! HTTP/2: answers that are dropped reset their streams, and a server counts resets.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use tower::ServiceExt;

use crate::support::{
    Wire, attempts, client, noise, put,
    site::{Site, answer},
    soon,
};

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
    let body = noise(length);
    let calls = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let site = Site::start(Wire::Http2, move |number, request, log| {
        let (body, calls) = (body.clone(), Arc::clone(&calls));
        async move {
            let attempt = {
                let mut calls = calls.lock().unwrap();
                let attempt = calls.entry(request.headers()["x-call"].to_str()?.to_owned()).or_default();
                *attempt += 1;
                *attempt
            };
            log.read(number, request).await;
            Ok(if attempt < 3 { answer(503, body) } else { answer(200, "") })
        }
    })
    .await;
    let client = client(Wire::Http2);
    let calls = (0..16).map(|number| {
        let mut request = put(&site.url(), Empty::<Bytes>::new());
        request.headers_mut().insert("x-call", number.into());
        let client = client.clone();
        async move {
            let response = soon(client.oneshot(request)).await.unwrap();
            assert_eq!((response.status().as_u16(), attempts(&response)), (200, 3));
            soon(response.into_body().collect()).await.unwrap();
        }
    });
    futures_util::future::join_all(calls).await;
    let seen = site.seen();
    assert_eq!((seen.started, seen.connections), (48, 1));
}
