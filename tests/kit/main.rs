//! The kit itself: every fault as a client meets it, and every request as it was sent.

mod connecting;
mod early;
mod errors;
mod events;
mod faults;
mod large;
mod pauses;
mod recording;
mod scripts;
mod service;
mod streams;

use std::{error::Error as StdError, future::Future, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{
    BoxError, Fault,
    testing::{self, Reply, Script, ScriptService, Server},
};
use tower::ServiceExt;

/// Nothing here takes this long, unless it hangs.
const TOO_LONG: Duration = Duration::from_secs(20);

const OK: &str = "200";

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TOO_LONG, future).await.expect("it hangs")
}

fn client<B>(http2: bool) -> Client<HttpConnector, B>
where
    B: Body<Data: Send> + Send,
{
    Client::builder(TokioExecutor::new()).http2_only(http2).build_http()
}

fn post(url: &str) -> Request<Full<Bytes>> {
    Request::post(url).body(Full::from("hi")).unwrap()
}

fn play(http2: bool, script: impl Into<Script>) -> Server {
    if http2 { Server::http2(script) } else { Server::http1(script) }
}

/// What came of a request: a status, or what is read from the error of its head, or both where its body failed.
async fn outcome<B, E>(answer: Result<Response<B>, E>) -> String
where
    B: Body<Error: Into<BoxError>>,
    E: Into<BoxError>,
{
    let response = match answer {
        Ok(response) => response,
        Err(error) => return words(&*error.into()),
    };
    let status = response.status();
    match response.into_body().collect().await {
        Ok(_) => status.as_str().to_owned(),
        Err(error) => format!("{}, then {}", status.as_str(), words(&*error.into())),
    }
}

/// What is read from an error, in words: its kind, then what holds. Bodies were polled.
fn words(error: &(dyn StdError + 'static)) -> String {
    let fault = Fault::read_attempt(error, true);
    let mut words = fault.kind().to_string();
    let holds = [(fault.is_unsent(), " unsent"), (fault.is_permanent(), " permanent"), (fault.asks_calm(), " calm")];
    for (holds, word) in holds {
        words += if holds { word } else { "" };
    }
    words
}

async fn over_wire(http2: bool, reply: Reply) -> String {
    let server = play(http2, reply);
    soon(async { outcome(client(http2).request(post(&server.url("/x"))).await).await }).await
}

async fn over_service(reply: Reply) -> String {
    soon(async { outcome(testing::service(reply).oneshot(post("/x")).await).await }).await
}

/// What a test's tasks may share.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(Script, Reply, Server, ScriptService, testing::Seen, testing::Resolver, testing::ReportBuilder)>();
    const fn sent<T: Send + Unpin>() {}
    sent::<(testing::ReplyBody, testing::ScriptFuture)>();
};

async fn send(service: &ScriptService) -> String {
    outcome(service.clone().oneshot(post("/x")).await).await
}
