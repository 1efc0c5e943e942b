//! A request that was reqwest's to begin with, and what `http`'s has no place for.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Extensions, Request};
use http_body::Body;
use reqwest::Url;

use super::{adapter::without_secrets, bodies::Upload};
use crate::{AttemptBody, Replay};

/// What reqwest's request said, beside what `http`'s holds of it.
///
/// The URL is kept, and not read again from the URI: that costs a twentieth of the whole call, and a fragment
/// would be lost. It is never sent, and still there for a middleware below and in the answer's URL.
pub(in crate::clients) struct Original {
    url: Url,
    timeout: Option<Duration>,
    /// The body is in memory, and may be handed over as it is.
    as_it_is: bool,
}

/// reqwest's request as `http`'s, with these extensions beside its own. `whole`: a body that is in memory will be handed
/// over as it is.
pub(in crate::clients) fn prepare(
    request: reqwest::Request,
    extensions: Extensions,
    whole: bool,
) -> Result<(Request<reqwest::Body>, Original), reqwest::Error> {
    let as_it_is = whole && request.body().is_none_or(|body| body.as_bytes().is_some());
    let original = Original { url: request.url().clone(), timeout: request.timeout().copied(), as_it_is };
    let mut request = Request::try_from(request).map_err(without_secrets)?;
    request.extensions_mut().extend(extensions);
    Ok((request, original))
}

impl Original {
    /// An attempt as reqwest sends it. Of the extensions it would read the timeout alone.
    pub(in crate::clients) fn attempt<B>(&self, request: Request<AttemptBody<B>>, alone: bool) -> reqwest::Request
    where
        B: Replay<Data = Bytes> + Send + Sync + Unpin + 'static,
    {
        let (parts, mut body) = request.into_parts();
        // Under the eyes of the attempt: its errors prove nothing then.
        let at_once = if self.as_it_is { in_memory(&mut body) } else { None };
        let mut request = reqwest::Request::new(parts.method, self.url.clone());
        *request.headers_mut() = parts.headers;
        *request.version_mut() = parts.version;
        if self.timeout.is_some() {
            *request.timeout_mut() = self.timeout;
        }
        *request.body_mut() = Some(match at_once {
            Some(bytes) => bytes.into(),
            None => Upload::wrap(body, alone),
        });
        request
    }
}

/// The whole of a body whose only frame is in memory.
pub(super) fn in_memory<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Bytes> {
    match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(None) => Some(Bytes::new()),
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        Poll::Ready(Some(Err(_))) | Poll::Pending => None,
    }
}
