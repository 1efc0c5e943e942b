//! Google's own conformance tests for retries in storage clients, end to end: a server on loopback that fails as told,
//! hyper-util's client under a retry layer, and a policy for each operation.
//!
//! A case holds when the server saw as many requests as it was told to fail, and one more where the call is to succeed;
//! when they were the same request each time; and when the call ended as its last request did.

mod cases;
mod instruction;
mod operations;
mod store;
mod testbench;
mod upload;

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{
    AttemptBody, Backoff, Budget, FaultKind, Policy, RequestHead, RequestOptions, ResumeLayer, RetryLayer, Routes,
    StandardPolicy, Timeouts, Transient, policy::StandardPolicyBuilder, retry::Retry,
};
use tower::{Layer, Service, ServiceExt};

use crate::table::{self, Outcome, outcome};
use cases::{Case, Kind};
use operations::Repeat;
use testbench::{Seen, TEST_ID, Test, Testbench};

type Client = Retry<legacy::Client<HttpConnector, AttemptBody<Full<Bytes>>>, Routes>;

/// So many at a time, as clients do.
const AT_ONCE: usize = 16;

#[tokio::test]
async fn gcs_retry_tests() {
    let cases = cases::all();
    assert_eq!(cases.len(), 315, "scenarios times operations");
    let server = Testbench::start().await;
    let routes = operations::routes(builder, StandardPolicy::unretried("storage", Duration::from_secs(30)).unwrap());
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    let client = RetryLayer::new(routes.clone()).layer(client);
    let run = futures_util::stream::iter(&cases).map(|case| run(case, &server, &routes, &client));
    let outcomes: Vec<_> = run.buffered(AT_ONCE).collect().await;
    let rows =
        cases.iter().zip(outcomes).map(|(case, outcome)| (format!("{} {:?}", case.id, case.instructions), outcome));
    table::compare("gcs", rows, &[]);
    assert_eq!(routes.unmatched(), 0, "every operation has its route");
}

/// Why operations state their evidence.
#[test]
fn methods_alone_decide_wrongly() {
    let cases = cases::all();
    let conditional: Vec<_> =
        cases.iter().filter(|case| ["1/", "2/", "3/", "4/"].iter().any(|id| case.id.starts_with(id))).collect();
    let wrong = conditional.iter().filter(|case| case.operation.method().is_idempotent() != case.succeeds).count();
    assert_eq!((wrong, conditional.len()), (46, 149));
}

fn builder() -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(20), total: Duration::from_secs(60) };
    // What the retry strategy's page lists: all of the usual set but 425.
    StandardPolicy::builder("storage", timeouts, Transient::usual().without_status(425))
        .backoff(backoff())
        .budget(Budget::unlimited("every case fails on purpose"))
}

fn backoff() -> Backoff {
    Backoff::exponential(Duration::from_millis(2)).max(Duration::from_millis(4)).floor(Duration::from_millis(1))
}

async fn run(case: &Case, server: &Testbench, routes: &Routes, client: &Client) -> Outcome {
    match case.kind {
        Kind::Call => call(case, server, routes, client).await,
        Kind::Download => download(case, server, client).await,
        Kind::ResumableUpload => resumable(case, server, client).await,
    }
}

/// What the server is to see, in a case without a session: every instruction, then perhaps a success.
fn expected(case: &Case) -> String {
    let method = case.operation.method();
    let faults = case.instructions.iter().map(|instruction| {
        let fault = instruction.trim_start_matches("return-").trim_end_matches("-connection");
        format!("{method} {}", fault.split_once("-after").map_or(fault, |(fault, _)| fault))
    });
    let mut requests: Vec<_> = faults.collect();
    if case.succeeds {
        // A download that broke has all but its rest.
        requests.push(format!("{method} {}", if case.kind == Kind::Download { 206 } else { 200 }));
    }
    let end = requests.last().and_then(|last| last.split_once(' ')).expect("a request").1.to_owned();
    format!("{}; {end}", requests.join(", "))
}

fn seen(test: &Test) -> String {
    let seen = test.seen.iter().map(|seen| format!("{} {}", seen.method, seen.end)).collect::<Vec<_>>().join(", ");
    match test.instructions.len() {
        0 => seen,
        left => format!("{seen} ({left} never met)"),
    }
}

fn request(case: &Case, server: &Testbench, more: &str) -> Request<Full<Bytes>> {
    let operation = case.operation;
    let target = operation.target(case.precondition);
    let etag = case.precondition && operation.repeat == Repeat::Body;
    let body = match operation.method().as_str() {
        "GET" | "DELETE" => String::new(),
        _ if etag => r#"{"name": "reports", "etag": "CAE="}"#.to_owned(),
        _ => r#"{"name": "reports"}"#.to_owned(),
    };
    let request = Request::builder().method(operation.method());
    let request = request.uri(format!("http://{}{target}{more}", server.authority)).header(TEST_ID, &case.id);
    let mut request = request.body(Full::from(body)).expect("a request");
    if etag {
        request
            .extensions_mut()
            .insert(RequestOptions::new().idempotent("the body holds the etag that is to be there"));
    }
    request
}

async fn call(case: &Case, server: &Testbench, routes: &Routes, client: &Client) -> Outcome {
    let instructions: Vec<_> = case.instructions.iter().map(String::as_str).collect();
    server.begin(&case.id, &instructions, Bytes::from_static(b"{}"));
    let request = request(case, server, "");
    assert_eq!(routes.plan(&RequestHead::of(&request)).operation(), case.operation.name);
    let result = client.clone().oneshot(request).await;
    let end = match result {
        Ok(response) => response.status().as_u16().to_string(),
        Err(error) => match error.fault().map(|fault| fault.kind()) {
            Some(FaultKind::Reset | FaultKind::Closed) => "reset".to_owned(),
            _ => error.to_string(),
        },
    };
    let test = server.end(&case.id);
    let same = |pair: &[Seen]| {
        (&pair[0].method, &pair[0].target, &pair[0].body) == (&pair[1].method, &pair[1].target, &pair[1].body)
    };
    assert!(test.seen.windows(2).all(same), "{}: a repeat is the same request: {:?}", case.id, test.seen);
    outcome(expected(case), format!("{}; {end}", seen(&test)))
}

async fn download(case: &Case, server: &Testbench, client: &Client) -> Outcome {
    let instructions: Vec<_> = case.instructions.iter().map(String::as_str).collect();
    let object = object(512 << 10);
    server.begin(&case.id, &instructions, object.clone());
    // A body that breaks after its head is not the retry layer's to repeat (D22): the rest is asked for.
    let mut client = ResumeLayer::new().backoff(backoff()).expect("a backoff").layer(client.clone());
    let result = client.ready().await.expect("ready").call(request(case, server, "?alt=media")).await;
    let end = match read(result.expect("a head")).await {
        Ok(body) if body == object => "206".to_owned(),
        Ok(body) => format!("{} bytes of {}", body.len(), object.len()),
        Err(error) => error.to_string(),
    };
    let test = server.end(&case.id);
    outcome(expected(case), format!("{}; {end}", seen(&test)))
}

async fn read<B>(response: Response<B>) -> Result<Bytes, redial::Error>
where
    B: Body<Data = Bytes, Error = redial::Error>,
{
    Ok(response.into_body().collect().await?.to_bytes())
}

async fn resumable(case: &Case, server: &Testbench, client: &Client) -> Outcome {
    let instructions: Vec<_> = case.instructions.iter().map(String::as_str).collect();
    // The object is larger than what the instructions let through.
    let (expected, size) = match &*instructions {
        ["return-reset-connection", "return-503"] => ("POST reset, POST 503, POST 200, PUT 200", 512 << 10),
        ["return-408"] => ("POST 408, POST 200, PUT 200", 512 << 10),
        ["return-503-after-256K"] => ("POST 200, PUT 503, PUT 308, PUT 200", 512 << 10),
        ["return-503-after-8192K", "return-408"] => ("POST 200, PUT 503, PUT 408, PUT 308, PUT 200", 9 << 20),
        other => panic!("an upload of which nobody said what is to be sent: {other:?}"),
    };
    let object = object(size);
    server.begin(&case.id, &instructions, Bytes::new());
    let result = upload::upload(client, &server.authority, &case.id, object.clone()).await;
    let test = server.end(&case.id);
    let end = match result {
        Ok(()) if test.stored == object => "succeeded".to_owned(),
        Ok(()) => format!("another object: {} bytes of {}", test.stored.len(), object.len()),
        Err(why) => why,
    };
    let succeeds = if case.succeeds { "succeeded" } else { "failed" };
    outcome(format!("{expected}; {succeeds}"), format!("{}; {end}", seen(&test)))
}

/// Bytes that are nowhere the same for long, so that a piece in the wrong place shows.
fn object(length: usize) -> Bytes {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}
