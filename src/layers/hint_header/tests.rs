use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;

fn read(header: HintHeader, values: &[&str]) -> Vec<Said> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(header.name(), HeaderValue::from_str(value).unwrap());
    }
    header.read(&headers).collect()
}

fn left(header: HintHeader, value: &str) -> Option<Duration> {
    match read(header, &[value])[..] {
        [Said::Left(left)] => Some(left),
        [] => None,
        ref other => panic!("{value}: {other:?}"),
    }
}

fn attempt(header: HintHeader, value: &str) -> Option<u32> {
    match read(header, &[value])[..] {
        [Said::Attempt(attempt)] => Some(attempt),
        [] => None,
        ref other => panic!("{value}: {other:?}"),
    }
}

#[test]
fn times_are_read_by_their_own_grammar() {
    use HintHeader::{EnvoyExpectedTimeout as Envoy, GrpcTimeout as Grpc};
    let ms = Duration::from_millis;
    for (value, expected) in [
        ("1H", Some(ms(3_600_000))),
        ("2M", Some(ms(120_000))),
        ("3S", Some(ms(3_000))),
        ("250m", Some(ms(250))),
        ("1500u", Some(Duration::from_micros(1_500))),
        ("99999999n", Some(Duration::from_nanos(99_999_999))),
        ("0n", Some(ms(0))),
        // Nine digits, above a day, and no such form.
        ("100000000n", None),
        ("25H", None),
        ("99999999H", None),
        ("", None),
        ("m", None),
        ("10", None),
        ("10s", None),
        ("-1S", None),
        ("+1S", None),
        ("1.5S", None),
        (" 1S", None),
        ("1 S", None),
    ] {
        assert_eq!(left(Grpc, value), expected, "grpc-timeout: {value}");
    }
    for (value, expected) in [
        ("1", Some(ms(1))),
        ("15000", Some(ms(15_000))),
        ("86400000", Some(ms(86_400_000))),
        // To Envoy, zero is no limit.
        ("0", None),
        ("86400001", None),
        ("18446744073709551616", None),
        ("15s", None),
        ("-5", None),
        ("", None),
    ] {
        assert_eq!(left(Envoy, value), expected, "envoy: {value}");
    }
}

#[test]
fn attempts_are_counted_from_one() {
    use HintHeader::{EnvoyAttemptCount, GrpcPreviousAttempts, StainlessRetryCount};
    assert_eq!(attempt(EnvoyAttemptCount, "1"), Some(1));
    assert_eq!(attempt(EnvoyAttemptCount, "3"), Some(3));
    assert_eq!(attempt(EnvoyAttemptCount, "0"), None);
    assert_eq!(attempt(StainlessRetryCount, "0"), Some(1));
    assert_eq!(attempt(StainlessRetryCount, "2"), Some(3));
    assert_eq!(attempt(GrpcPreviousAttempts, "1"), Some(2));
    for header in [EnvoyAttemptCount, StainlessRetryCount, GrpcPreviousAttempts] {
        for value in ["-1", "two", "1.0", "1,2", "", "999999999", "4294967296"] {
            assert_eq!(attempt(header, value), None, "{header:?}: {value}");
        }
    }
}

#[test]
fn every_sound_line_is_read() {
    let said = read(HintHeader::EnvoyExpectedTimeout, &["700", "later", "300"]);
    assert_eq!(said, [700, 300].map(|left| Said::Left(Duration::from_millis(left))));
}

#[test]
fn nothing_is_written_where_there_is_nothing_to_say() {
    for header in HintHeader::ALL {
        assert_eq!(header.write(None, None), None, "{header:?}");
    }
    // By A6, only a repeat says so.
    assert_eq!(HintHeader::GrpcPreviousAttempts.write(None, Some(1)), None);
    // To Envoy, zero would be no limit.
    assert_eq!(HintHeader::EnvoyExpectedTimeout.write(Some(Duration::ZERO), None).unwrap(), "1");
    assert_eq!(HintHeader::GrpcTimeout.write(Some(Duration::ZERO), None).unwrap(), "0n");
    assert_eq!(HintHeader::GrpcTimeout.write(Some(Duration::MAX), None).unwrap(), "99999999S");
}

proptest! {
    /// Whatever stands there, nothing panics, and nothing is longer than a day.
    #[test]
    fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            for header in HintHeader::ALL {
                let headers = HeaderMap::from_iter([(header.name().clone(), value.clone())]);
                for said in header.read(&headers) {
                    let bounded = match said {
                        Said::Left(left) => left <= LONGEST,
                        Said::Attempt(attempt) => (1..=100_000_000).contains(&attempt),
                    };
                    prop_assert!(bounded);
                }
            }
        }
    }

    /// What one hop writes, the next one reads; no time gets longer, and none shorter than its unit shows.
    #[test]
    fn what_is_written_is_read(nanos in 0..=LONGEST.as_nanos() as u64, attempt in 1..100_000_u32) {
        let sent = Duration::from_nanos(nanos);
        for header in HintHeader::ALL {
            let Some(value) = header.write(Some(sent), Some(attempt)) else { continue };
            let said = header.read(&HeaderMap::from_iter([(header.name().clone(), value)])).next();
            match said {
                Some(Said::Attempt(read)) => prop_assert_eq!(read, attempt),
                Some(Said::Left(read)) => {
                    let least = if header == HintHeader::GrpcTimeout { 0 } else { 1 };
                    prop_assert!(read <= sent.max(Duration::from_millis(least)), "{header:?}: {read:?} of {sent:?}");
                    prop_assert!(sent - sent.min(read) <= Duration::from_millis(1).max(sent / 10_000_000));
                }
                None => prop_assert!(false, "{header:?} is not read back"),
            }
        }
    }
}
