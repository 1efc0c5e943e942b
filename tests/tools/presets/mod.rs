//! The presets, each run by the engine and held against what the provider's own documents, SDK or conformance table say.

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use redial::{BoxError, CallReport, RetryLayer, StopReason, contract::Contract};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt, service_fn};

mod budgets;
mod gcs;
mod providers;
mod stripe;
#[path = "../../conformance/table.rs"]
#[allow(dead_code, reason = "each suite uses its part")]
mod table;
mod waits;

type Body = Full<Bytes>;

/// How an attempt ends. The last one of a list is repeated.
#[derive(Clone, Debug)]
enum End {
    Answer(u16, Vec<(&'static str, String)>, &'static str),
    /// The connection breaks after the request was written.
    Lost,
}

fn status(status: u16) -> End {
    End::Answer(status, Vec::new(), "")
}

fn with_header(status: u16, name: &'static str, value: impl Into<String>) -> End {
    End::Answer(status, vec![(name, value.into())], "")
}

/// What became of a call.
struct Seen {
    /// When each attempt came, counted from the first.
    at: Vec<Duration>,
    /// The last answer's status, where there was one.
    status: Option<u16>,
    stop: Option<StopReason>,
    told_when: bool,
}

impl Seen {
    fn attempts(&self) -> usize {
        self.at.len()
    }

    /// Between the first attempt and the second.
    fn first_wait(&self) -> Option<Duration> {
        self.at.get(1).copied()
    }
}

/// One call by this preset, against a provider that ends its attempts so.
async fn call(preset: &str, request: Request<Body>, ends: &[End]) -> Seen {
    call_by(&loaded(preset), request, ends).await
}

fn loaded(preset: &str) -> Contract {
    Contract::preset(preset).unwrap_or_else(|| panic!("a preset {preset}"))
}

/// One more call by the same contract: what it has of budgets and holds is kept from one to the next.
async fn call_by(contract: &Contract, request: Request<Body>, ends: &[End]) -> Seen {
    let start = Instant::now();
    let at = Arc::new(Mutex::new(Vec::new()));
    let (seen, ends) = (Arc::clone(&at), ends.to_vec());
    let service = service_fn(move |_: Request<_>| {
        let mut seen = seen.lock().unwrap();
        let end = ends.get(seen.len()).or(ends.last()).cloned().unwrap();
        seen.push(start.elapsed());
        async move { answer(end) }
    });
    let result = ServiceBuilder::new().layer(RetryLayer::new(contract.clone())).service(service).oneshot(request).await;
    let (status, report) = match &result {
        Ok(response) => (Some(response.status().as_u16()), response.extensions().get::<CallReport>()),
        Err(error) => (None, error.report()),
    };
    let (stop, told_when) = report.map_or((None, false), |report| (report.stop(), report.retry_at().is_some()));
    let at = at.lock().unwrap().clone();
    Seen { at, status, stop, told_when }
}

fn answer(end: End) -> Result<Response<Body>, BoxError> {
    match end {
        End::Answer(status, headers, body) => {
            let builder = Response::builder().status(StatusCode::from_u16(status).unwrap());
            let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value));
            Ok::<_, Infallible>(builder.body(Body::from(body)).unwrap()).map_err(Into::into)
        }
        End::Lost => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
    }
}

fn request(method: &str, uri: &str) -> Request<Body> {
    Request::builder().method(method).uri(uri).body(Body::default()).unwrap()
}

#[test]
fn each_loads_without_a_warning() {
    let names: Vec<_> = Contract::presets().collect();
    assert_eq!(names, ["anthropic", "azure-blob", "gcs", "github", "openai", "s3", "slack", "stripe", "til-service"]);
    for name in names {
        let contract = Contract::parse(name, Contract::preset_text(name).unwrap());
        let contract = contract.unwrap_or_else(|error| panic!("{error}"));
        assert!(contract.warnings().is_empty(), "{name}: {:?}", contract.warnings());
    }
    assert!(Contract::preset("weather").is_none());
}

/// A file's comment names its sources, and what it leaves out where something is not certain.
#[test]
fn each_names_its_sources() {
    for name in Contract::presets().filter(|name| *name != "til-service") {
        let text = Contract::preset_text(name).unwrap();
        let (comment, rest) = text.split_once("format = 1").unwrap();
        assert!(comment.contains("# Sources:") && comment.contains("https://"), "{name}");
        assert!(comment.contains("# Left out"), "{name}");
        assert!(rest.contains("reviewed = 2026-12-01"), "{name}");
    }
}

/// A request to a host of no provider, or of no operation where that is said, is sent once.
#[tokio::test(start_paused = true)]
async fn others_are_sent_once() {
    for (preset, uri) in [
        ("github", "https://github.example/user"),
        ("gcs", "https://storage.googleapis.com/other"),
        ("stripe", "https://api.stripe.com/v2/core/accounts"),
    ] {
        assert_eq!(call(preset, request("GET", uri), &[status(503)]).await.attempts(), 1, "{preset}");
    }
}
