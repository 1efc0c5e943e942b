//! A request that may have had an effect is sent once, unless something says that a repeat is safe or it provably
//! never arrived. Counted at the server.
//!
//! `cargo test --test once -- --nocapture table` prints what each fault comes to.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod answered;
mod connections;
mod expecting;
mod faults;
mod lost;
mod reports;
mod upgrades;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use redial::{
    CallReport, StopReason,
    testing::{Script, Server},
};
use tower::{Service, ServiceExt};

use crate::support::{Wire, request, soon};

fn play(wire: Wire, script: impl Into<Script>) -> Server {
    match wire {
        Wire::Http1 => Server::http1(script),
        Wire::Http2 => Server::http2(script),
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// `None`: without an answer.
    status: Option<u16>,
    attempts: usize,
    stop: Option<StopReason>,
}

impl End {
    fn ok(attempts: usize) -> End {
        End { status: Some(200), attempts, stop: None }
    }

    fn failed(attempts: usize, stop: StopReason) -> End {
        End { status: None, attempts, stop: Some(stop) }
    }

    fn answered(status: u16, attempts: usize, stop: StopReason) -> End {
        End { status: Some(status), attempts, stop: Some(stop) }
    }
}

/// Makes a call and says how it ended.
async fn call<S, B, RB>(client: &S, request: Request<B>) -> End
where
    S: Service<Request<B>, Response = http::Response<RB>, Error = redial::Error> + Clone,
{
    let (status, report) = match soon(client.clone().oneshot(request)).await {
        Ok(response) => (Some(response.status().as_u16()), response.extensions().get::<CallReport>().cloned()),
        Err(error) => (None, Some(error.report().expect("a report").clone())),
    };
    End {
        status,
        attempts: report.as_ref().map_or(1, |report| report.attempts().len()),
        stop: report.as_ref().and_then(CallReport::stop),
    }
}

/// A request that has an effect: ten bytes to be counted.
fn order(method: Method, url: &str) -> Request<Full<Bytes>> {
    let body = if method == Method::GET || method == Method::HEAD { "" } else { "ten bytes!" };
    request(method, url, Full::new(Bytes::from(body)))
}

fn post(url: &str) -> Request<Full<Bytes>> {
    order(Method::POST, url)
}

fn keyed(mut request: Request<Full<Bytes>>, key: &'static str) -> Request<Full<Bytes>> {
    request.headers_mut().insert("idempotency-key", http::HeaderValue::from_static(key));
    request
}
