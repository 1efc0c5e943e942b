//! What a call keeps of its request's head, to send it again.

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};

/// A request's head, packed into one allocation of its exact size.
///
/// Cloning a `HeaderMap` allocates two tables and promotes every owned value; most calls succeed at once and would
/// have done it for nothing. The pack is cheap to make and to drop; a map is rebuilt from it only when a retry
/// happens. No pooled buffers: they would keep credentials after the call.
pub(super) struct Head {
    packed: Packed,
    headers: usize,
    pub(super) method: Method,
    pub(super) uri: Uri,
    version: Version,
    /// The caller's own, as they were before anything of ours went in. Boxed inside `http`: a pointer here.
    extensions: Option<Extensions>,
    pub(super) upgrade: bool,
}

enum Packed {
    /// Kept, not used yet.
    Once(Vec<u8>),
    /// Sliced, without copying, into the values of each later attempt.
    Shared(Bytes),
}

/// A header in the pack: the lengths of its name and value (the lowest bit says whether it is sensitive), name, value.
const NAME_LENGTH: usize = size_of::<u16>();
const LENGTHS: usize = NAME_LENGTH + size_of::<u32>();

impl Head {
    pub(super) fn keep<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let size = headers.iter().map(|(name, value)| LENGTHS + name.as_str().len() + value.len()).sum();
        let mut pack = Vec::with_capacity(size);
        let mut upgrade = request.method() == Method::CONNECT;
        for (name, value) in headers {
            upgrade |= name == header::UPGRADE;
            // Lengths fit: `http` allows names below 2^16 bytes, and a value of 2^31 bytes is not a header.
            let value_length = (value.len() as u32) << 1 | u32::from(value.is_sensitive());
            pack.extend_from_slice(&(name.as_str().len() as u16).to_le_bytes());
            pack.extend_from_slice(&value_length.to_le_bytes());
            pack.extend_from_slice(name.as_str().as_bytes());
            pack.extend_from_slice(value.as_bytes());
        }
        Head {
            packed: Packed::Once(pack),
            headers: headers.len(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            extensions: (!request.extensions().is_empty()).then(|| request.extensions().clone()),
            upgrade,
        }
    }

    /// The same head again, with this body.
    pub(super) fn rebuild<B>(&mut self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
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
                let shared = Bytes::from(std::mem::take(pack));
                self.packed = Packed::Shared(shared.clone());
                shared
            }
        };
        let mut headers = HeaderMap::with_capacity(self.headers);
        let mut rest = pack;
        while rest.len() >= LENGTHS {
            let lengths = rest.split_to(LENGTHS);
            let name_length = u16::from_le_bytes([lengths[0], lengths[1]]);
            let value_length = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]);
            let name = HeaderName::from_bytes(&rest.split_to(name_length.into()));
            let value = HeaderValue::from_maybe_shared(rest.split_to((value_length >> 1) as usize));
            // Both came out of a header map, so both are valid.
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(value_length & 1 == 1);
                headers.append(name, value);
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests;
