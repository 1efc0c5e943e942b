//! Three services in a row, on loopback: a front that asks a middle, which asks a back. The back always answers 503, and
//! the two before it have three attempts each.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use redial::{
    Backoff, BoxError, Budget, RetryLayer, StandardPolicy, Timeouts, Transient,
    layers::{InboundLayer, OutboundHeadersLayer},
};
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt};

/// What the two before the back do for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Both write an [`OutboundHeadersLayer`]'s headers.
    pub told: bool,
    /// The middle reads them with an [`InboundLayer`].
    pub read: bool,
    /// And does not repeat while the front does.
    pub once: bool,
}

/// How the call of the front went.
#[allow(dead_code, reason = "the example shows the counts alone")]
pub struct Outcome {
    pub status: StatusCode,
    /// How many requests the middle and the back were sent.
    pub middle: usize,
    pub back: usize,
    /// What the back was told of each.
    pub heads: Vec<HeaderMap>,
}

/// One call of the front. Its attempts take at most `attempt`, the middle's a minute.
pub async fn call(manners: Manners, attempt: Duration) -> Result<Outcome, BoxError> {
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let (back, back_count) = serve(move |request| {
        if let Ok(mut seen) = seen.lock() {
            seen.push(request.headers().clone());
        }
        async { Ok(answer(StatusCode::SERVICE_UNAVAILABLE)) }
    })
    .await?;

    let ask = asking(policy("back", Duration::from_secs(60))?, manners);
    let handler = tower::service_fn(move |_: Request<Incoming>| {
        let (ask, back) = (ask.clone(), back.clone());
        async move { Ok::<_, BoxError>(answer(ask(back).await?)) }
    });
    let mut inbound = manners.read.then(InboundLayer::new);
    if manners.once {
        inbound = inbound.map(InboundLayer::once_when_caller_retries);
    }
    let server = ServiceBuilder::new().option_layer(inbound).service(handler);
    let (middle, middle_count) = serve(move |request| server.clone().oneshot(request)).await?;

    let status = asking(policy("middle", attempt)?, manners)(middle).await?;
    let counted = |count: Arc<AtomicUsize>| count.load(Ordering::SeqCst);
    let heads = heads.lock().map(|heads| heads.clone()).unwrap_or_default();
    Ok(Outcome { status, middle: counted(middle_count), back: counted(back_count), heads })
}

/// Three attempts, and all of them: what is counted here is not a matter of budgets.
fn policy(provider: &str, attempt: Duration) -> Result<StandardPolicy, redial::PolicyError> {
    let backoff = Backoff::exponential(Duration::from_millis(10)).max(Duration::from_millis(20));
    StandardPolicy::builder(provider, Timeouts { attempt, total: attempt * 10 }, Transient::usual())
        .backoff(backoff.floor(Duration::from_millis(5)))
        .budget(Budget::unlimited("requests are counted, all of them"))
        .build()
}

/// A client under a retry layer.
fn asking(
    policy: StandardPolicy,
    manners: Manners,
) -> impl Fn(String) -> std::pin::Pin<Box<dyn Future<Output = Result<StatusCode, BoxError>> + Send>> + Clone {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .option_layer(manners.told.then(OutboundHeadersLayer::new))
        .service(Client::builder(TokioExecutor::new()).build_http());
    move |url| {
        let client = client.clone();
        Box::pin(async move {
            let request = Request::get(url).body(Full::<Bytes>::default())?;
            Ok(client.oneshot(request).await?.status())
        })
    }
}

fn answer(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// A server on loopback: its URL, and how many requests it was sent. It ends with the runtime.
async fn serve<Fut>(
    service: impl Fn(Request<Incoming>) -> Fut + Clone + Send + 'static,
) -> io::Result<(String, Arc<AtomicUsize>)>
where
    Fut: Future<Output = Result<Response<Full<Bytes>>, BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (service, counted) = (service.clone(), Arc::clone(&counted));
            let counting = service_fn(move |request| {
                counted.fetch_add(1, Ordering::SeqCst);
                service(request)
            });
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), counting).await;
            });
        }
    });
    Ok((url, count))
}
