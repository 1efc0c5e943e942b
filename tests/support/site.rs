//! A hyper server that records each request: how it was framed, and what its body hashed to.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redial::BoxError;
use sha2::{Digest, Sha256};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{TOO_LONG, Wire};

pub type AnswerBody = BoxBody<Bytes, BoxError>;

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The first request is 1.
    pub number: usize,
    pub method: Method,
    pub headers: HeaderMap,
    /// Length and hash of the body; `None`: it broke off.
    pub body: Option<(usize, [u8; 32])>,
    pub trailers: Option<HeaderMap>,
}

impl Arrival {
    /// What says where the body ends.
    pub fn framing(&self) -> [Option<&str>; 2] {
        [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].map(|name| self.headers.get(name)?.to_str().ok())
    }
}

/// What a body of these bytes arrives as.
pub fn whole(bytes: &[u8]) -> Option<(usize, [u8; 32])> {
    Some((bytes.len(), Sha256::digest(bytes).into()))
}

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub connections: usize,
    /// Requests whose head has arrived.
    pub started: usize,
    /// Requests that were read to the end of their body, or until it broke off, in that order.
    pub arrivals: Vec<Arrival>,
}

/// The record, for handlers to write to.
#[derive(Clone)]
pub struct Log(Arc<watch::Sender<Seen>>);

impl Log {
    /// Reads a request to its end and records it.
    pub async fn read(&self, number: usize, request: Request<Incoming>) {
        let (head, body) = request.into_parts();
        let (body, trailers) = match body.collect().await {
            Ok(body) => {
                let trailers = body.trailers().cloned();
                (whole(&body.to_bytes()), trailers)
            }
            Err(_) => (None, None),
        };
        let arrival = Arrival { number, method: head.method, headers: head.headers, body, trailers };
        self.0.send_modify(|seen| seen.arrivals.push(arrival));
    }
}

/// A running server; dropping it closes the port and every connection.
pub struct Site {
    addr: SocketAddr,
    seen: watch::Receiver<Seen>,
    acceptor: JoinHandle<()>,
}

impl Site {
    /// Reads each request whole, and answers the first with the first status, and so on; the last serves all that
    /// follow.
    pub async fn answering<const N: usize>(wire: Wire, statuses: [u16; N]) -> Site {
        Self::start(wire, move |number, request, log| async move {
            log.read(number, request).await;
            Ok(answer(statuses[(number - 1).min(N - 1)], format!("e{number}")))
        })
        .await
    }

    /// Each request, with its number from 1, is for the handler. A handler's error resets the stream (HTTP/2), with
    /// its reason where it is `h2`'s, or closes the connection.
    pub async fn start<H, F>(wire: Wire, handler: H) -> Site
    where
        H: Fn(usize, Request<Incoming>, Log) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response<AnswerBody>, BoxError>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, seen) = watch::channel(Seen::default());
        let log = Log(Arc::new(sender));
        let acceptor = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // Small answers must not wait for an acknowledgement.
                stream.set_nodelay(true).unwrap();
                log.0.send_modify(|seen| seen.connections += 1);
                let (log, handler) = (log.clone(), handler.clone());
                let service = service_fn(move |request| {
                    let mut number = 0;
                    log.0.send_modify(|seen| {
                        seen.started += 1;
                        number = seen.started;
                    });
                    handler(number, request, log.clone())
                });
                connections.spawn(async move {
                    let stream = TokioIo::new(stream);
                    // A connection may end in any way; what matters is recorded.
                    match wire {
                        Wire::Http1 => drop(http1::Builder::new().serve_connection(stream, service).await),
                        Wire::Http2 => {
                            drop(http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await)
                        }
                    }
                });
            }
        });
        Site { addr, seen, acceptor }
    }

    pub fn url(&self) -> String {
        format!("http://{}/x", self.addr)
    }

    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until the server has seen enough.
    pub async fn until(&self, enough: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        let seen = tokio::time::timeout(TOO_LONG, seen.wait_for(enough)).await.map(drop);
        assert!(seen.is_ok(), "the server saw only {:?}", self.seen());
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

pub fn answer(status: u16, body: impl Into<Bytes>) -> Response<AnswerBody> {
    answer_with(status, Full::new(body.into()).map_err(|never| match never {}).boxed())
}

pub fn answer_with(status: u16, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}
