//! One call through the engine, over a service without sockets: what a policy is worth shows in what is sent.

use std::{
    future::{Future, pending},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use redial::{
    AttemptBody, Backoff, BoxError, Budget, CallReport, Policy, RetryLayer, StandardPolicy, StopReason, Timeouts,
    Transient, policy::StandardPolicyBuilder,
};
use tokio::net::{TcpSocket, TcpStream};
use tower::{Layer, ServiceExt, service_fn};

/// How a first attempt ends. Every later one is answered 200.
pub enum First {
    Answer(Response<Full<Bytes>>),
    Fails(BoxError),
    Silence,
}

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// Whether a second request was sent.
    pub repeated: bool,
    pub stop: Option<StopReason>,
}

/// Two attempts at the most: one row asks about one repeat.
pub fn builder(provider: &str, transient: Transient) -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(3600), total: Duration::from_secs(7200) };
    StandardPolicy::builder(provider, timeouts, transient)
        .attempts(2)
        .backoff(Backoff::fixed(Duration::from_millis(25), "a paused clock"))
        .budget(Budget::unlimited("one call a row"))
}

pub fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("http://api.example/orders").body(Full::default()).expect("a request")
}

/// Makes one call.
pub async fn call(policy: impl Policy + Clone, request: Request<Full<Bytes>>, first: First) -> Call {
    let (first, sent) = (Arc::new(Mutex::new(Some(first))), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&sent);
    let service = service_fn(move |_: Request<AttemptBody<Full<Bytes>>>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let end = first.lock().expect("no panic while locked").take();
        async move {
            match end {
                None => Ok(Response::new(Full::default())),
                Some(First::Answer(response)) => Ok(response),
                Some(First::Fails(error)) => Err(error),
                Some(First::Silence) => pending().await,
            }
        }
    });
    let result = RetryLayer::new(policy).layer(service).oneshot(request).await;
    let stop = match &result {
        Ok(response) => response.extensions().get().and_then(CallReport::stop),
        Err(error) => error.stop(),
    };
    let sent = sent.load(Ordering::Relaxed);
    assert!((1..=2).contains(&sent), "{sent} requests");
    Call { repeated: sent == 2, stop }
}

/// The real client's error where nobody listens: nothing else proves that a request was not sent.
pub async fn refused() -> BoxError {
    let nobody = TcpSocket::new_v4().expect("a socket");
    nobody.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let address = nobody.local_addr().expect("bound");
    let client = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(HttpConnector::new());
    client.get(format!("http://{address}/").parse().expect("a URI")).await.expect_err("nobody listens").into()
}

/// The real client's error where connecting takes too long.
pub async fn connect_timeout() -> BoxError {
    type Connecting = Result<TokioIo<TcpStream>, BoxError>;
    let connector = service_fn(|_: Uri| {
        let never = tokio::time::timeout(Duration::from_secs(1), pending::<Connecting>());
        Box::pin(async { never.await? })
    });
    let client = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
    client.get(Uri::from_static("http://nobody.example/")).await.expect_err("nobody answers").into()
}

/// Runs one row on a clock that does not wait.
pub fn paused<T>(row: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(row)
}
