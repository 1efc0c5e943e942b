//! The contenders, all with the same rule: three attempts on 503, a timeout for each and for all, a wait between.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{Backoff, Budget, StandardPolicy, Timeouts, Transient, policy::budget::BudgetSetting};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn, timeout::Timeout};
use tower_resilience_timelimiter::{TimeLimiterError, TimeLimiterLayer};

use redial_benches::towers::Towers;

/// What is sent.
pub type Memory = Full<Bytes>;

pub const ATTEMPT: Duration = Duration::from_secs(5);
pub const TOTAL: Duration = Duration::from_secs(30);
pub const TIMEOUTS: Timeouts = Timeouts { attempt: ATTEMPT, total: TOTAL };
pub const WAIT: Duration = Duration::from_millis(2);

/// Over which protocol.
#[derive(Clone, Copy, PartialEq)]
pub enum Version {
    Http1,
    Http2,
}

impl Version {
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http1 => "wire, HTTP/1.1",
            Version::Http2 => "wire, HTTP/2",
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Who {
    /// hyper-util's client alone.
    Bare,
    Redial,
    Tower,
    Resilience,
    Hand,
}

impl Who {
    pub const ALL: [Who; 5] = [Who::Bare, Who::Redial, Who::Tower, Who::Resilience, Who::Hand];

    pub const fn name(self) -> &'static str {
        match self {
            Who::Bare => "hyper alone",
            Who::Redial => "redial",
            Who::Tower => "tower",
            Who::Resilience => "tower-resilience",
            Who::Hand => "loop by hand",
        }
    }
}

/// A service over hyper-util's client.
pub trait Stack:
    Service<Request<Memory>, Response = Response<Incoming>, Future: Send> + Clone + Send + 'static
{
}

impl<S> Stack for S where
    S: Service<Request<Memory>, Response = Response<Incoming>, Future: Send> + Clone + Send + 'static
{
}

/// Does something with the service of one of them.
macro_rules! with_service {
    ($who:expr, $version:expr, |$service:ident| $work:expr) => {
        match $who {
            Who::Bare => {
                let $service = $crate::peers::hyper($version);
                $work
            }
            Who::Redial => {
                let $service = $crate::peers::redial($version);
                $work
            }
            Who::Tower => {
                let $service = $crate::peers::tower($version);
                $work
            }
            Who::Resilience => {
                let $service = $crate::peers::resilience($version);
                $work
            }
            Who::Hand => {
                let $service = $crate::peers::hand($version);
                $work
            }
        }
    };
}
pub(crate) use with_service;

/// hyper-util's client, which all of them stand on.
pub fn hyper<B>(version: Version) -> Client<HttpConnector, B>
where
    B: Body<Data: Send> + Send,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).http2_only(version == Version::Http2).build(connector)
}

/// The usual budget would refuse to repeat for a server that fails every first try. This one keeps the same accounts, and
/// each first try pays for its own two repeats.
pub fn policy(timeouts: Timeouts) -> StandardPolicy {
    let budget = BudgetSetting::bucket(1000.0).per_first_try(2.0).refund_on_success(true);
    StandardPolicy::builder("things", timeouts, Transient::usual())
        .backoff(Backoff::exponential(WAIT).max(WAIT * 2).floor(Duration::from_millis(1)))
        .budget(Budget::custom(budget).expect("a budget"))
        .idempotent("a repeat writes the same again")
        .build()
        .expect("a policy")
}

pub fn redial(
    version: Version,
) -> redial::retry::Retry<Client<HttpConnector, redial::AttemptBody<Memory>>, StandardPolicy> {
    redial::RetryLayer::new(policy(TIMEOUTS)).layer(hyper(version))
}

pub fn tower(version: Version) -> Timeout<tower::retry::Retry<Towers, Timeout<Client<HttpConnector, Memory>>>> {
    let retry = Towers { left: 2, wait: WAIT };
    ServiceBuilder::new().timeout(TOTAL).retry(retry).timeout(ATTEMPT).service(hyper(version))
}

type Limited<E> = TimeLimiterError<E>;

pub fn resilience(version: Version) -> impl Stack<Error = Limited<Limited<legacy::Error>>> {
    let retry = tower_resilience_retry::RetryLayer::<_, _, Limited<legacy::Error>>::builder()
        .max_attempts(3)
        .fixed_backoff(WAIT)
        .retry_on(|_| false)
        .retry_on_response(|response: &Response<Incoming>| response.status() == StatusCode::SERVICE_UNAVAILABLE)
        .build();
    let limit = |time| TimeLimiterLayer::builder().timeout_duration(time).build();
    ServiceBuilder::new().layer(limit(TOTAL)).layer(retry).layer(limit(ATTEMPT)).service(hyper(version))
}

/// A loop as it is written everywhere, but for one thing: it reads a failed answer to its end.
pub fn hand(version: Version) -> impl Stack<Error = BoxError> {
    let client = hyper(version);
    service_fn(move |request| {
        let client = client.clone();
        async move { tokio::time::timeout(TOTAL, attempts(&client, request)).await? }
    })
}

async fn attempts(
    client: &Client<HttpConnector, Memory>,
    request: Request<Memory>,
) -> Result<Response<Incoming>, BoxError> {
    for _ in 1..=2 {
        let response = tokio::time::timeout(ATTEMPT, client.request(request.clone())).await??;
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(response);
        }
        tokio::time::timeout(ATTEMPT, response.into_body().collect()).await??;
        tokio::time::sleep(WAIT).await;
    }
    Ok(tokio::time::timeout(ATTEMPT, client.request(request)).await??)
}

/// One call: its status, once the answer's body is read.
pub async fn call<S, B, RB>(service: &mut S, request: Request<B>) -> Result<StatusCode, BoxError>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    let ready = service.ready().await.map_err(Into::into)?;
    let (head, body) = ready.call(request).await.map_err(Into::into)?.into_parts();
    let mut body = std::pin::pin!(body);
    while let Some(frame) = body.frame().await {
        frame.map_err(Into::into)?;
    }
    Ok(head.status)
}
