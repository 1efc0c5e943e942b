//! What a call keeps of its request's head, to send it again.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};

use super::{course::RequestLine, promise, reading::Reading};

/// A request's head, packed into one allocation of its exact size.
///
/// Cloning a `HeaderMap` allocates two tables and promotes every owned value; most calls succeed at once and would
/// have done it for nothing. The pack is cheap to make and to drop; a map is rebuilt from it only when a retry
/// happens. No pooled buffers: they would keep credentials after the call.
pub(super) struct Head {
    packed: Packed,
    /// How many names there are; of values there may be far more.
    names: u32,
    version: Version,
    /// The caller's own, as they were before anything of ours went in. Boxed inside `http`: a pointer here.
    extensions: Option<Extensions>,
    pub(super) upgrade: bool,
}

enum Packed {
    /// Kept, not used yet. The first byte holds the flags that the first attempt's body sets ([`Reading`]), which would
    /// otherwise need an allocation of its own: hence the atomics, and the `Arc`.
    Once(Arc<[AtomicU8]>),
    /// Sliced, without copying, into the values of each later attempt.
    Shared(Bytes),
}

/// A header in the pack: the lengths of its value and name and whether it is sensitive (one bit), name, value.
const LENGTHS: usize = size_of::<u64>();
const FLAG: usize = 1;

impl Head {
    /// Beside it what the request says of its body's length.
    pub(super) fn keep<B>(request: &Request<B>) -> (Self, Option<u64>) {
        let headers = request.headers();
        let (pack, noticed) = pack(headers);
        let head = Head {
            packed: Packed::Once(pack),
            // Fits: a header map holds at most 2^15.
            names: headers.keys_len() as u32,
            version: request.version(),
            extensions: (!request.extensions().is_empty()).then(|| request.extensions().clone()),
            // As `RequestHead::is_upgrade` has it.
            upgrade: noticed.upgrade || request.method() == Method::CONNECT,
        };
        (head, noticed.content_length.and_then(promise::content_length))
    }

    /// The flags for the body of the first attempt.
    pub(super) fn reading(&self) -> Reading {
        match &self.packed {
            Packed::Once(pack) => Reading::first_of(Arc::clone(pack)),
            Packed::Shared(_) => Reading::new(),
        }
    }

    /// The same head again, with this line and body.
    pub(super) fn rebuild<B>(&mut self, line: &RequestLine, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = line.method.clone();
        *request.uri_mut() = line.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.unpack();
        if let Some(extensions) = &self.extensions {
            *request.extensions_mut() = extensions.clone();
        }
        request
    }

    fn unpack(&mut self) -> HeaderMap {
        let pack = match &mut self.packed {
            Packed::Shared(pack) => pack.clone(),
            Packed::Once(pack) => {
                let bytes = pack.iter().skip(FLAG).map(|byte| byte.load(Ordering::Relaxed));
                let shared = Bytes::from(bytes.collect::<Vec<u8>>());
                self.packed = Packed::Shared(shared.clone());
                shared
            }
        };
        let mut headers = HeaderMap::try_with_capacity(self.names as usize).unwrap_or_default();
        let mut at = 0;
        while let Some(&lengths) = pack[at..].first_chunk::<LENGTHS>() {
            let lengths = u64::from_le_bytes(lengths);
            let name_length = usize::from((lengths >> 1) as u16);
            let name_ends = at + LENGTHS + name_length;
            let value_ends = name_ends + (lengths >> 17) as usize;
            let name = HeaderName::from_bytes(&pack[at + LENGTHS..name_ends]);
            let value = HeaderValue::from_maybe_shared(pack.slice(name_ends..value_ends));
            // Both came out of a header map, so both are valid.
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(lengths & 1 == 1);
                headers.append(name, value);
            }
            at = value_ends;
        }
        headers
    }
}

/// Nearly every head fits into this many bytes.
const SMALL: usize = 1024;

/// What is noticed in the one pass over the headers that is made anyway.
#[derive(Default)]
struct Noticed<'a> {
    upgrade: bool,
    /// The first one.
    content_length: Option<&'a HeaderValue>,
}

/// One allocation of the exact size. The size is known only once all has been written, so that is done elsewhere.
fn pack(headers: &HeaderMap) -> (Arc<[AtomicU8]>, Noticed<'_>) {
    let (mut small, mut large, mut noticed) = ([0; SMALL], Vec::new(), Noticed::default());
    let packed = match write(headers, &mut small, &mut noticed) {
        Some(length) => &small[..length],
        None => {
            let size: usize = headers.iter().map(|(name, value)| LENGTHS + name.as_str().len() + value.len()).sum();
            large.resize(FLAG + size, 0);
            write(headers, &mut large, &mut noticed);
            &large
        }
    };
    (packed.iter().map(|byte| AtomicU8::new(*byte)).collect(), noticed)
}

/// Writes the headers here, and says how much they took; `None`: more than there is room for.
fn write<'a>(headers: &'a HeaderMap, place: &mut [u8], noticed: &mut Noticed<'a>) -> Option<usize> {
    let size = place.len();
    let mut rest = place.get_mut(FLAG..)?;
    for (name, value) in headers {
        match *name {
            header::UPGRADE => noticed.upgrade = true,
            header::CONTENT_LENGTH => noticed.content_length = noticed.content_length.or(Some(value)),
            _ => {}
        }
        let (name, sensitive, value) = (name.as_str().as_bytes(), value.is_sensitive(), value.as_bytes());
        let (lengths, after) = rest.split_first_chunk_mut()?;
        let (name_place, after) = after.split_at_mut_checked(name.len())?;
        let (value_place, after) = after.split_at_mut_checked(value.len())?;
        // Lengths fit: `http` allows names below 2^16 bytes.
        *lengths = ((value.len() as u64) << 17 | (name.len() as u64) << 1 | u64::from(sensitive)).to_le_bytes();
        name_place.copy_from_slice(name);
        value_place.copy_from_slice(value);
        rest = after;
    }
    Some(size - rest.len())
}

#[cfg(test)]
mod tests;
