//! What is kept of a request, to ask for the rest of its answer.

use http::{HeaderValue, Method, Request, header, request::Parts};
use http_body::Body;

use super::range::one;
use crate::{Deadline, OutboundHints};

/// The head of a request whose answer may be resumed.
pub(super) struct Asked {
    pub(super) head: Parts,
    /// Whichever is the earliest: the request's own, or that of whoever is being served.
    pub(super) deadline: Option<Deadline>,
}

impl Asked {
    /// Keeps a copy of the head, if the answer may be resumed: a `GET` without a body, for all or for one range.
    pub(super) fn keep<B: Body>(request: Request<B>) -> (Option<Self>, Request<B>) {
        let headers = request.headers();
        let empty = request.body().is_end_stream() || request.body().size_hint().exact() == Some(0);
        let one_range = !headers.contains_key(header::RANGE) || one(headers, header::RANGE).is_some();
        let upgrade = headers.contains_key(header::UPGRADE);
        if request.method() != Method::GET || !empty || !one_range || upgrade {
            return (None, request);
        }
        let (head, body) = request.into_parts();
        let mut kept = head.clone();
        // What these would compare with is the answer that has come already.
        for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
            kept.headers.remove(name);
        }
        let own = kept.extensions.get::<Deadline>().copied();
        let deadline = [own, OutboundHints::of(&kept.extensions).deadline()].into_iter().flatten().min();
        (Some(Asked { head: kept, deadline }), Request::from_parts(head, body))
    }

    /// Whether the caller asked for a part.
    pub(super) fn for_a_range(&self) -> bool {
        self.head.headers.contains_key(header::RANGE)
    }

    /// Asks for these bytes, the last one included, if the content is still the one with this `ETag`.
    pub(super) fn again<B: Default>(&self, first: u64, last: u64, etag: &HeaderValue) -> Request<B> {
        let mut head = self.head.clone();
        // Digits and a hyphen may always stand in a header.
        if let Ok(range) = HeaderValue::try_from(format!("bytes={first}-{last}")) {
            head.headers.insert(header::RANGE, range);
        }
        head.headers.insert(header::IF_RANGE, etag.clone());
        Request::from_parts(head, B::default())
    }
}
