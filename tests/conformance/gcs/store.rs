//! What the testbench does where nothing fails: answers, and keeps what is uploaded
//! (<https://cloud.google.com/storage/docs/performing-resumable-uploads>).

use std::ops::Range;

use super::testbench::Head;

/// Of the one generation that each object here has.
pub const ETAG: &str = "\"CAE=\"";

/// The part of an object that a download asks for: all, or `Range: bytes=100-499`, unless its `If-Range` is of another
/// generation (<https://cloud.google.com/storage/docs/json_api/v1/objects/get>).
pub fn part(head: &Head, length: usize) -> Option<Range<usize>> {
    let range = head.header("range").filter(|_| head.header("if-range").is_none_or(|etag| etag == ETAG))?;
    let (first, last) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).expect("a range");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    Some(number(first)..length.min(number(last) + 1))
}

/// A request within the session of a resumable upload.
pub struct Upload {
    /// The bytes that it carries: from the first to before the end. None, where it asks for the state.
    pub first: usize,
    pub end: usize,
    total: usize,
}

impl Upload {
    /// `Content-Range: bytes 0-99/500`, or `bytes */500`.
    pub fn read(head: &Head) -> Option<Self> {
        let range = head.header("content-range").filter(|_| head.target.contains("upload_id="))?;
        let (bytes, total) = range.strip_prefix("bytes ").and_then(|range| range.split_once('/')).expect("a range");
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (first, end) = bytes.split_once('-').map_or((0, 0), |(first, last)| (number(first), number(last) + 1));
        Some(Upload { first, end, total: number(total) })
    }

    /// Bytes that are there already are not written again.
    pub fn store(&self, stored: &mut Vec<u8>, data: &[u8]) {
        assert!(self.first <= stored.len(), "a gap before byte {}", self.first);
        stored.extend(data.iter().skip(stored.len() - self.first));
    }
}

/// Status and further headers of the answer to a request that succeeds.
pub fn succeed(head: &Head, upload: Option<&Upload>, body: &[u8], stored: &mut Vec<u8>) -> (u16, String) {
    if let Some(upload) = upload {
        upload.store(stored, body);
        return match stored.len() {
            all if all == upload.total => (200, String::new()),
            0 => (308, String::new()),
            some => (308, format!("range: bytes=0-{}\r\n", some - 1)),
        };
    }
    if head.target.contains("uploadType=resumable") {
        let host = head.header("host").expect("a host");
        return (200, format!("location: http://{host}{}&upload_id=1\r\n", head.target));
    }
    (200, String::new())
}
