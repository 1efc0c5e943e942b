//! Envoy's limit of retries in flight, built on what the crate offers.
//!
//! Our own budget counts over calls and not over what is in flight, so that idle clients and a provider that answers
//! late make no difference to it. Whoever wants Envoy's rule counts below the retry layer, where each attempt passes, and
//! has `judge_with` refuse.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use redial::{AttemptBody, BoxError, RetryLayer, attempt_number};
use tower::{Layer, ServiceExt, service_fn};

use super::words::{Route, Words};
use crate::engine;

/// As many retries as this share of what is in flight, and never fewer than the least.
#[derive(Clone, Copy)]
pub struct Limit {
    pub percent: u64,
    pub least: u64,
}

impl Limit {
    pub fn allows(&self, flight: &InFlight) -> bool {
        let most = flight.requests.load(Ordering::Relaxed) * self.percent / 100;
        flight.retries.load(Ordering::Relaxed) < most.max(self.least)
    }
}

/// What is in flight.
#[derive(Clone, Default)]
pub struct InFlight {
    requests: Arc<AtomicU64>,
    retries: Arc<AtomicU64>,
}

/// Counted as long as it lives.
struct Counted(Vec<Arc<AtomicU64>>);

impl InFlight {
    fn enter(&self, attempt: u32) -> Counted {
        let mut counts = vec![Arc::clone(&self.requests)];
        counts.extend((attempt > 1).then(|| Arc::clone(&self.retries)));
        for count in &counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Counted(counts)
    }

    fn now(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.retries.load(Ordering::Relaxed))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Puts so many first tries and retries in flight, and then has one more call fail: is it repeated?
pub async fn allows(limit: Limit, requests: u64, retries: u64) -> bool {
    let flight = InFlight::default();
    let counting = flight.clone();
    let service = service_fn(move |request: Request<AttemptBody<Full<Bytes>>>| {
        let attempt = attempt_number(request.extensions()).expect("below a retry layer");
        let counted = counting.enter(attempt);
        async move {
            let _counted = counted;
            match (request.uri().path(), attempt) {
                ("/slow", _) | ("/slow-again", 2) => pending().await,
                ("/slow-again" | "/fails", 1) => Ok(answer(StatusCode::SERVICE_UNAVAILABLE)),
                _ => Ok::<_, BoxError>(answer(StatusCode::OK)),
            }
        }
    });
    let route = Route {
        words: Words::read("5xx").known,
        codes: Vec::new(),
        matchers: Vec::new(),
        methods: None,
        retries: 1,
        limit: Some((limit, flight.clone())),
    };
    let client = RetryLayer::new(route).layer(service);
    let request = |path: &str| {
        let mut request = engine::request(Method::GET);
        *request.uri_mut() = format!("http://api.example/{path}").parse().expect("a URI");
        request
    };

    let mut calls = tokio::task::JoinSet::new();
    let paths = (0..requests).map(|_| "slow").chain((0..retries).map(|_| "slow-again"));
    for path in paths {
        calls.spawn(client.clone().oneshot(request(path)));
        // One after another: Envoy, too, counts a retry when it is made.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(flight.now(), (requests + retries, retries), "what the row says is in flight");
    let answer = client.oneshot(request("fails")).await.expect("an answer");
    assert_eq!(flight.now(), (requests + retries, retries), "and still is");
    answer.status() == StatusCode::OK
}

fn answer(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
