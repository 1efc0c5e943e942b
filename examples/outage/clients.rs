//! The three clients: no retries, a naive loop, and redial.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{AttemptBody, Backoff, CallReport, RetryLayer, StandardPolicy, Timeouts, Transient, retry::Retry};
use tokio::time::{Instant, timeout};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

use crate::{
    day::ATTEMPT,
    server::{CALL, Server},
};

pub const NAMES: [&str; 3] = ["none", "naive", "redial"];

/// When each request was sent, and for which call.
pub type Sent = Arc<Mutex<Vec<(Instant, u64)>>>;

type Transport<B> = BoxCloneSyncService<Request<B>, Response<Incoming>, BoxError>;
type Redial = Retry<Transport<AttemptBody<Full<Bytes>>>, StandardPolicy>;

/// One client: half its calls go over HTTP/1.1, half over HTTP/2.
#[derive(Clone)]
pub struct Caller {
    strategy: Strategy,
    url: String,
    pub sent: Sent,
}

#[derive(Clone)]
enum Strategy {
    Loop { tries: u32, transports: [Transport<Full<Bytes>>; 2] },
    Redial([Redial; 2]),
}

/// How a call ended: well, or why not: by redial's own word, or by the last thing that a loop met.
pub enum Ended {
    Well,
    Badly(&'static str),
}

impl Caller {
    pub fn all(servers: &[Server; 3]) -> Result<[Caller; 3], BoxError> {
        let policy = StandardPolicy::builder(
            "shop",
            Timeouts { attempt: ATTEMPT, total: Duration::from_secs(3) },
            Transient::usual().rejected(429, "the shop's API guide: refused before any work"),
        )
        .backoff(Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(1)))
        .build()?;
        let caller = |server: &Server, strategy: &dyn Fn(&Sent) -> Strategy| {
            let sent = Sent::default();
            Caller { strategy: strategy(&sent), url: server.url.clone(), sent }
        };
        let tries = |tries| {
            move |sent: &Sent| Strategy::Loop { tries, transports: [false, true].map(|http2| transport(http2, sent)) }
        };
        let layer = RetryLayer::new(policy);
        let redial = |sent: &Sent| {
            let stack = |http2| ServiceBuilder::new().layer(layer.clone()).service(transport(http2, sent));
            Strategy::Redial([false, true].map(stack))
        };
        Ok([caller(&servers[0], &tries(1)), caller(&servers[1], &tries(3)), caller(&servers[2], &redial)])
    }

    pub async fn call(self, call: u64) -> Ended {
        let version = (call % 2) as usize;
        match self.strategy {
            Strategy::Redial(services) => {
                let mut service = services[version].clone();
                let response = match service.ready().await {
                    Ok(service) => service.call(request(&self.url, call)).await,
                    Err(error) => Err(error),
                };
                match response {
                    Ok(response) if response.status().is_success() => Ended::Well,
                    Ok(response) => ended(response.extensions().get()),
                    Err(error) => ended(error.report()),
                }
            }
            Strategy::Loop { tries, transports } => {
                let mut last = "error";
                for _ in 0..tries {
                    // As it is written everywhere: whatever went wrong, again, at once.
                    let request = request(&self.url, call);
                    last = match timeout(ATTEMPT, transports[version].clone().oneshot(request)).await {
                        Ok(Ok(response)) if response.status().is_success() => return Ended::Well,
                        Ok(Ok(_)) => "answer",
                        Ok(Err(_)) => "error",
                        Err(_) => "timeout",
                    };
                }
                Ended::Badly(last)
            }
        }
    }
}

fn ended(report: Option<&CallReport>) -> Ended {
    Ended::Badly(report.and_then(CallReport::stop).map_or("unreported", |stop| stop.as_str()))
}

/// A hyper client that notes what it sends.
fn transport<B>(http2: bool, sent: &Sent) -> Transport<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .http2_only(http2)
        // What is not counted here would not be seen: the client's own repeats are switched off.
        .retry_canceled_requests(false)
        .build(connector);
    let sent = Arc::clone(sent);
    let client = client.map_request(move |request: Request<B>| {
        let call = request.headers().get(CALL).and_then(|call| call.to_str().ok()?.parse().ok()).unwrap_or_default();
        sent.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), call));
        request
    });
    BoxCloneSyncService::new(client.map_err(|error: legacy::Error| BoxError::from(error)))
}

/// Of ten calls, six read, two write with a key and two write without one.
fn request(url: &str, call: u64) -> Request<Full<Bytes>> {
    let write = call / 2 % 10 >= 6;
    let mut request =
        Request::new(Full::new(if write { Bytes::from(format!("{{\"order\":{call}}}")) } else { Bytes::new() }));
    *request.method_mut() = if write { Method::POST } else { Method::GET };
    *request.uri_mut() = url.parse().unwrap_or_default();
    request.headers_mut().insert(CALL, call.into());
    if write && call / 2 % 10 < 8 {
        request.headers_mut().insert("idempotency-key", call.into());
    }
    request
}
