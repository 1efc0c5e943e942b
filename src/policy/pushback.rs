//! What a server of gRPC says about when to come back: `grpc-retry-pushback-ms` ([gRFC A6]).
//!
//! [gRFC A6]: https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::{
    Hint,
    retry_after::{LONGEST, trim},
};

pub(crate) const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// `None` where there is none. One that is negative or not a whole number says: do not repeat (D20); so do several, of
/// which nobody knows which one is meant. A number beyond 64 bits is a wait longer than any (D6).
pub(crate) fn read(headers: &HeaderMap) -> Option<Hint> {
    let mut values = headers.get_all(PUSHBACK).iter();
    let said = trim(values.next()?.as_bytes());
    if values.next().is_some() || said.is_empty() || !said.iter().all(u8::is_ascii_digit) {
        return Some(Hint::never());
    }
    let millis = said.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(Hint::wait(Duration::from_millis(millis).min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&[u8]]) -> Option<Hint> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PUSHBACK, HeaderValue::from_bytes(value).unwrap());
        }
        read(&headers)
    }

    #[test]
    fn a_number_is_a_wait_and_anything_else_is_no() {
        let wait = |millis| Some(Hint::wait(Duration::from_millis(millis)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[b"0"]), wait(0));
        assert_eq!(of(&[b"1500"]), wait(1500));
        assert_eq!(of(&[b" 25\t"]), wait(25));
        assert_eq!(of(&[b"99999999999999999999999"]), Some(Hint::wait(LONGEST)));
        for no in [&b"-1"[..], b"", b" ", b"+5", b"1.5", b"1e3", b"soon", b"5ms", b"5,6", b"\xff"] {
            assert_eq!(of(&[no]), Some(Hint::never()), "{no:?}");
        }
        assert_eq!(of(&[b"5", b"6"]), Some(Hint::never()));
    }
}
