//! The headers by which one hop tells the next how long it waits, and that it has asked before.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// A header that says how long a caller still waits, or which of its attempts a request is.
///
/// | | header | says | source |
/// | --- | --- | --- | --- |
/// | `GrpcTimeout` | `grpc-timeout` | what is left, as `100m`: at most 8 digits, and a unit of `H M S m u n` | gRPC, "gRPC over HTTP2", Requests |
/// | `EnvoyExpectedTimeout` | `x-envoy-expected-rq-timeout-ms` | what is left, in milliseconds; 0 is no limit | Envoy, "Router", HTTP headers |
/// | `EnvoyAttemptCount` | `x-envoy-attempt-count` | the attempt; the first is 1 | Envoy, `include_request_attempt_count` |
/// | `StainlessRetryCount` | `x-stainless-retry-count` | the retries so far; at first 0 | the SDKs that Stainless generates (OpenAI, Anthropic) |
/// | `GrpcPreviousAttempts` | `grpc-previous-rpc-attempts` | the attempts before this one; at first absent | gRPC, proposal A6, "Exposed Retry Metadata" |
///
/// Whatever stands there was written by somebody else. What is malformed is no hint, and neither is a time above a day
/// or a number of more than 8 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HintHeader {
    /// `grpc-timeout`.
    GrpcTimeout,
    /// `x-envoy-expected-rq-timeout-ms`.
    EnvoyExpectedTimeout,
    /// `x-envoy-attempt-count`.
    EnvoyAttemptCount,
    /// `x-stainless-retry-count`.
    StainlessRetryCount,
    /// `grpc-previous-rpc-attempts`.
    GrpcPreviousAttempts,
}

static GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
static ENVOY_EXPECTED_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");
static ENVOY_ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
static STAINLESS_RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
static GRPC_PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// As many as `grpc-timeout` may have; of no header are more to be expected.
const DIGITS: usize = 8;

/// The highest number that the next hop reads.
const HIGHEST: u32 = 10_u32.pow(DIGITS as u32) - 1;

/// What a caller can mean by waiting: the longest total that a policy may have.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The caller waits this much longer.
    Left(Duration),
    /// The request is this attempt; the first is 1.
    Attempt(u32),
}

impl HintHeader {
    /// All of them.
    pub const ALL: [HintHeader; 5] = [
        HintHeader::GrpcTimeout,
        HintHeader::EnvoyExpectedTimeout,
        HintHeader::EnvoyAttemptCount,
        HintHeader::StainlessRetryCount,
        HintHeader::GrpcPreviousAttempts,
    ];

    /// The header's name.
    pub fn name(self) -> &'static HeaderName {
        match self {
            HintHeader::GrpcTimeout => &GRPC_TIMEOUT,
            HintHeader::EnvoyExpectedTimeout => &ENVOY_EXPECTED_TIMEOUT,
            HintHeader::EnvoyAttemptCount => &ENVOY_ATTEMPT_COUNT,
            HintHeader::StainlessRetryCount => &STAINLESS_RETRY_COUNT,
            HintHeader::GrpcPreviousAttempts => &GRPC_PREVIOUS_ATTEMPTS,
        }
    }

    /// What each of its lines says, as far as it says anything.
    pub(super) fn read(self, headers: &HeaderMap) -> impl Iterator<Item = Said> + '_ {
        headers.get_all(self.name()).iter().filter_map(move |value| self.read_value(value.as_bytes()))
    }

    fn read_value(self, value: &[u8]) -> Option<Said> {
        match self {
            HintHeader::GrpcTimeout => {
                let (unit, digits) = value.split_last()?;
                time(number(digits)?, *unit).filter(|left| *left <= LONGEST).map(Said::Left)
            }
            HintHeader::EnvoyExpectedTimeout => {
                let left = Duration::from_millis(number(value)?.into());
                (!left.is_zero() && left <= LONGEST).then_some(Said::Left(left))
            }
            HintHeader::EnvoyAttemptCount => number(value).filter(|attempt| *attempt > 0).map(Said::Attempt),
            HintHeader::StainlessRetryCount | HintHeader::GrpcPreviousAttempts => {
                number(value).map(|before| Said::Attempt(before + 1))
            }
        }
    }

    /// The header's value; `None` where there is nothing to say.
    pub(super) fn write(self, left: Option<Duration>, attempt: Option<u32>) -> Option<HeaderValue> {
        let attempt = attempt.map(|attempt| attempt.min(HIGHEST));
        match self {
            HintHeader::GrpcTimeout => HeaderValue::from_str(&grpc_time(left?)).ok(),
            // Zero would be no limit.
            HintHeader::EnvoyExpectedTimeout => Some(HeaderValue::from((left?.as_millis().max(1)) as u64)),
            HintHeader::EnvoyAttemptCount => attempt.map(HeaderValue::from),
            HintHeader::StainlessRetryCount => attempt.map(|attempt| HeaderValue::from(attempt.saturating_sub(1))),
            HintHeader::GrpcPreviousAttempts => {
                attempt.filter(|attempt| *attempt > 1).map(|attempt| HeaderValue::from(attempt - 1))
            }
        }
    }
}

/// Digits alone: no sign, no space, no fraction.
fn number(digits: &[u8]) -> Option<u32> {
    let sound = !digits.is_empty() && digits.len() <= DIGITS && digits.iter().all(u8::is_ascii_digit);
    sound.then(|| digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

fn time(amount: u32, unit: u8) -> Option<Duration> {
    let amount = u64::from(amount);
    match unit {
        b'H' => Some(Duration::from_secs(amount * 3600)),
        b'M' => Some(Duration::from_secs(amount * 60)),
        b'S' => Some(Duration::from_secs(amount)),
        b'm' => Some(Duration::from_millis(amount)),
        b'u' => Some(Duration::from_micros(amount)),
        b'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// In the finest unit that 8 digits hold, rounded down: the next hop must not wait longer.
fn grpc_time(left: Duration) -> String {
    let units =
        [(left.as_nanos(), 'n'), (left.as_micros(), 'u'), (left.as_millis(), 'm'), (left.as_secs().into(), 'S')];
    let fits = units.into_iter().find(|(amount, _)| *amount < 10_u128.pow(DIGITS as u32));
    // Eight digits of seconds are three years.
    let (amount, unit) = fits.unwrap_or((99_999_999, 'S'));
    format!("{amount}{unit}")
}

#[cfg(test)]
mod tests;
