//! A hyper server whose handler reads as much of a request as it likes. What a script can say, the kit says.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use redial::BoxError;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{TOO_LONG, Wire};

pub type AnswerBody = BoxBody<Bytes, BoxError>;

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub connections: usize,
    /// Requests whose head has arrived.
    pub started: usize,
}

/// A running server; dropping it closes the port and every connection.
pub struct Site {
    addr: SocketAddr,
    seen: watch::Receiver<Seen>,
    acceptor: JoinHandle<()>,
}

impl Site {
    /// Each request, with its number from 1, is for the handler. A handler's error resets the stream (HTTP/2), with
    /// its reason where it is `h2`'s, or closes the connection.
    pub async fn start<H, F>(wire: Wire, handler: H) -> Site
    where
        H: Fn(usize, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Response<AnswerBody>, BoxError>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, seen) = watch::channel(Seen::default());
        let sender = Arc::new(sender);
        let acceptor = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // Small answers must not wait for an acknowledgement.
                stream.set_nodelay(true).unwrap();
                sender.send_modify(|seen| seen.connections += 1);
                let (sender, handler) = (sender.clone(), handler.clone());
                let service = service_fn(move |request| {
                    let mut number = 0;
                    sender.send_modify(|seen| {
                        seen.started += 1;
                        number = seen.started;
                    });
                    handler(number, request)
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
