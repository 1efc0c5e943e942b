//! The service `shop.Orders` with one unary method, `Place`: a server on loopback, and what tonic would generate for both
//! sides, written by hand, with messages that are bytes.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream;
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tonic::{
    Request, Response, Status,
    body::Body,
    client::GrpcService,
    server::{NamedService, UnaryService},
    transport::Server,
};

#[path = "raw.rs"]
mod raw;

use raw::Raw;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The client.
pub struct OrdersClient<T>(tonic::client::Grpc<T>);

impl<T> OrdersClient<T>
where
    T: GrpcService<Body>,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub fn new(channel: T) -> Self {
        OrdersClient(tonic::client::Grpc::new(channel))
    }

    pub async fn place(&mut self, order: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))?;
        self.0.unary(order, PathAndQuery::from_static("/shop.Orders/Place"), Raw).await
    }
}

/// A running server. It ends with the runtime.
pub struct Running {
    pub url: String,
    calls: Arc<AtomicUsize>,
}

impl Running {
    /// How many calls have arrived.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Starts a server that is unavailable for its first calls, so many of them.
pub async fn serve(unavailable: usize) -> io::Result<Running> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let calls = Arc::<AtomicUsize>::default();
    let orders = Orders { calls: Arc::clone(&calls), unavailable };
    let incoming = stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    tokio::spawn(Server::builder().add_service(orders).serve_with_incoming(incoming));
    Ok(Running { url, calls })
}

/// The service.
#[derive(Clone)]
struct Orders {
    calls: Arc<AtomicUsize>,
    unavailable: usize,
}

impl UnaryService<Bytes> for Orders {
    type Response = Bytes;
    type Future = BoxFuture<Result<Response<Bytes>, Status>>;

    fn call(&mut self, order: Request<Bytes>) -> Self::Future {
        let earlier = self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = match order.into_inner() {
            _ if earlier < self.unavailable => Err(Status::unavailable("warming up")),
            order if order.is_empty() => Err(Status::invalid_argument("an order of nothing")),
            order => Ok(Response::new([b"placed: ", &order[..]].concat().into())),
        };
        Box::pin(async { answer })
    }
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

impl tower::Service<http::Request<Body>> for Orders {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let orders = self.clone();
        Box::pin(async { Ok(tonic::server::Grpc::new(Raw).unary(orders, request).await) })
    }
}
