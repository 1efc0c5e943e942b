//! What a call keeps of its request's head, to send it again.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Version, header, request::Parts};

use super::{
    course::RequestLine,
    promise,
    reading::{Flags, Reading, Words},
};
use crate::policy::names::Names;

/// A request's head, packed into one allocation of its exact size.
///
/// Cloning a `HeaderMap` allocates two tables and promotes every owned value; most calls succeed at once and would
/// have done it for nothing. The pack is cheap to make and to drop; a map is rebuilt from it only when a retry
/// happens. No pooled buffers: they would keep credentials after the call and the body of its last attempt.
pub(super) struct Head {
    /// In words, which are copied faster than bytes where they are atomic.
    pack: Words,
    /// How many attempts there were before this one.
    turn: u8,
    /// How many names there are, at most 2^15; of values there may be far more.
    names: u16,
    version: Version,
    /// The caller's own, as they were before anything of ours went in. Boxed inside `http`: a pointer here.
    extensions: Extensions,
    pub(super) upgrade: bool,
}

/// A header in the pack: the lengths of its value and name and whether it is sensitive (one bit), name, value.
const LENGTHS: usize = size_of::<u64>();

/// The first word of the pack: the flags that the bodies of the attempts set ([`Reading`]), which would otherwise need
/// an allocation of their own. Hence the atomics, and the `Arc`.
const FLAGS: usize = size_of::<u64>();

impl Head {
    /// Beside it what the request says of its body's length.
    #[inline]
    pub(super) fn keep(parts: &Parts) -> (Self, Option<u64>) {
        let (pack, noticed) = pack(&parts.headers);
        let head = Head {
            pack,
            turn: 0,
            names: parts.headers.keys_len() as u16,
            version: parts.version,
            extensions: if parts.extensions.is_empty() { Extensions::new() } else { parts.extensions.clone() },
            // As `RequestHead::is_upgrade` has it.
            upgrade: noticed.upgrade || parts.method == Method::CONNECT,
        };
        (head, noticed.content_length.and_then(promise::content_length))
    }

    /// For the body of the current attempt.
    #[inline]
    pub(super) fn reading(&self) -> Reading {
        Reading::of(Arc::clone(&self.pack), self.turn)
    }

    /// How far the client got with it.
    #[inline]
    pub(super) fn flags(&self) -> Flags<'_> {
        Flags::of(&self.pack, self.turn)
    }

    /// The next attempt begins.
    pub(super) fn next_turn(&mut self) {
        self.turn += 1;
    }

    /// The pack, to be used: sliced, without copying, into the values of each later attempt.
    pub(super) fn unpack(&self) -> Bytes {
        let words = self.pack.get(1..).unwrap_or_default();
        let mut bytes = vec![0; size_of_val(words)];
        for (place, word) in bytes.chunks_exact_mut(size_of::<Word>()).zip(words) {
            place.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes.into()
    }

    /// The same head again, with this line and body.
    pub(super) fn rebuild<B>(&self, unpacked: &Bytes, line: &RequestLine, names: &Names, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = line.method.clone();
        *request.uri_mut() = line.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers(unpacked, names);
        if !self.extensions.is_empty() {
            *request.extensions_mut() = self.extensions.clone();
        }
        request
    }

    fn headers(&self, pack: &Bytes, names: &Names) -> HeaderMap {
        let mut headers = HeaderMap::try_with_capacity(self.names as usize).unwrap_or_default();
        let (mut at, mut place) = (0, 0);
        while let Some(&lengths) = pack[at..].first_chunk::<LENGTHS>() {
            let lengths = u64::from_le_bytes(lengths);
            let name_length = usize::from((lengths >> 1) as u16);
            let name_ends = at + LENGTHS + name_length;
            let value_ends = name_ends + (lengths >> 17) as usize;
            let name = names.get(&pack[at + LENGTHS..name_ends], place);
            let value = HeaderValue::from_maybe_shared(pack.slice(name_ends..value_ends));
            // Both came out of a header map, so both are valid.
            if let (Some(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(lengths & 1 == 1);
                headers.append(name, value);
            }
            (at, place) = (value_ends, place + 1);
        }
        headers
    }
}

/// A word of the pack, while it is written.
type Word = [u8; size_of::<u64>()];

/// Nearly every head fits into this many.
const SMALL: usize = 128;

/// What is noticed in the one pass over the headers that is made anyway.
#[derive(Default)]
struct Noticed<'a> {
    upgrade: bool,
    /// The first one.
    content_length: Option<&'a HeaderValue>,
}

/// One allocation of the exact size. The size is known only once all has been written, so that is done elsewhere.
fn pack(headers: &HeaderMap) -> (Words, Noticed<'_>) {
    let (mut small, mut large, mut noticed) = ([Word::default(); SMALL], Vec::new(), Noticed::default());
    let words = match write(headers, small.as_flattened_mut(), &mut noticed) {
        Some(size) => &small[..size.div_ceil(size_of::<Word>())],
        None => {
            let sizes = headers.iter().map(|(name, value)| LENGTHS + name.as_str().len() + value.len());
            large.resize((FLAGS + sizes.sum::<usize>()).div_ceil(size_of::<Word>()), Word::default());
            write(headers, large.as_flattened_mut(), &mut noticed);
            &large
        }
    };
    (words.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect(), noticed)
}

/// Writes the headers here, and says how much they took; `None`: more than there is room for.
fn write<'a>(headers: &'a HeaderMap, place: &mut [u8], noticed: &mut Noticed<'a>) -> Option<usize> {
    let size = place.len();
    let mut rest = place.get_mut(FLAGS..)?;
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
