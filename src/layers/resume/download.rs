//! One download: what it is, how far it has come, and what its rest must be.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Body;

use super::{
    given_up::Why,
    range::{ContentRange, one, strong_etag},
};

/// What is known of the content since its first answer.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) etag: HeaderValue,
    /// The first byte that is still missing.
    pub(super) next: u64,
    /// Where it ends: the last byte's place plus one.
    pub(super) end: u64,
    /// How long the whole is, of which this may be a range.
    total: Option<u64>,
}

impl Download {
    /// What the first answer begins; or why it could not be resumed.
    pub(super) fn begin<RB: Body>(response: &Response<RB>, asked_for_a_range: bool) -> Result<Self, Why> {
        let headers = response.headers();
        let length = response.body().size_hint().exact();
        let (next, end, total) = match response.status() {
            StatusCode::OK => {
                let length = length.ok_or(Why::UnknownLength)?;
                (0, length, Some(length))
            }
            StatusCode::PARTIAL_CONTENT => {
                let range = one_range(headers)?;
                if !asked_for_a_range {
                    return Err(Why::OtherRange);
                }
                // Without a length of its own it may have been decoded on its way here, and be no longer what was sent.
                fits(&range, Some(length.ok_or(Why::UnknownLength)?))?;
                (range.first, range.end, range.total)
            }
            status => return Err(Why::Status(status)),
        };
        plain(headers)?;
        let etag = strong_etag(headers).ok_or(Why::NoStrongEtag)?.clone();
        Ok(Download { etag, next, end, total })
    }

    /// Whether this answer is what is missing, and all of it.
    pub(super) fn goes_on_with<RB: Body>(&self, response: &Response<RB>) -> Result<(), Why> {
        let headers = response.headers();
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err(Why::Changed),
            status => return Err(Why::Status(status)),
        }
        plain(headers)?;
        // A server that ignores `If-Range` sends the range of whatever it has now.
        if strong_etag(headers) != Some(&self.etag) {
            return Err(Why::OtherEtag);
        }
        let range = one_range(headers)?;
        let same_total = match (self.total, range.total) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        if (range.first, range.end) != (self.next, self.end) || !same_total {
            return Err(Why::OtherRange);
        }
        fits(&range, response.body().size_hint().exact())
    }

    /// So many bytes have come. `Err`: more than there are.
    pub(super) fn take(&mut self, size: u64) -> Result<(), Why> {
        if size > self.end - self.next {
            return Err(Why::TooLong);
        }
        self.next += size;
        Ok(())
    }

    pub(super) fn missing(&self) -> u64 {
        self.end - self.next
    }
}

/// Neither encoded nor in several parts.
fn plain(headers: &HeaderMap) -> Result<(), Why> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    if !encodings.iter().all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Why::Encoded);
    }
    Ok(())
}

fn one_range(headers: &HeaderMap) -> Result<ContentRange, Why> {
    const PARTS: &[u8] = b"multipart/byteranges";
    let kind = one(headers, header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if kind.get(..PARTS.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(PARTS)) {
        return Err(Why::SeveralParts);
    }
    ContentRange::of(headers).ok_or(Why::OtherRange)
}

/// The body must not be longer or shorter than its range.
fn fits(range: &ContentRange, length: Option<u64>) -> Result<(), Why> {
    match length {
        Some(length) if length != range.end - range.first => Err(Why::OtherRange),
        _ => Ok(()),
    }
}
