//! A reqwest client with a policy.

use std::{fmt, future::poll_fn};

use bytes::Bytes;
use http::{Extensions, Method, Request, Response};
use http_body_util::Full;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    Adapter, RequestBuilder, ResponseBody,
    adapter::without_secrets,
    bodies::into_response,
    original::{in_memory, prepare},
};
use crate::{AnswerBody, Error, Policy, Replay, RetryLayer, StandardPolicy, retry::Retry};

/// A client that sends by this reqwest client and repeats by this policy.
///
/// reqwest retries by itself where HTTP/2 refuses a stream. Nothing of that is left under redial, but say so where the
/// client is built: `reqwest::Client::builder().retry(reqwest::retry::never())`.
pub fn client<P: Policy + Clone>(client: reqwest::Client, policy: P) -> Client<P> {
    Client { service: RetryLayer::new(policy).layer(Adapter::new(client)), whole: false }
}

/// reqwest's client, with a policy: made by [`client`].
///
/// Requests begin as with reqwest (`get`, `post`, …, `execute`) and end in a [`reqwest::Response`], in whose extensions
/// is the [`CallReport`](crate::CallReport) of a call that took more than one attempt or whose repeat was refused, or in
/// one [`redial::Error`](Error). Cheap to clone; clones share the connections, the budget and the hold.
#[derive(Clone)]
pub struct Client<P = StandardPolicy> {
    service: Retry<Adapter, P>,
    whole: bool,
}

impl<P: Policy + Clone> Client<P> {
    /// Hands bodies that are in memory (bytes, forms, JSON, none) to reqwest as they are, and not as a stream. Default:
    /// as a stream.
    ///
    /// reqwest can copy them then, so that it follows redirects that ask for the body again. What it costs: nothing
    /// proves any more that a request was never sent, so that a `POST` without a key is repeated for no fault at all; and
    /// reqwest's own retries can copy them too, so that they must be switched off
    /// (`.retry(reqwest::retry::never())`), or declared:
    /// [`elsewhere(Place::Client, "reqwest", 3)`](crate::policy::StandardPolicyBuilder::elsewhere), with which three
    /// attempts are nine requests and need a written reason
    /// ([`attempts_because`](crate::policy::StandardPolicyBuilder::attempts_because)).
    pub fn whole_bodies(mut self) -> Self {
        self.whole = true;
        self
    }

    /// States that an attempt is one request: see [`Adapter::one_request_per_attempt`].
    pub fn one_request_per_attempt(mut self) -> Self {
        let adapter = self.service.get_ref().clone();
        *self.service.get_mut() = adapter.one_request_per_attempt();
        self
    }

    /// Begins a `GET`.
    pub fn get(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::GET, url)
    }

    /// Begins a `HEAD`.
    pub fn head(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::HEAD, url)
    }

    /// Begins a `POST`.
    pub fn post(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::POST, url)
    }

    /// Begins a `PUT`.
    pub fn put(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::PUT, url)
    }

    /// Begins a `PATCH`.
    pub fn patch(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::PATCH, url)
    }

    /// Begins a `DELETE`.
    pub fn delete(&self, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        self.request(Method::DELETE, url)
    }

    /// Begins a request of this method. A URL that cannot be read is an error when it is sent.
    pub fn request(&self, method: Method, url: impl reqwest::IntoUrl) -> RequestBuilder<P> {
        RequestBuilder::new(self.clone(), self.service.get_ref().client().request(method, url))
    }

    /// Sends a request that is built already.
    ///
    /// # Errors
    ///
    /// [`Error`], where there was no answer in the end.
    pub async fn execute(&self, request: reqwest::Request) -> Result<reqwest::Response, Error> {
        self.call(request, Extensions::new()).await
    }

    pub(super) async fn call(
        &self,
        request: reqwest::Request,
        extensions: Extensions,
    ) -> Result<reqwest::Response, Error> {
        let is_in_memory = request.body().is_none_or(|body| body.as_bytes().is_some());
        let (request, original) = prepare(request, extensions, self.whole).map_err(refused)?;
        let mut service = self.service.clone();
        service.get_mut().sends(original);
        let (head, mut body) = request.into_parts();
        // Known to be whole and not to fail: needs no tape.
        let answer = match is_in_memory.then(|| in_memory(&mut body)).flatten() {
            Some(bytes) => sent(service, Request::from_parts(head, Full::new(bytes))).await,
            None => sent(service, Request::from_parts(head, body)).await,
        };
        answer.map(into_response)
    }
}

async fn sent<P, B>(
    mut service: Retry<Adapter, P>,
    request: Request<B>,
) -> Result<Response<AnswerBody<ResponseBody>>, Error>
where
    P: Policy + Clone,
    B: Replay<Data = Bytes> + Send + Sync + Unpin + 'static,
{
    poll_fn(|cx| Service::<Request<B>>::poll_ready(&mut service, cx)).await?;
    service.call(request).await
}

/// A request that could not be built, and so was not sent.
pub(super) fn refused(error: reqwest::Error) -> Error {
    Error::of_inner(without_secrets(error).into())
}

impl<P> fmt::Debug for Client<P> {
    // The client's default headers may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("whole_bodies", &self.whole).finish_non_exhaustive()
    }
}
