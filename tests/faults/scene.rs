//! A scene: what goes wrong, what must be read from it, and what the server must have seen.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use redial::fault::Fault;

use crate::common::{Server, TOO_LONG};

pub type BoxError = Box<dyn Error + Send + Sync>;
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// How a scene ended: the error, and what the server saw as `[connections, requests, body bytes]`.
pub struct Failed {
    pub error: BoxError,
    pub saw: [usize; 3],
}

impl Failed {
    pub fn new(error: impl Into<BoxError>, server: &Server) -> Failed {
        let seen = server.seen();
        Failed { error: error.into(), saw: [seen.connections, seen.requests, seen.body_bytes] }
    }

    /// No server took part.
    pub fn alone(error: impl Into<BoxError>) -> Failed {
        Failed { error: error.into(), saw: [0; 3] }
    }
}

pub struct Scene {
    pub what: &'static str,
    pub reads: &'static str,
    pub saw: [usize; 3],
    pub play: Pin<Box<dyn Future<Output = Failed>>>,
}

impl Scene {
    pub async fn check(self) {
        let failed = in_time(self.play).await;
        let error = &*failed.error;
        assert_eq!(read(error), self.reads, "{}:{}", self.what, chain(error));
        assert_eq!(failed.saw, self.saw, "{}: connections, requests and body bytes", self.what);
    }

    pub async fn print(self) {
        let failed = in_time(self.play).await;
        println!("\n{} | {} | saw {:?}{}", self.what, read(&*failed.error), failed.saw, chain(&*failed.error));
    }
}

/// Defines scenes: a test for each, and `scenes()` with all of them for the table.
macro_rules! scenes {
    ($($(#[$attribute:meta])* $name:ident: $what:expr => $reads:expr, $saw:expr, $play:expr;)*) => {
        $(
            $(#[$attribute])*
            fn $name() -> crate::scene::Scene {
                crate::scene::Scene { what: $what, reads: $reads, saw: $saw, play: Box::pin($play) }
            }
        )*
        mod tests {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name().check().await;
                }
            )*
        }
        pub fn scenes() -> Vec<crate::scene::Scene> {
            vec![$($name()),*]
        }
    };
}

/// What is read from an error, in words: its kind, then what holds. The scenes' bodies have been polled
/// wherever a stream was opened.
pub fn read(error: &(dyn Error + 'static)) -> String {
    words(Fault::read_attempt(error, true))
}

pub fn words(fault: Fault) -> String {
    let mut words = fault.kind().to_string();
    for (holds, word) in
        [(fault.is_unsent(), " unsent"), (fault.is_permanent(), " permanent"), (fault.asks_calm(), " calm")]
    {
        words += if holds { word } else { "" };
    }
    words
}

/// The links of an error, one a line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(link) = next {
        let name = if link.is::<legacy::Error>() {
            "hyper-util"
        } else if link.is::<hyper::Error>() {
            "hyper"
        } else if link.is::<h2::Error>() {
            "h2"
        } else if link.is::<io::Error>() {
            "io"
        } else {
            "…"
        };
        text += &format!("\n    {name}: {link}");
        let inner = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as _).or_else(|| link.source());
    }
    text
}

pub async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TOO_LONG, future).await.expect("hangs")
}

/// hyper-util's client over HTTP/1.1.
pub fn http1() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// hyper-util's client over HTTP/2 without TLS.
pub fn http2() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

/// hyper-util's client over another connector.
pub fn over<C: Connect + Clone>(connector: C) -> Client<C, Body> {
    Client::builder(TokioExecutor::new()).build(connector)
}

/// A `POST` of two bytes.
pub fn post(url: &str) -> Request<Body> {
    let body = Full::<Bytes>::from("hi").map_err(BoxError::from).boxed_unsync();
    Request::post(url).body(body).unwrap()
}

/// Sends it, which must fail.
pub async fn fail<C>(client: &Client<C, Body>, request: Request<Body>) -> legacy::Error
where
    C: Connect + Clone + Send + Sync + 'static,
{
    match in_time(client.request(request)).await {
        Ok(response) => panic!("answered with {}", response.status()),
        Err(error) => error,
    }
}

/// Sends it, which must work, and reads the answer to its end.
pub async fn pass<C>(client: &Client<C, Body>, request: Request<Body>) -> u16
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let response: Response<Incoming> = in_time(client.request(request)).await.unwrap();
    let status = response.status().as_u16();
    in_time(response.into_body().collect()).await.unwrap();
    status
}
