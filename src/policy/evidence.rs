//! Evidence that repeating a request is safe (S7).

use std::{fmt, sync::Arc};

use http::{HeaderName, HeaderValue, Method, header};

/// Why a request that may have had an effect may nevertheless be sent again.
///
/// Not needed where the request provably never reached processing (see [`Reach`](super::Reach)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// The method is idempotent: `GET`, `HEAD`, `OPTIONS`, `TRACE`, `PUT`, `DELETE` (RFC 9110, section 9.2.2), or
    /// `QUERY`. Methods are case-sensitive; an extension method is never taken for idempotent.
    Method,
    /// The request carries an idempotency key, by which the server recognises a repeat.
    Key,
    /// The request carries a precondition that the policy names, in a header (such as `If-Match` with an `ETag`, or
    /// `If-None-Match: *`) or in its query: a repeat fails instead of taking effect twice. `If-Match: *` and
    /// `If-None-Match` with an `ETag` are none, since they hold for the repeat as well.
    Precondition,
    /// Somebody wrote down why repeating this operation is safe, or why duplicates are accepted.
    Stated(Arc<str>),
}

impl Evidence {
    /// Whether RFC 9110 (or the QUERY method's specification) calls this method idempotent.
    pub(crate) fn by_method(method: &Method) -> bool {
        method.is_idempotent() || method.as_str() == "QUERY"
    }

    /// Whether this header is a condition that no longer holds once the request has taken effect (RFC 9110, section 13.1).
    /// `If-Match: *` holds while there is anything, and `If-None-Match` with a tag while there is anything else: a repeat
    /// would take effect again.
    pub(crate) fn by_condition(name: &HeaderName, value: Option<&HeaderValue>) -> bool {
        let value = value.map(|value| value.as_bytes().trim_ascii()).unwrap_or_default();
        match *name {
            header::IF_MATCH => !value.is_empty() && value != b"*",
            header::IF_NONE_MATCH => value == b"*",
            _ => !value.is_empty(),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Method => f.write_str("the method is idempotent"),
            Evidence::Key => f.write_str("an idempotency key"),
            Evidence::Precondition => f.write_str("a precondition"),
            Evidence::Stated(reason) => write!(f, "stated: {reason}"),
        }
    }
}
