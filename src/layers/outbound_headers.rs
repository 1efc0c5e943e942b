//! What the next hop is told of each attempt.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::Request;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::hint_header::{HintHeader, Said};
use crate::{Deadline, OutboundHints, attempt_number, retry::current};

/// Tells the next hop, in each attempt's headers, which attempt it is and how long it may still take: what an
/// [`InboundLayer`](super::InboundLayer) reads there.
///
/// Nothing of redial writes such headers without it: two services know nothing of each other.
///
/// - The **attempt** is that of the [`RetryLayer`](crate::RetryLayer) above, or of the
///   [`redial::retry`](fn@crate::retry) around the call. While a caller's own retry is served
///   ([`OutboundHints::caller_attempt`]) the two are added: its second and our first are the second. So a repeat is known
///   for one along the whole path.
/// - The **time** is what is left of the attempt, of a [`Deadline`] in the request's extensions, or of a caller's
///   deadline, whichever ends first. A time that is there already is only ever shortened, an attempt is overwritten: it
///   was another hop's.
///
/// By default the headers are Envoy's pair, `x-envoy-attempt-count` and `x-envoy-expected-rq-timeout-ms`;
/// [`headers`](Self::headers) chooses among [`HintHeader`].
///
/// # The right order
///
/// Below the retry layer, and above a signer that signs these headers.
///
/// ```
/// use redial::{RetryLayer, StandardPolicy, layers::OutboundHeadersLayer};
/// # fn stack<S>(policy: StandardPolicy, client: S) -> impl Sized {
/// tower::ServiceBuilder::new()
///     .layer(RetryLayer::new(policy))
///     .layer(OutboundHeadersLayer::new()) // below: each attempt with its number and its time
///     .service(client)
/// # }
/// ```
///
/// # The wrong order
///
/// Above the retry layer it compiles. No attempt has a number there, and every attempt carries the time that was left
/// when the call began: the third claims time that is long gone. Below a `buffer` it runs in another task, and knows the
/// attempt's number but, of its time, only a [`Deadline`] in the request's extensions.
///
/// ```no_run
/// # use redial::{RetryLayer, StandardPolicy, layers::OutboundHeadersLayer};
/// # fn stack<S>(policy: StandardPolicy, client: S) -> impl Sized {
/// tower::ServiceBuilder::new()
///     .layer(OutboundHeadersLayer::new()) // above: the same headers on every attempt
///     .layer(RetryLayer::new(policy))
///     .service(client)
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OutboundHeadersLayer {
    headers: Arc<[HintHeader]>,
}

impl OutboundHeadersLayer {
    /// Writes Envoy's pair.
    pub fn new() -> Self {
        OutboundHeadersLayer { headers: Arc::new([HintHeader::EnvoyAttemptCount, HintHeader::EnvoyExpectedTimeout]) }
    }

    /// Writes these headers and no others.
    pub fn headers(self, headers: impl IntoIterator<Item = HintHeader>) -> Self {
        OutboundHeadersLayer { headers: headers.into_iter().collect() }
    }
}

impl Default for OutboundHeadersLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for OutboundHeadersLayer {
    type Service = OutboundHeaders<S>;

    fn layer(&self, inner: S) -> OutboundHeaders<S> {
        OutboundHeaders { inner, headers: Arc::clone(&self.headers) }
    }
}

/// A service that tells the next hop of each attempt; made by [`OutboundHeadersLayer`].
#[derive(Clone, Debug)]
pub struct OutboundHeaders<S> {
    inner: S,
    headers: Arc<[HintHeader]>,
}

impl<S, B> Service<Request<B>> for OutboundHeaders<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        self.write(&mut request);
        self.inner.call(request)
    }
}

impl<S> OutboundHeaders<S> {
    fn write<B>(&self, request: &mut Request<B>) {
        let now = Instant::now();
        let extensions = request.extensions();
        let hints = OutboundHints::of(extensions);
        let own = extensions.get::<Deadline>().copied();
        let ends = [
            current::attempt_ends(now),
            hints.block().map(|block| block.ends),
            own.map(Deadline::instant),
            hints.deadline().map(Deadline::instant),
        ];
        let left = ends.into_iter().flatten().min().map(|ends| ends.saturating_duration_since(now));
        let attempt = attempt_number(extensions).or(hints.block().map(|block| block.attempt));
        let before = hints.caller_attempt().map_or(0, |attempt| attempt - 1);
        let attempt = attempt.map(|attempt| attempt.saturating_add(before));
        for header in self.headers.iter() {
            let said = header.read(request.headers()).filter_map(|said| match said {
                Said::Left(left) => Some(left),
                Said::Attempt(_) => None,
            });
            let left = left.into_iter().chain(said).min();
            match header.write(left, attempt) {
                Some(value) => drop(request.headers_mut().insert(header.name(), value)),
                // A first attempt may have nothing to say; what is there is another hop's.
                None if attempt.is_some() => drop(request.headers_mut().remove(header.name())),
                None => {}
            }
        }
    }
}
