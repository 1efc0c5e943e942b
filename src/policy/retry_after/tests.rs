use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use proptest::prelude::*;

use super::{LONGEST, Unit, WaitHeader};

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    WaitHeader::new(http::header::RETRY_AFTER, Unit::RetryAfter).read(headers, now)
}

/// As a policy asks: `Retry-After` before these, unless it has its place among them.
fn first_wait(declared: &[WaitHeader], headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let standard = WaitHeader::new(http::header::RETRY_AFTER, Unit::RetryAfter);
    let mut list = declared.to_vec();
    if list.iter().all(|header| header.name != standard.name) {
        list.insert(0, standard);
    }
    super::first_wait(&list, headers, now)
}

mod cases;

/// Wed, 21 Oct 2015 07:28:00 GMT, which most examples name.
const EXAMPLE: u64 = 1_445_412_480;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn at(epoch: u64) -> SystemTime {
    UNIX_EPOCH + secs(epoch)
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

fn asked(value: &str) -> Option<Duration> {
    retry_after(&headers(&[("retry-after", value)]), at(EXAMPLE))
}

fn read(unit: Unit, value: &str, now: SystemTime) -> Option<Duration> {
    WaitHeader::new(HeaderName::from_static("x-reset"), unit).read(&headers(&[("x-reset", value)]), now)
}

#[test]
fn fractions_are_rounded_up() {
    for (value, wait) in [
        ("0.5", 500),
        ("0.503", 503),
        ("0.5030", 503),
        ("0.50301", 504),
        ("0.000000000000000000001", 1),
        ("1.999999999999", 2000),
        ("0.0", 0),
    ] {
        assert_eq!(asked(value), Some(ms(wait)), "{value}");
    }
}

#[test]
fn of_several_lines_the_longest_valid_one() {
    let lines = [
        ("retry-after", "2"),
        ("retry-after", "soon"),
        ("retry-after", "Wed, 21 Oct 2015 07:28:07 GMT"),
        ("retry-after", "3"),
    ];
    assert_eq!(retry_after(&headers(&lines), at(EXAMPLE)), Some(secs(7)));
    assert_eq!(retry_after(&headers(&lines[1..2]), at(EXAMPLE)), None);
}

#[test]
fn dates_are_measured_against_the_responses_own() {
    let lines = [("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), ("date", "Wed, 21 Oct 2015 07:27:50 GMT")];
    let ten = Some(secs(10));
    // Whatever our clock says, as long as it is credible.
    for now in [EXAMPLE - 10, EXAMPLE + 3600, EXAMPLE - 10 - 86_400] {
        assert_eq!(retry_after(&headers(&lines), at(now)), ten);
    }
    let now = at(EXAMPLE - 10 - 86_401);
    assert_eq!(retry_after(&headers(&lines), now), Some(secs(86_411)));
    let now = at(EXAMPLE - 10 + 86_401);
    assert_eq!(retry_after(&headers(&lines), now), Some(Duration::ZERO));
    // A `Date` that is none is no help.
    let lines = [lines[0], ("date", "yesterday")];
    assert_eq!(retry_after(&headers(&lines), at(EXAMPLE - 4)), Some(secs(4)));
    // Of two, the one that never leads to coming too early.
    let lines = [lines[0], ("date", "Wed, 21 Oct 2015 07:27:50 GMT"), ("date", "Wed, 21 Oct 2015 07:27:40 GMT")];
    assert_eq!(retry_after(&headers(&lines), at(EXAMPLE)), Some(secs(20)));
}

#[test]
fn on_our_own_clock_a_date_is_met_to_the_millisecond() {
    let lines = headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]);
    let now = at(EXAMPLE - 3) + ms(400);
    assert_eq!(retry_after(&lines, now), Some(ms(2600)));
    assert_eq!(now + ms(2600), at(EXAMPLE));
}

#[test]
fn seconds_are_not_measured_against_dates() {
    let lines = [("retry-after", "3"), ("date", "Wed, 21 Oct 2015 07:27:50 GMT")];
    assert_eq!(retry_after(&headers(&lines), at(EXAMPLE)), Some(secs(3)));
}

#[test]
fn rfc_3339_instants() {
    let read = |value| read(Unit::Iso8601, value, at(EXAMPLE));
    for (value, wait) in [
        ("2015-10-21T07:28:30Z", 30_000),
        ("2015-10-21t07:28:30z", 30_000),
        ("2015-10-21 07:28:30Z", 30_000),
        ("2015-10-21T07:28:30.25Z", 30_250),
        ("2015-10-21T07:28:30.999999999Z", 30_999),
        ("2015-10-21T09:28:30+02:00", 30_000),
        ("2015-10-20T22:58:30-08:30", 30_000),
        ("2015-10-21T07:28:30-00:00", 30_000),
        ("2015-10-21T07:28:60Z", 60_000),
        ("2015-10-21T07:27:59Z", 0),
        ("1969-12-31T23:59:59Z", 0),
        ("0000-01-01T00:00:00+23:59", 0),
    ] {
        let wait = ms(wait);
        let got = read(value).unwrap_or_else(|| panic!("{value} is no hint"));
        assert!(got >= wait && got < wait + ms(1), "{value}: {got:?}");
    }
    assert_eq!(read("9999-12-31T23:59:59Z"), Some(LONGEST));
    for value in [
        "",
        "2015-10-21",
        "2015-10-21T07:28:30",
        "2015-10-21T07:28:30.",
        "2015-10-21T07:28:30.Z",
        "2015-10-21T07:28:30.5",
        "2015-10-21T07:28:30+0200",
        "2015-10-21T07:28:30+24:00",
        "2015-10-21T07:28:30+02:60",
        "2015-10-21T07:28:30ZZ",
        "2015-10-21T07:28:61Z",
        "2015-10-21T24:00:00Z",
        "2015-02-29T00:00:00Z",
        "2015-13-01T00:00:00Z",
        "2015-00-01T00:00:00Z",
        "2015-04-31T00:00:00Z",
        "2015-10-00T00:00:00Z",
        "2015-1O-21T07:28:30Z",
        "+015-10-21T07:28:30Z",
        "20151021T072830Z",
    ] {
        assert_eq!(read(value), None, "{value}");
    }
}

#[test]
fn calendar_agrees_with_http_dates() {
    let origin = at(0);
    for days in (0..130_000_u64).step_by(13) {
        let instant = at(days * 86_400 + 4_711);
        // `Sun, 06 Nov 1994 08:49:37 GMT`, taken apart and put together the other way round.
        let date = httpdate::fmt_http_date(instant);
        let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let month = months.find(&date[8..11]).unwrap() / 3 + 1;
        let text = format!("{}-{month:02}-{}T{}Z", &date[12..16], &date[5..7], &date[17..25]);
        let expected = instant.duration_since(origin).unwrap().min(LONGEST);
        assert_eq!(read(Unit::Iso8601, &text, origin), Some(expected), "{text}");
    }
}

#[test]
fn go_durations() {
    let read = |value| read(Unit::Duration, value, at(EXAMPLE));
    for (value, wait) in [
        ("0", 0),
        ("0s", 0),
        ("1h2m3.5s", 3_723_500),
        ("1.5h", 5_400_000),
        ("1s500ms", 1500),
        ("1500µs", 2), // U+00B5
        ("1500μs", 2), // U+03BC
        ("1us", 1),
        ("1ns", 1),
        ("8.64s", 8640),
    ] {
        assert_eq!(read(value), Some(ms(wait)), "{value}");
    }
    assert_eq!(read("99999999999999999999999h"), Some(LONGEST));
    for value in ["", "1", "1d", "s", ".5s", "5.s", "-1s", "+1s", "1 s", "1m 2s", "1S", "0x1s"] {
        assert_eq!(read(value), None, "{value}");
    }
}

#[test]
fn the_longest_wait_can_be_added_to_every_clock() {
    let _ = std::time::Instant::now() + LONGEST;
    let _ = tokio::time::Instant::now() + LONGEST;
    let _ = SystemTime::now() + LONGEST + LONGEST / 5;
}

const UNITS: [Unit; 8] = [
    Unit::Seconds,
    Unit::Millis,
    Unit::EpochSeconds,
    Unit::EpochMillis,
    Unit::Iso8601,
    Unit::Duration,
    Unit::HttpDate,
    Unit::RetryAfter,
];

/// Bytes of any kind, and text that is nearly a date, a number or a span.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[ \t]?[0-9]{0,30}[.]?[0-9]{0,30}[hmsun]{0,2}[0-9]{0,3}[ \t]?".prop_map(String::into_bytes),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}[.]?[0-9]{0,12}[Zz+-]?[0-9:]{0,6}"
            .prop_map(String::into_bytes),
        "(Mon|Tue|Wed|Sunday|Monday|Wednesday),? [0-9]{2}[ -](Jan|Feb|Dec)[ -][0-9]{2,4} [0-9:]{6,8} ?(GMT)?"
            .prop_map(String::into_bytes),
        "(Mon|Sat|Sun) (Jan|Feb|Dec) [ 0-9][0-9] [0-9:]{8} [0-9]{4}".prop_map(String::into_bytes),
    ]
}

fn any_now() -> impl Strategy<Value = SystemTime> {
    prop_oneof![
        (0..4_000_000_000_000_u64).prop_map(|millis| UNIX_EPOCH + ms(millis)),
        (0..4_000_000_000_u64).prop_map(|before| UNIX_EPOCH - secs(before)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_headers_make_it_panic(
        lines in proptest::collection::vec((0..4_usize, any_value()), 0..6),
        now in any_now(),
    ) {
        let names = [RETRY_AFTER, DATE, HeaderName::from_static("x-reset"), RETRY_AFTER];
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(&names[name], value);
            }
        }
        let declared = UNITS.map(|unit| WaitHeader::new(names[2].clone(), unit));
        for header in &declared {
            prop_assert!(header.read(&headers, now) <= Some(LONGEST));
        }
        prop_assert!(retry_after(&headers, now) <= Some(LONGEST));
        prop_assert!(first_wait(&declared, &headers, now) <= Some(LONGEST));
    }

    #[test]
    fn no_bytes_make_a_unit_panic(value in any_value(), now in any_now()) {
        for unit in UNITS {
            let _ = unit.read(&value, &mut || now);
        }
    }

    #[test]
    fn numbers_are_never_read_as_less(whole in 0..900_000_000_u64, fraction in "[0-9]{1,20}") {
        let wait = asked(&format!("{whole}.{fraction}")).unwrap();
        let millis: u64 = format!("{fraction:0<3}")[..3].parse().unwrap();
        let exact = secs(whole) + ms(millis);
        let more = fraction.len() > 3 && fraction[3..].bytes().any(|digit| digit != b'0');
        prop_assert_eq!(wait, exact + ms(more.into()));
    }
}
