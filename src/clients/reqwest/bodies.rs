//! What reqwest is given to send, and what it answers.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, response::Parts};
use http_body::{Body, Frame, SizeHint};
use reqwest::{ResponseBuilderExt, Url};

use crate::{
    AnswerBody, AttemptBody, BoxError, Replay,
    retry::{another_host, reading::within_an_attempt},
};

/// An attempt's body in reqwest's hands.
///
/// reqwest's redirects measure it when they are given it, which is no sign that it was sent; hyper measures it on the
/// task of its connection, which is one.
pub(super) struct Upload<B: Body> {
    body: AttemptBody<B>,
}

impl<B: Replay<Data = Bytes> + Send + Sync + Unpin + 'static> Upload<B> {
    /// As reqwest's body. `alone`: no other request can follow it within the attempt.
    pub(super) fn wrap(body: AttemptBody<B>, alone: bool) -> reqwest::Body {
        if !alone {
            body.may_be_followed();
        }
        reqwest::Body::wrap(Upload { body })
    }
}

impl<B: Replay + Unpin> Body for Upload<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        if within_an_attempt() { self.body.has_ended() } else { self.body.is_end_stream() }
    }

    fn size_hint(&self) -> SizeHint {
        if within_an_attempt() { self.body.size() } else { self.body.size_hint() }
    }
}

/// Who was asked, to be compared with who answered where reqwest follows redirects.
pub(in crate::clients) struct Asked {
    host: Option<String>,
    /// `None`: that of its scheme, so that the way from `http` to `https` is to the same host.
    port: Option<u16>,
}

impl Asked {
    pub(in crate::clients) fn of(url: &Url) -> Self {
        Asked { host: url.host_str().map(str::to_owned), port: url.port() }
    }

    fn answered(&self, url: &Url) -> bool {
        self.host.as_deref() == url.host_str() && self.port == url.port()
    }
}

/// The body of an answer of an [`Adapter`](super::Adapter): reqwest's response itself, until somebody reads from it.
///
/// [`into_response`] takes it out again as it was.
pub struct ResponseBody {
    kind: Kind,
}

enum Kind {
    /// Without its headers and extensions, which are where they are looked for: in the `http::Response`.
    Whole(reqwest::Response),
    /// With the URL, which the body alone would not have.
    Read(reqwest::Body, Option<Url>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        self.kind.open();
        match &mut self.kind {
            Kind::Read(body, _) => Pin::new(body).poll_frame(cx),
            Kind::Whole(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(response) => response.content_length() == Some(0),
            Kind::Read(body, _) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(response) => response.content_length().map(SizeHint::with_exact).unwrap_or_default(),
            Kind::Read(body, _) => body.size_hint(),
        }
    }
}

impl Kind {
    fn open(&mut self) {
        if let Kind::Whole(_) = self {
            if let Kind::Whole(response) = mem::replace(self, Kind::Read(reqwest::Body::default(), None)) {
                let url = response.url().clone();
                *self = Kind::Read(Response::<reqwest::Body>::from(response).into_body(), Some(url));
            }
        }
    }
}

impl ResponseBody {
    fn url(&self) -> Option<Url> {
        match &self.kind {
            Kind::Whole(response) => Some(response.url().clone()),
            Kind::Read(_, url) => url.clone(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// reqwest's response as `http`'s.
pub(in crate::clients) fn incoming(mut whole: reqwest::Response, asked: Option<&Asked>) -> Response<ResponseBody> {
    let mut response = Response::new(());
    *response.status_mut() = whole.status();
    *response.version_mut() = whole.version();
    mem::swap(response.headers_mut(), whole.headers_mut());
    mem::swap(response.extensions_mut(), whole.extensions_mut());
    if asked.is_some_and(|asked| !asked.answered(whole.url())) {
        another_host::of_another_host(response.extensions_mut());
    }
    response.map(|()| ResponseBody { kind: Kind::Whole(whole) })
}

/// The answer of a retry layer over an [`Adapter`](super::Adapter) as reqwest's response: the very one that reqwest gave,
/// with headers and extensions as they are now. The status is the one that reqwest saw. Where a policy has looked into its
/// body, it is a response made anew, with the same URL and all of the body.
///
/// Where a layer wrapped the body, reqwest's own conversion is the way, which loses the URL:
/// `reqwest::Response::from(response.map(reqwest::Body::wrap))`.
pub fn into_response(response: Response<AnswerBody<ResponseBody>>) -> reqwest::Response {
    let (mut parts, body) = response.into_parts();
    match body.into_inner() {
        Ok(ResponseBody { kind: Kind::Whole(mut whole) }) => {
            mem::swap(whole.headers_mut(), &mut parts.headers);
            mem::swap(whole.extensions_mut(), &mut parts.extensions);
            whole
        }
        Ok(ResponseBody { kind: Kind::Read(body, url) }) => made_anew(parts, url, body),
        Err(looked_into) => {
            let url = looked_into.of_the_client().url();
            made_anew(parts, url, reqwest::Body::wrap(looked_into))
        }
    }
}

fn made_anew(mut parts: Parts, url: Option<Url>, body: reqwest::Body) -> reqwest::Response {
    if let Some(Ok(carrier)) = url.map(|url| Response::builder().url(url).body(())) {
        parts.extensions.extend(carrier.into_parts().0.extensions);
    }
    Response::from_parts(parts, body).into()
}
