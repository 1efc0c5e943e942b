//! A client as it is generated, a codec, and what the kit answers in gRPC.

use std::{future::Future, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use http::uri::PathAndQuery;
use redial::{
    Backoff, Budget, CallReport, GrpcCode, StandardPolicy, Timeouts, Transient,
    grpc::RetryChannel,
    policy::StandardPolicyBuilder,
    testing::{self, Reply, Script, ScriptService},
};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client::{Grpc, GrpcService},
    transport::{Channel, Endpoint},
};

#[path = "../../examples/support/raw.rs"]
mod raw;

pub use raw::Raw;

pub const WAIT: Duration = Duration::from_millis(100);

/// Nothing here takes this long, unless it hangs.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it hangs")
}

/// An attempt may take 1 s, the call 60 s; 3 attempts, 100 ms apart; UNAVAILABLE is transient. No evidence.
pub fn builder() -> StandardPolicyBuilder {
    with(Transient::usual().code(GrpcCode::Unavailable))
}

pub fn with(transient: Transient) -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(60) };
    StandardPolicy::builder("shop", timeouts, transient)
        .backoff(Backoff::fixed(WAIT, "tests are exact"))
        .budget(Budget::unlimited("tests bound themselves"))
}

/// The same, with evidence.
pub fn idempotent() -> StandardPolicy {
    builder().idempotent("orders have numbers").build().unwrap()
}

/// What tonic generates, written by hand. The bounds are those of its generated code.
#[derive(Clone)]
pub struct Client<T>(Grpc<T>);

impl<T> Client<T>
where
    T: GrpcService<Body>,
    T::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    pub fn new(inner: T) -> Self {
        Client(Grpc::new(inner).max_decoding_message_size(usize::MAX))
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))
    }

    pub async fn place(&mut self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.ready().await?;
        self.0.unary(request, PathAndQuery::from_static("/shop.Orders/Place"), Raw).await
    }

    pub async fn watch(&mut self, request: Request<Bytes>) -> Result<Response<Streaming<Bytes>>, Status> {
        self.ready().await?;
        self.0.server_streaming(request, PathAndQuery::from_static("/shop.Orders/Watch"), Raw).await
    }

    pub async fn collect<M>(&mut self, messages: M) -> Result<Response<Bytes>, Status>
    where
        M: Stream<Item = Bytes> + Send + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static("/shop.Orders/Collect");
        self.0.client_streaming(Request::new(messages), path, Raw).await
    }

    pub async fn chat<M>(&mut self, messages: M) -> Result<Response<Streaming<Bytes>>, Status>
    where
        M: Stream<Item = Bytes> + Send + 'static,
    {
        self.ready().await?;
        self.0.streaming(Request::new(messages), PathAndQuery::from_static("/shop.Orders/Chat"), Raw).await
    }
}

pub fn order() -> Request<Bytes> {
    Request::new(Bytes::from_static(b"an order"))
}

/// A message as it is framed.
pub fn framed(message: impl AsRef<[u8]>) -> Bytes {
    let message = message.as_ref();
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put(message);
    frame.freeze()
}

/// A status in the head, and nothing else.
pub fn fails(code: GrpcCode) -> Reply {
    Reply::status(200)
        .header("content-type", "application/grpc")
        .header("grpc-status", (code as u8).to_string())
        .header("grpc-message", "so it is")
        .header("x-from", "the head")
}

pub fn unavailable() -> Reply {
    fails(GrpcCode::Unavailable)
}

/// A head, and nothing yet.
pub fn head() -> Reply {
    Reply::ok("").header("content-type", "application/grpc")
}

/// A status in trailers.
pub trait InTrailers {
    fn ends(self, code: GrpcCode) -> Reply;
}

impl InTrailers for Reply {
    fn ends(self, code: GrpcCode) -> Reply {
        self.trailer("grpc-status", (code as u8).to_string()).trailer("x-trailer", "the end")
    }
}

/// One message, and OK.
pub fn done() -> Reply {
    head().body(framed("done")).ends(GrpcCode::Ok)
}

/// A client of a scripted service, for paused clocks.
pub fn scripted(script: impl Into<Script>, policy: StandardPolicy) -> (Client<Scripted>, ScriptService) {
    let service = testing::service(script);
    (Client::new(redial::grpc::channel(service.clone(), policy)), service)
}

pub type Scripted = RetryChannel<ScriptService, StandardPolicy>;

/// tonic's channel to this address.
pub fn channel(addr: std::net::SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{addr}")).unwrap().connect_lazy()
}

/// What is known of a failed call.
pub fn report(status: &Status) -> CallReport {
    let error = redial::grpc::error(status).unwrap_or_else(|| panic!("{status:?} leads to no report"));
    error.report().expect("a report").clone()
}

/// What is read of a body without a client: data, then trailers.
pub async fn read<B>(mut body: B) -> (Vec<u8>, Option<http::HeaderMap>)
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug> + Unpin,
{
    let (mut data, mut trailers) = (Vec::new(), None);
    while let Some(frame) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await {
        match frame.unwrap().into_data() {
            Ok(bytes) => data.extend_from_slice(&bytes),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    assert!(body.is_end_stream() || trailers.is_some() || data.is_empty());
    (data, trailers)
}
