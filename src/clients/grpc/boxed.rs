//! An attempt's body as tonic's.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::RequestBody;
use crate::{AttemptBody, BoxError};

/// tonic's channel takes one type of body.
pub(super) fn boxed(body: AttemptBody<RequestBody>) -> tonic::body::Body {
    tonic::body::Body::new(Unasked { body, asked: Cell::new(false) })
}

pin_project! {
    // tonic asks a body whether it has ended when it boxes it. An attempt's body takes that for a look by somebody who may
    // send it, after which no error proves that it was never sent: so that one question is not passed on.
    struct Unasked {
        #[pin]
        body: AttemptBody<RequestBody>,
        asked: Cell<bool>,
    }
}

impl Body for Unasked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.asked.replace(true) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
