//! reqwest's request builder, whose request goes through the policy.

use std::{fmt, time::Duration};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Version};
use serde::Serialize;

use super::{Client, client::refused};
use crate::{Error, Policy, StandardPolicy};

/// A request in the making; [`send`](Self::send) ends it. Made by [`Client`].
///
/// Its methods are those of [`reqwest::RequestBuilder`]; [`with`](Self::with) reaches the ones that are not here.
#[must_use = "a request is not sent until `send` is called"]
pub struct RequestBuilder<P = StandardPolicy> {
    client: Client<P>,
    builder: reqwest::RequestBuilder,
    extensions: Extensions,
}

impl<P: Policy + Clone> RequestBuilder<P> {
    pub(super) fn new(client: Client<P>, builder: reqwest::RequestBuilder) -> Self {
        RequestBuilder { client, builder, extensions: Extensions::new() }
    }

    /// Something of reqwest's builder that is not here, such as `.with(|request| request.multipart(form))`.
    pub fn with(mut self, change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// Adds a header.
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.with(|builder| builder.header(name, value))
    }

    /// Sets these headers, in place of those of the same names.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.with(|builder| builder.headers(headers))
    }

    /// HTTP basic authentication.
    pub fn basic_auth<U: fmt::Display, W: fmt::Display>(self, username: U, password: Option<W>) -> Self {
        self.with(|builder| builder.basic_auth(username, password))
    }

    /// HTTP bearer authentication.
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|builder| builder.bearer_auth(token))
    }

    /// The body: bytes and text are repeatable at any size, a stream up to 64 KiB; a longer one is sent once.
    pub fn body(self, body: impl Into<reqwest::Body>) -> Self {
        self.with(|builder| builder.body(body))
    }

    /// A JSON body.
    pub fn json<T: Serialize + ?Sized>(self, json: &T) -> Self {
        self.with(|builder| builder.json(json))
    }

    /// A body of form fields.
    pub fn form<T: Serialize + ?Sized>(self, form: &T) -> Self {
        self.with(|builder| builder.form(form))
    }

    /// Adds to the URL's query.
    pub fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        self.with(|builder| builder.query(query))
    }

    /// reqwest's own timeout: for each attempt, its answer's body included. The policy's attempt timeout, which ends with
    /// the answer's head, holds as well: whichever is shorter.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|builder| builder.timeout(timeout))
    }

    /// The version of HTTP.
    pub fn version(self, version: Version) -> Self {
        self.with(|builder| builder.version(version))
    }

    /// Something for the policy or a layer: [`RequestOptions`](crate::RequestOptions), a
    /// [`Deadline`](crate::Deadline), or what a policy of your own looks for.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.extensions.insert(extension);
        self
    }

    /// Sends it, as often as the policy says.
    ///
    /// # Errors
    ///
    /// [`Error`], where there was no answer in the end, or where the request could not be built
    /// (`find_source::<reqwest::Error>()` says why). An answer of 4xx or 5xx is an answer.
    pub async fn send(self) -> Result<reqwest::Response, Error> {
        let request = self.builder.build().map_err(refused)?;
        self.client.call(request, self.extensions).await
    }
}

impl<P> fmt::Debug for RequestBuilder<P> {
    // URL and headers may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder").finish_non_exhaustive()
    }
}
