//! Decimal numbers and spans of time, read from bytes without loss and without overflow.

use std::time::Duration;

/// Nanoseconds in one of a unit.
pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MILLISECOND: u64 = 1_000_000;

const BILLION: u128 = 1_000_000_000;

/// A number of some unit, in billionths, rounded up. Not a float: `0.503` is not 503 of its
/// thousandths in binary, and what is rounded up would be 504.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal(u128);

impl Decimal {
    /// `1*DIGIT [ "." 1*DIGIT ]`, and nothing else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match Self::prefix(bytes)? {
            (decimal, []) => Some(decimal),
            _ => None,
        }
    }

    /// The number at the start, and what follows it.
    pub(super) fn prefix(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (whole, rest) = digits(bytes)?;
        // Digits beyond 64 bits are more than any wait, not an error.
        let whole =
            whole.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        let [b'.', rest @ ..] = rest else {
            return Some((Self(u128::from(whole) * BILLION), rest));
        };
        let (fraction, rest) = digits(rest)?;
        Some((Self(u128::from(whole) * BILLION + billionths(fraction)), rest))
    }

    /// So many of a unit of so many nanoseconds, rounded up to the next millisecond, which is what
    /// timers resolve.
    pub(super) fn of(self, unit: u64) -> Duration {
        whole_millis(self.nanos(unit))
    }

    fn nanos(self, unit: u64) -> u128 {
        self.0.saturating_mul(u128::from(unit)).div_ceil(BILLION)
    }
}

/// At least one digit, and what follows.
fn digits(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    (end > 0).then(|| bytes.split_at(end))
}

/// The digits after a point, in billionths, rounded up however many there are.
pub(super) fn billionths(digits: &[u8]) -> u128 {
    let (kept, beyond) = digits.split_at(digits.len().min(9));
    let mut value = 0;
    for place in 0..9 {
        value = value * 10 + kept.get(place).map_or(0, |digit| u128::from(digit - b'0'));
    }
    value + u128::from(beyond.iter().any(|digit| *digit != b'0'))
}

fn whole_millis(nanos: u128) -> Duration {
    let millis = nanos.div_ceil(u128::from(MILLISECOND));
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// What Go's `time.Duration` prints, and any other order of the same parts: `1h2m3.5s`, `500ms`.
/// A bare `0` is what Go reads as no time at all.
pub(super) fn go_duration(bytes: &[u8]) -> Option<Duration> {
    if bytes == b"0" {
        return Some(Duration::ZERO);
    }
    if bytes.is_empty() {
        return None;
    }
    let mut rest = bytes;
    let mut nanos = 0_u128;
    while !rest.is_empty() {
        let (decimal, after) = Decimal::prefix(rest)?;
        let end = after.iter().position(u8::is_ascii_digit).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        nanos = nanos.saturating_add(decimal.nanos(match unit {
            b"h" => 3600 * SECOND,
            b"m" => 60 * SECOND,
            b"s" => SECOND,
            b"ms" => MILLISECOND,
            // Two micro signs look alike in Unicode, and Go reads both.
            b"us" | b"\xC2\xB5s" | b"\xCE\xBCs" => 1_000,
            b"ns" => 1,
            _ => return None,
        }));
        rest = after;
    }
    Some(whole_millis(nanos))
}
