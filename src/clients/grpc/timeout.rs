//! `grpc-timeout`, read and written ([gRPC over HTTP/2]).
//!
//! [gRPC over HTTP/2]: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Units, the finest first, and their nanoseconds.
const UNITS: [(char, u64); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60 * 1_000_000_000),
    ('H', 3600 * 1_000_000_000),
];

/// What the caller gave. A malformed one is none; of several, the shortest.
pub(super) fn read(headers: &HeaderMap) -> Option<Duration> {
    headers.get_all(GRPC_TIMEOUT).iter().filter_map(|value| parse(value.as_bytes())).min()
}

/// At most eight digits and a unit.
fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == char::from(*unit))?;
    let number = digits.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let whole = u128::from(number) * u128::from(nanos);
    // The longest is 99,999,999 hours: its seconds fit.
    let (seconds, rest) = (whole / 1_000_000_000, whole % 1_000_000_000);
    Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(rest).ok()?))
}

/// In the finest unit that eight digits can hold, rounded down: never longer than what is left. Nothing left is one
/// nanosecond, as zero may not be said.
pub(super) fn print(time: Duration) -> HeaderValue {
    let nanos = time.as_nanos().max(1);
    let fits = |(_, unit): &(char, u64)| nanos / u128::from(*unit) <= 99_999_999;
    let text = match UNITS.into_iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", nanos / u128::from(unit)),
        None => "99999999H".to_owned(),
    };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("1n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_is_read() {
        let rows = [
            ("3H", Duration::from_secs(3 * 3600)),
            ("2M", Duration::from_secs(120)),
            ("42S", Duration::from_secs(42)),
            ("13m", Duration::from_millis(13)),
            ("7u", Duration::from_micros(7)),
            ("82n", Duration::from_nanos(82)),
            ("0m", Duration::ZERO),
            ("00000001S", Duration::from_secs(1)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ];
        for (text, time) in rows {
            assert_eq!(parse(text.as_bytes()), Some(time), "{text}");
        }
    }

    #[test]
    fn a_malformed_one_is_no_hint() {
        for text in
            ["", "S", "1", "123456789m", "1s", "1h", "-1S", "+1S", "1.5S", " 1S", "1S ", "oneS", "1SS", "\u{e9}S"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        let mut headers = HeaderMap::new();
        for text in ["1f", "5S", "2S", "soon"] {
            headers.append(GRPC_TIMEOUT, HeaderValue::from_static(text));
        }
        assert_eq!(read(&headers), Some(Duration::from_secs(2)));
    }

    #[test]
    fn it_is_written_in_eight_digits_at_most() {
        let rows = [
            (Duration::ZERO, "1n"),
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_nanos(100_000_001), "100000u"),
            (Duration::from_secs(2), "2000000u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(86_400), "86400000m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::MAX, "99999999H"),
        ];
        for (time, text) in rows {
            assert_eq!(print(time), text, "{time:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_no_more_and_hardly_less(nanos in 1_u64..) {
            let time = Duration::from_nanos(nanos);
            let read = parse(print(time).as_bytes()).unwrap();
            prop_assert!(read <= time && time - read <= time / 1_000_000 , "{time:?} {read:?}");
        }

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            let _ = parse(&bytes);
        }
    }
}
