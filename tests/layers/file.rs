//! A server of one file, which knows ranges (RFC 9110, section 14), and can be killed and started anew.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

pub struct FileServer {
    pub addr: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    acceptor: JoinHandle<()>,
}

impl FileServer {
    /// On this port, or with 0 on a free one.
    pub async fn start(port: u16, file: Bytes, etag: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let record = Arc::clone(&seen);
        let acceptor = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (file, record) = (file.clone(), Arc::clone(&record));
                connections.spawn(async move {
                    let answer = service_fn(move |request: Request<Incoming>| {
                        let response = answer(request.headers(), &file, etag);
                        let range = request.headers().get(header::RANGE).map_or("all", |range| range.to_str().unwrap());
                        record.lock().unwrap().push(format!("{range} -> {}", response.status().as_u16()));
                        async move { Ok::<_, Infallible>(response) }
                    });
                    let _ =
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        FileServer { addr, seen, acceptor }
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Ends it and every connection, in the middle of whatever they do.
    pub async fn kill(self) -> Vec<String> {
        self.acceptor.abort();
        while !self.acceptor.is_finished() {
            tokio::task::yield_now().await;
        }
        self.seen()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

fn answer(headers: &HeaderMap, file: &Bytes, etag: &str) -> Response<Full<Bytes>> {
    let range = headers.get(header::RANGE).filter(|_| headers.get(header::IF_RANGE).is_none_or(|known| known == etag));
    let response = Response::builder().header(header::ETAG, etag);
    let Some(range) = range else { return response.body(Full::new(file.clone())).unwrap() };
    let (first, last) = range.to_str().unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let first: usize = first.parse().unwrap();
    let end = last.parse::<usize>().map_or(file.len(), |last| (last + 1).min(file.len()));
    let response = response.status(206);
    let response = response.header(header::CONTENT_RANGE, format!("bytes {first}-{}/{}", end - 1, file.len()));
    response.body(Full::new(file.slice(first..end))).unwrap()
}
