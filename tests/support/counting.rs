//! A server on loopback, over HTTP/1.1 and HTTP/2, that remembers what reached it; and what goes with it.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use redial::{Backoff, Budget, StandardPolicy, Timeouts, Transient};
use tokio::net::TcpListener;

/// What reached the server.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub path: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What [`redial::attempt_number`] says on this side of the socket.
    pub attempt: Option<u32>,
}

pub struct Server {
    authority: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers by this function, which is told how many requests to the same path came before.
    pub async fn start(answer: impl Fn(usize, &Seen) -> Response<Full<Bytes>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let authority = listener.local_addr().expect("a bound socket").to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (shared, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                    async move {
                        let request = remember(request).await;
                        let before = {
                            let mut seen = seen.lock().expect("no panic while locked");
                            let before = seen.iter().filter(|earlier: &&Seen| earlier.path == request.path).count();
                            seen.push(request.clone());
                            before
                        };
                        Ok::<_, Infallible>(answer(before, &request))
                    }
                });
                tokio::spawn(async move {
                    // A client that leaves is no failure of a test.
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Server { authority, seen }
    }

    /// Answers every request with this status.
    pub async fn always(status: u16) -> Self {
        Self::start(move |_, _| answer(status)).await
    }

    /// Fails the first request to each path, and then answers 200: packed, where the client says that it can unpack.
    pub async fn flaky() -> Self {
        Self::start(|before, seen| {
            let mut response = answer(if before == 0 { 503 } else { 200 });
            if seen.headers.get(header::ACCEPT_ENCODING).is_some_and(|accepted| accepted == "gzip") {
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                *response.body_mut() = Full::new(Bytes::from_static(HELLO_PACKED));
            }
            response
        })
        .await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    pub fn get(&self, path: &str) -> Request<Full<Bytes>> {
        Request::get(self.url(path)).body(Full::default()).expect("a valid request")
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic while locked").clone()
    }

    pub fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.path).collect()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().expect("no panic while locked").len()
    }
}

async fn remember(request: Request<Incoming>) -> Seen {
    let attempt = redial::attempt_number(request.extensions());
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Seen {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        version: parts.version,
        headers: parts.headers,
        body,
        attempt,
    }
}

/// `hello`, as gzip.
const HELLO_PACKED: &[u8] =
    &[31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0];

pub fn answer(status: u16) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
    *response.status_mut() = StatusCode::from_u16(status).expect("a valid status");
    response
}

pub fn redirect(to: impl AsRef<str>) -> Response<Full<Bytes>> {
    Response::builder().status(307).header("location", to.as_ref()).body(Full::default()).expect("a valid response")
}

/// The two versions that every stack is run over.
pub const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];

pub fn client<B>(version: Version) -> Client<HttpConnector, B>
where
    B: http_body::Body<Data: Send> + Send,
{
    Client::builder(TokioExecutor::new()).http2_only(version == Version::HTTP_2).build_http()
}

/// Three attempts with waits as short as they may be.
pub fn policy() -> StandardPolicy {
    policy_for("tests")
}

/// The same for a provider of this name, by which a test tells its events from those of others.
pub fn policy_for(provider: &str) -> StandardPolicy {
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };
    let backoff =
        Backoff::exponential(Duration::from_millis(2)).max(Duration::from_millis(4)).floor(Duration::from_millis(1));
    StandardPolicy::builder(provider, timeouts, Transient::usual())
        .backoff(backoff)
        .budget(Budget::unlimited("tests count attempts, all of them"))
        .build()
        .expect("a valid policy")
}
