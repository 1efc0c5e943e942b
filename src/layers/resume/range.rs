//! `Content-Range` and `ETag`, as RFC 9110 has them.

use http::{HeaderMap, HeaderValue, header};

/// `bytes 0-99/500`, or `bytes 0-99/*` (section 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) first: u64,
    /// The last byte's place plus one.
    pub(super) end: u64,
    /// How long the whole is, where that is said.
    pub(super) total: Option<u64>,
}

impl ContentRange {
    /// `None` where there is none, several, or one that says nothing or contradicts itself.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(one(headers, header::CONTENT_RANGE)?.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (unit, range) = text.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (places, total) = range.split_once('/')?;
        let (first, last) = places.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let total = match total {
            "*" => None,
            total => Some(number(total)?),
        };
        let sound = first <= last && total.is_none_or(|total| last < total);
        let end = last.checked_add(1)?;
        sound.then_some(ContentRange { first, end, total })
    }
}

/// Digits alone: `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The `ETag`, if it is a strong one: two of them that are the same bytes are of the same content (section 8.8.3).
pub(super) fn strong_etag(headers: &HeaderMap) -> Option<&HeaderValue> {
    let etag = one(headers, header::ETAG)?;
    let inner = etag.as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'"')).then_some(etag)
}

/// The only line of this name.
pub(super) fn one(headers: &HeaderMap, name: http::HeaderName) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    lines.next().filter(|_| lines.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let range = |first, end, total| Some(ContentRange { first, end, total });
        let cases = [
            ("bytes 0-0/1", range(0, 1, Some(1))),
            ("bytes 3-9/10", range(3, 10, Some(10))),
            ("BYTES 3-9/*", range(3, 10, None)),
            (" bytes 3-9/20 ", range(3, 10, Some(20))),
            ("bytes 0-18446744073709551614/*", range(0, u64::MAX, None)),
            // Beyond what can be counted.
            ("bytes 0-18446744073709551615/*", None),
            ("bytes 0-99999999999999999999999/*", None),
            // Contradictions.
            ("bytes 4-3/10", None),
            ("bytes 3-10/10", None),
            // None that is satisfied, and none at all.
            ("bytes */10", None),
            ("bytes 3-/10", None),
            ("bytes -3/10", None),
            ("bytes +3-9/10", None),
            ("bytes 3-9", None),
            ("bytes 3-9/", None),
            ("bytes 3 - 9/10", None),
            ("bytes=3-9/10", None),
            ("items 3-9/10", None),
            ("bytes", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(ContentRange::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn several_lines_are_none() {
        let mut headers = HeaderMap::new();
        headers.append("content-range", HeaderValue::from_static("bytes 3-9/10"));
        assert!(ContentRange::of(&headers).is_some());
        headers.append("content-range", HeaderValue::from_static("bytes 3-9/10"));
        assert_eq!(ContentRange::of(&headers), None);
    }

    #[test]
    fn etags() {
        for (text, strong) in [
            ("\"a\"", true),
            ("\"\"", true),
            ("W/\"a\"", false),
            ("w/\"a\"", false),
            ("a", false),
            ("\"a", false),
            ("\"", false),
            ("\"a\", \"b\"", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(text))]);
            assert_eq!(strong_etag(&headers).is_some(), strong, "{text}");
        }
    }
}
