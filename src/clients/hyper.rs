//! hyper-util with rustls (feature `hyper-rustls`): one call for those who bring no client.
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use redial::{StandardPolicy, Timeouts, Transient};
//! use std::time::Duration;
//! use tower::ServiceExt;
//!
//! async fn order(id: u32) -> Result<http::StatusCode, Box<dyn std::error::Error>> {
//!     let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//!     let client = redial::hyper::client(StandardPolicy::new("orders", timeouts, Transient::usual())?);
//!
//!     let request = http::Request::get(format!("https://orders.example/{id}")).body(Full::<Bytes>::default())?;
//!     Ok(client.oneshot(request).await?.status())
//! }
//! ```
//!
//! `https` by rustls with Mozilla's roots ([`webpki-roots`]), HTTP/2 where the server agrees to it (ALPN) and HTTP/1.1
//! otherwise; `http` by HTTP/1.1. Connections are kept, for 90 seconds without use. Roots, certificates or a longer time
//! to connect of your own: [`connector`] and [`with_connector`].
//!
//! Above it stands what stands above a retry layer, [`TimeoutLayer`](crate::TimeoutLayer) first. Wrong is a second
//! `RetryLayer`, since this client has one, and it does not compile:
//!
//! ```compile_fail,E0277
//! # use bytes::Bytes;
//! # use http_body_util::Full;
//! # use redial::{RetryLayer, StandardPolicy};
//! # use tower::Layer;
//! # fn infer<S: tower::Service<http::Request<Full<Bytes>>>>(_: &S) {}
//! # fn stack(policy: StandardPolicy) {
//! let client = RetryLayer::new(policy.clone()).layer(redial::hyper::client(policy));
//! # infer(&client);
//! # }
//! ```
//!
//! hyper-util's client itself sends a request again where its connection was closed before it took it: no server sees
//! the first.
//!
//! [`webpki-roots`]: https://docs.rs/webpki-roots

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, crypto::ring};
use tower_layer::Layer;
use tower_service::Service;

use crate::{AttemptBody, BoxError, Policy, Replay, RetryLayer, StandardPolicy, retry::Retry};

/// A retry layer over hyper-util's client; made by [`client`] and [`with_connector`]. A tower service of
/// `http::Request<B>`, for one type of body.
pub type Client<B = Full<Bytes>, P = StandardPolicy> = Retry<legacy::Client<Connector, AttemptBody<B>>, P>;

/// The longest that [`client`] gives a connection.
const LONGEST: Duration = Duration::from_secs(5);

/// A client that repeats by this policy.
///
/// A connection (name, socket and TLS) is given half of the policy's attempt, and at most five seconds: a timeout of the
/// connection proves that nothing was sent, so that any request is repeated, while one of the attempt proves nothing.
pub fn client<B>(policy: StandardPolicy) -> Client<B>
where
    B: Replay<Data: Send> + Send + Unpin + 'static,
{
    let connect = (policy.timeouts().attempt / 2).min(LONGEST);
    with_connector(connector(mozilla_roots(), connect), policy)
}

/// A client that connects by this connector, and repeats by any policy ([`Routes`](crate::Routes), one of your own).
pub fn with_connector<B, P>(connector: Connector, policy: P) -> Client<B, P>
where
    B: Replay<Data: Send> + Send + Unpin + 'static,
    P: Policy + Clone,
{
    let client = legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
    RetryLayer::new(policy).layer(client)
}

/// Opens connections with this configuration of TLS, each within `connect`. Make that shorter than the policy's attempt.
///
/// The configuration's ALPN is overwritten: HTTP/2, then HTTP/1.1.
pub fn connector(mut config: ClientConfig, connect: Duration) -> Connector {
    // The builder sets it, and does not like to find it set.
    config.alpn_protocols.clear();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    // Shared by the addresses of a name, so that the second has its turn.
    http.set_connect_timeout(Some(connect));
    let https =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_all_versions().wrap_connector(http);
    Connector { https, within: connect }
}

fn mozilla_roots() -> ClientConfig {
    // ring, by name: where a program holds two providers, rustls has no default.
    match ClientConfig::builder_with_provider(ring::default_provider().into()).with_safe_default_protocol_versions() {
        Ok(config) => config.with_webpki_roots().with_no_client_auth(),
        Err(_) => unreachable!("ring has cipher suites for the default versions"),
    }
}

type Https = HttpsConnector<HttpConnector>;

/// Opens connections: name, socket and TLS within one time; made by [`connector`].
#[derive(Clone)]
pub struct Connector {
    https: Https,
    within: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("within", &self.within).finish_non_exhaustive()
    }
}

impl Service<Uri> for Connector {
    type Response = <Https as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        // hyper-util wants it `Unpin`, which a timer is only in a box.
        Connecting(Box::pin(tokio::time::timeout(self.within, self.https.call(uri))))
    }
}

/// A connection in the making, by a [`Connector`].
#[must_use = "futures do nothing unless polled"]
pub struct Connecting(Pin<Box<tokio::time::Timeout<<Https as Service<Uri>>::Future>>>);

impl Future for Connecting {
    type Output = Result<<Https as Service<Uri>>::Response, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.0.as_mut().poll(cx)) {
            Ok(result) => result,
            Err(elapsed) => Err(elapsed.into()),
        })
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}
