//! What reqwest is given to send, and what it answers.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};

use crate::{AttemptBody, BoxError, Replay, retry::reading::within_an_attempt};

/// An attempt's body in reqwest's hands.
///
/// reqwest's redirects measure it when they are given it, which is no sign that it was sent; hyper measures it on the
/// task of its connection, which is one.
pub(super) struct Upload<B: Body> {
    body: AttemptBody<B>,
}

impl<B: Body> Upload<B> {
    pub(super) const fn new(body: AttemptBody<B>) -> Self {
        Upload { body }
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

/// The body of an answer of an [`Adapter`](super::Adapter): reqwest's response itself, until somebody reads from it.
///
/// [`into_response`] takes it out again as it was.
pub struct ResponseBody {
    kind: Kind,
}

enum Kind {
    /// Without its headers and extensions, which are where they are looked for: in the `http::Response`.
    Whole(reqwest::Response),
    Read(reqwest::Body),
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
            Kind::Read(body) => Pin::new(body).poll_frame(cx),
            Kind::Whole(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(response) => response.content_length() == Some(0),
            Kind::Read(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(response) => response.content_length().map(SizeHint::with_exact).unwrap_or_default(),
            Kind::Read(body) => body.size_hint(),
        }
    }
}

impl Kind {
    fn open(&mut self) {
        if let Kind::Whole(_) = self {
            if let Kind::Whole(response) = mem::replace(self, Kind::Read(reqwest::Body::default())) {
                *self = Kind::Read(Response::<reqwest::Body>::from(response).into_body());
            }
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

/// reqwest's response as `http`'s.
pub(in crate::clients) fn incoming(mut whole: reqwest::Response) -> Response<ResponseBody> {
    let mut response = Response::new(());
    *response.status_mut() = whole.status();
    *response.version_mut() = whole.version();
    mem::swap(response.headers_mut(), whole.headers_mut());
    mem::swap(response.extensions_mut(), whole.extensions_mut());
    response.map(|()| ResponseBody { kind: Kind::Whole(whole) })
}

/// The answer of an [`Adapter`](super::Adapter) as reqwest's response: the very one that reqwest gave, its URL
/// included, with headers and extensions as they are now. The status is the one that reqwest saw.
///
/// Where a layer wrapped the body, reqwest's own conversion is the way, which loses the URL:
/// `reqwest::Response::from(response.map(reqwest::Body::wrap))`.
pub fn into_response(response: Response<ResponseBody>) -> reqwest::Response {
    let (mut parts, body) = response.into_parts();
    match body.kind {
        Kind::Whole(mut whole) => {
            mem::swap(whole.headers_mut(), &mut parts.headers);
            mem::swap(whole.extensions_mut(), &mut parts.extensions);
            whole
        }
        Kind::Read(body) => Response::from_parts(parts, body).into(),
    }
}
