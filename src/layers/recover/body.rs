//! The body of an answer, or of one instead.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;

pin_project! {
    /// The body of an answer, or of one instead, which is made of bytes (`RecoverBody::from`).
    pub struct RecoverBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Inner { #[pin] body: B },
        Instead { body: Full<Bytes> },
    }
}

impl<B> RecoverBody<B> {
    /// A body of the inner service.
    pub const fn inner(body: B) -> Self {
        RecoverBody { kind: Kind::Inner { body } }
    }

    /// No body.
    pub fn empty() -> Self {
        Bytes::new().into()
    }
}

impl<B> From<Bytes> for RecoverBody<B> {
    fn from(body: Bytes) -> Self {
        RecoverBody { kind: Kind::Instead { body: Full::new(body) } }
    }
}

impl<B> From<String> for RecoverBody<B> {
    fn from(body: String) -> Self {
        Bytes::from(body).into()
    }
}

impl<B> From<&'static str> for RecoverBody<B> {
    fn from(body: &'static str) -> Self {
        Bytes::from(body).into()
    }
}

impl<B> fmt::Debug for RecoverBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instead = matches!(self.kind, Kind::Instead { .. });
        f.debug_struct("RecoverBody").field("instead", &instead).finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes>> Body for RecoverBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Inner { body } => body.poll_frame(cx),
            KindProj::Instead { body } => Pin::new(body).poll_frame(cx).map_err(|never: Infallible| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } => body.is_end_stream(),
            Kind::Instead { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } => body.size_hint(),
            Kind::Instead { body } => body.size_hint(),
        }
    }
}
