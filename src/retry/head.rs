//! What a call keeps of its request's head, to send it again.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header};

use super::{course::RequestLine, reading::Reading};

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

/// A header in the pack: the lengths of its name and value (the lowest bit says whether it is sensitive), name, value.
const NAME_LENGTH: usize = size_of::<u16>();
const LENGTHS: usize = NAME_LENGTH + size_of::<u32>();
const FLAG: usize = 1;

impl Head {
    pub(super) fn keep<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let size: usize = headers.iter().map(|(name, value)| LENGTHS + name.as_str().len() + value.len()).sum();
        let mut pack: Arc<[AtomicU8]> = (0..FLAG + size).map(|_| AtomicU8::new(0)).collect();
        // As `RequestHead::is_upgrade` has it, in the one pass over the headers that is made anyway.
        let mut upgrade = request.method() == Method::CONNECT;
        // Nobody else has it yet.
        let mut rest = Arc::get_mut(&mut pack).and_then(|pack| pack.get_mut(FLAG..)).unwrap_or_default();
        for (name, value) in headers {
            upgrade |= name == header::UPGRADE;
            // Lengths fit: `http` allows names below 2^16 bytes, and a value of 2^31 bytes is not a header.
            let value_length = (value.len() as u32) << 1 | u32::from(value.is_sensitive());
            let name = name.as_str();
            let [n0, n1] = (name.len() as u16).to_le_bytes();
            let [v0, v1, v2, v3] = value_length.to_le_bytes();
            // An array of its own length: one store, where `put` is a call for each.
            let Some((lengths, after)) = rest.split_first_chunk_mut::<LENGTHS>() else { break };
            *lengths = [n0, n1, v0, v1, v2, v3].map(AtomicU8::new);
            rest = put(after, name.as_bytes());
            rest = put(rest, value.as_bytes());
        }
        Head {
            packed: Packed::Once(pack),
            // Fits: a header map holds at most 2^15.
            names: headers.keys_len() as u32,
            version: request.version(),
            extensions: (!request.extensions().is_empty()).then(|| request.extensions().clone()),
            upgrade,
        }
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
        while let Some(&[n0, n1, v0, v1, v2, v3]) = pack[at..].first_chunk::<LENGTHS>() {
            let name_length = usize::from(u16::from_le_bytes([n0, n1]));
            let value_length = u32::from_le_bytes([v0, v1, v2, v3]);
            let name_ends = at + LENGTHS + name_length;
            let value_ends = name_ends + (value_length >> 1) as usize;
            let name = HeaderName::from_bytes(&pack[at + LENGTHS..name_ends]);
            let value = HeaderValue::from_maybe_shared(pack.slice(name_ends..value_ends));
            // Both came out of a header map, so both are valid.
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(value_length & 1 == 1);
                headers.append(name, value);
            }
            at = value_ends;
        }
        headers
    }
}

/// Writes these bytes and returns what is left to write to. Compiles to a copy: nobody else sees the atomics yet.
fn put<'a>(pack: &'a mut [AtomicU8], bytes: &[u8]) -> &'a mut [AtomicU8] {
    let (here, rest) = pack.split_at_mut(bytes.len().min(pack.len()));
    for (place, byte) in here.iter_mut().zip(bytes) {
        *place.get_mut() = *byte;
    }
    rest
}

#[cfg(test)]
mod tests;
