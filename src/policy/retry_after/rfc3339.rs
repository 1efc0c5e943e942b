//! Instants by RFC 3339.
//!
//! Written here because a calendar library is out of proportion for one fixed-width form, and the
//! small parser in use elsewhere knows only UTC and reads a leap second as the second before it,
//! which is earlier than asked.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::number::billionths;

const DAY: i64 = 86_400;

/// `2024-01-15T10:30:00[.5](Z|+02:00)`. `None`: not of this form, or not a date.
/// `Some(None)`: a time that the platform cannot represent.
pub(super) fn read(bytes: &[u8]) -> Option<Option<SystemTime>> {
    let (date_time, rest) = bytes.split_at_checked("2024-01-15T10:30:00".len())?;
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T' | b't' | b' ', time @ ..] = date_time else {
        return None;
    };
    let [h0, h1, b':', min0, min1, b':', s0, s1] = time else {
        return None;
    };
    let year = pair(*y0, *y1)? * 100 + pair(*y2, *y3)?;
    let (month, day) = (pair(*m0, *m1)?, pair(*d0, *d1)?);
    let (hour, minute, second) = (pair(*h0, *h1)?, pair(*min0, *min1)?, pair(*s0, *s1)?);
    let real = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        // A leap second counts on into the next minute, so that it is not read as earlier.
        && second <= 60;
    if !real {
        return None;
    }

    let (nanos, zone) = fraction(rest)?;
    let seconds = days_since_1970(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(instant(seconds - offset(zone)?, nanos))
}

/// The fraction of a second in nanoseconds, up to a whole second since it is rounded up, and what
/// follows it.
fn fraction(rest: &[u8]) -> Option<(Duration, &[u8])> {
    let [b'.', rest @ ..] = rest else {
        return Some((Duration::ZERO, rest));
    };
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, zone) = rest.split_at(end);
    let nanos = u64::try_from(billionths(digits)).ok()?;
    (end > 0).then_some((Duration::from_nanos(nanos), zone))
}

/// How far local time is ahead of UTC, in seconds.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, [h0, h1, b':', m0, m1]) = (match zone {
        [b'Z' | b'z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    }) else {
        return None;
    };
    let (hours, minutes) = (pair(*h0, *h1)?, pair(*m0, *m1)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn instant(seconds: i64, fraction: Duration) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = if seconds < 0 {
        // What a platform cannot represent before 1970 is in the past all the same.
        UNIX_EPOCH.checked_sub(whole).unwrap_or(UNIX_EPOCH)
    } else {
        UNIX_EPOCH.checked_add(whole)?
    };
    start.checked_add(fraction)
}

fn pair(tens: u8, ones: u8) -> Option<i64> {
    let both = tens.is_ascii_digit() && ones.is_ascii_digit();
    both.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// In the Gregorian calendar, for the years 0 to 9999.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Days from the start of year 0 to the start of a year: a leap day for each leap year before.
    let before = |year: i64| {
        let last = year - 1;
        year * 365 + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400)
    };
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    before(year) - before(1970) + months + day - 1
}
