//! What a response's headers say about when to come back.
//!
//! Header values are bytes that a stranger wrote. Reading them never fails, never panics and
//! allocates nothing: what is malformed is no hint, and the policy's own backoff applies. What is
//! readable is never read as less than was asked: fractions are rounded up, and what is too large to
//! represent is [`LONGEST`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{DATE, HeaderName};

/// What every longer wait is read as: 30 years.
///
/// Above every maximum and every deadline that a policy can have (a day), so it always means "do not
/// wait", and small enough that adding it to an instant or a time of day overflows on no platform.
pub const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A response's `Date` that is further from our clock than this says nothing about it.
const CREDIBLE_SKEW: Duration = Duration::from_secs(24 * 60 * 60);

/// In what a header says when to come back. It is declared, never guessed from the magnitude of the
/// number: 1700000000 may be seconds.
///
/// Numbers are decimal digits, optionally with a point and more digits (`0.503`), in units that the
/// variant names. Signs, exponents, `.5`, `5.`, `nan`, `inf` are no hint.
///
/// Instants are measured against the response's own `Date`, where it has one within a day of our
/// clock, since both were written by the same clock; else against ours. One in the past is a wait of
/// zero: no minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A number of seconds from now: `30`, `0.503`.
    Seconds,
    /// A number of milliseconds from now: `1500`.
    Millis,
    /// An instant, in seconds since 1970-01-01T00:00:00Z.
    EpochSeconds,
    /// An instant, in milliseconds since 1970-01-01T00:00:00Z.
    EpochMillis,
    /// An instant by RFC 3339, the profile of ISO 8601 for the internet: `2024-01-15T10:30:00Z`,
    /// with a fraction or an offset where need be.
    Iso8601,
    /// A span as Go prints it: `1m30.5s`, `500ms`, `6m0s`. Units `h`, `m`, `s`, `ms`, `us`, `ns`.
    Duration,
    /// An instant in one of the three forms of RFC 9110, section 5.6.7. Its weekday must be right.
    HttpDate,
    /// [`Seconds`](Self::Seconds) or [`HttpDate`](Self::HttpDate), as `Retry-After` itself
    /// (RFC 9110, section 10.2.3).
    RetryAfter,
}

/// A header in which a provider says when to come back, and in which unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitHeader {
    name: HeaderName,
    unit: Unit,
}

impl WaitHeader {
    /// Declares that responses carry a wait in this header, in this unit.
    #[must_use]
    pub const fn new(name: HeaderName, unit: Unit) -> Self {
        Self { name, unit }
    }

    /// The header.
    #[must_use]
    pub const fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// How long these headers of a response, which arrived at `now`, ask to wait from then.
    ///
    /// `None` where the header is absent or says nothing readable. Zero where it asks for no
    /// minimum. At most 30 years. Where the header is repeated, the longest valid wait.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
        let mut reference = None;
        let mut reference = || *reference.get_or_insert_with(|| sent_at(headers, now));
        headers
            .get_all(&self.name)
            .iter()
            .filter_map(|value| self.unit.read(trim(value.as_bytes()), &mut reference))
            .max()
            .map(|wait| wait.min(LONGEST))
    }
}

/// The first of these headers that says something readable.
///
/// They are in order of preference, so that a malformed one leaves the word to the next. A policy's list holds
/// `Retry-After` itself, between the headers that it asks before and those that it asks after.
pub(crate) fn first_wait(declared: &[WaitHeader], headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    declared.iter().find_map(|header| header.read(headers, now))
}

impl Unit {
    fn read(self, value: &[u8], reference: &mut impl FnMut() -> SystemTime) -> Option<Duration> {
        Some(match self {
            Self::Seconds => Decimal::read(value)?.of(SECOND),
            Self::Millis => Decimal::read(value)?.of(MILLISECOND),
            Self::EpochSeconds => since(epoch(Decimal::read(value)?.of(SECOND)), reference()),
            Self::EpochMillis => since(epoch(Decimal::read(value)?.of(MILLISECOND)), reference()),
            Self::Iso8601 => since(rfc3339::read(value)?, reference()),
            Self::Duration => number::go_duration(value)?,
            Self::HttpDate => since(Some(http_date(value)?), reference()),
            // A value that begins as a number is one or nothing: `2030` is not a year.
            Self::RetryAfter if value.first().is_some_and(u8::is_ascii_digit) => {
                Self::Seconds.read(value, reference)?
            }
            Self::RetryAfter => Self::HttpDate.read(value, reference)?,
        })
    }
}

/// What now was for whoever wrote the dates of this response.
///
/// A `Date` is cut to the second, so a wait measured from it may be up to a second too long, never
/// too short. Our own clock is not cut: from 07:27:57.4 until 07:28:00 it is 2.6 s, and the wait
/// ends no earlier than the second that was named. Of several `Date`s, the one with the longest wait.
fn sent_at(headers: &HeaderMap, now: SystemTime) -> SystemTime {
    headers
        .get_all(DATE)
        .iter()
        .filter_map(|value| http_date(trim(value.as_bytes())))
        .filter(|date| {
            let skew = match date.duration_since(now) {
                Ok(ahead) => ahead,
                Err(behind) => behind.duration(),
            };
            skew <= CREDIBLE_SKEW
        })
        .min()
        .unwrap_or(now)
}

/// `None`, a time too far away to represent, is [`LONGEST`] from any other.
fn since(instant: Option<SystemTime>, reference: SystemTime) -> Duration {
    instant.map_or(LONGEST, |instant| instant.duration_since(reference).unwrap_or(Duration::ZERO))
}

fn epoch(since: Duration) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(since)
}

/// The forms and the two-digit years are `httpdate`'s: 70 to 99 are in the 20th century. Dates before
/// 1970, leap seconds and wrong weekdays are no hint.
fn http_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

/// Without the optional whitespace of RFC 9110, section 5.6.3.
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

mod number;
mod rfc3339;
#[cfg(test)]
mod tests;

use number::{Decimal, MILLISECOND, SECOND};
