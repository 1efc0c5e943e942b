//! Mistakes that other clients made with these headers, one a test.

use std::process::Command;

use super::*;
use crate::policy::backoff::Backoff;

fn declared(name: &'static str, unit: Unit) -> WaitHeader {
    WaitHeader::new(HeaderName::from_static(name), unit)
}

#[test]
fn c001_fractional_seconds_are_never_shortened() {
    assert_eq!(asked("0.503"), Some(ms(503)));
    assert_eq!(asked("0.129"), Some(ms(129)));
    for value in [".5", "5.", "1e3", "NaN", "nan", "inf", "Infinity"] {
        assert_eq!(asked(value), None, "{value}");
    }
}

#[test]
fn c002_units_are_no_hint() {
    assert_eq!(asked("1m0s"), None);
}

#[test]
fn c004_digits_decide_first() {
    for (value, wait) in [
        ("-3", None),
        ("+3", None),
        ("1.5", Some(ms(1500))),
        ("120 ", Some(secs(120))),
        ("\t 120\t", Some(secs(120))),
        ("0120", Some(secs(120))),
        ("2030", Some(secs(2030))),
        ("1 2", None),
    ] {
        assert_eq!(asked(value), wait, "{value:?}");
    }
}

#[test]
fn c005_too_many_digits_are_too_long_a_wait() {
    let nines = "9".repeat(400);
    for value in [
        "9999999999",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551616.5",
        "18446744073709551620", // ten times what wraps to 4
        &nines,
    ] {
        assert_eq!(asked(value), Some(LONGEST), "{value}");
    }
    let zeros = format!("{}7", "0".repeat(400));
    assert_eq!(asked(&zeros), Some(secs(7)));
}

#[test]
fn c006_a_date_is_waited_for() {
    let lines = headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]);
    assert_eq!(retry_after(&lines, at(EXAMPLE - 3)), Some(secs(3)));
}

#[test]
fn c008_what_is_no_date_is_no_hint() {
    for value in [
        "Sep 2027",
        "Jan 1 2030",
        "2027-09-01T00:00:00Z",
        "Wed, 31 Feb 2027 00:00:00 GMT",
        "Mon, 21 Oct 2015 07:28:00 GMT", // it was a Wednesday
        "Wed, 21 Oct 2015 07:28:00 +0200",
        "",
        " \t ",
    ] {
        assert_eq!(asked(value), None, "{value}");
    }
    for bytes in [&[0xFF; 1][..], &[0xFF; 29], b"12\xFF"] {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_bytes(bytes).unwrap());
        assert_eq!(retry_after(&headers, at(EXAMPLE)), None);
    }
}

#[test]
fn c009_the_local_time_zone_has_no_part_in_it() {
    const CHILD: &str = "REDIAL_TEST_IN_ZONE";
    let now = at(1_593_145_690); // 2020-06-26T04:28:10Z
    for value in ["Fri, 26 Jun 2020 04:28:20 GMT", "Fri Jun 26 04:28:20 2020"] {
        let lines = headers(&[("retry-after", value)]);
        assert_eq!(retry_after(&lines, now), Some(secs(10)));
    }
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    // The zone is read when a process starts, so this test runs itself again.
    let name = concat!(module_path!(), "::c009_the_local_time_zone_has_no_part_in_it");
    let (_crate, name) = name.split_once("::").unwrap();
    for zone in ["America/New_York", "Asia/Kolkata"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("TZ", zone)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{zone}: {printed}");
        assert!(printed.contains("1 passed"), "{zone}: {printed}");
    }
}

#[test]
fn c010_a_date_in_the_past_leaves_the_policys_own_wait() {
    let lines = headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]);
    let asked = retry_after(&lines, at(EXAMPLE + 120)).unwrap();
    assert_eq!(asked, Duration::ZERO);
    let backoff = Backoff::default().unjittered("to see growth alone");
    let waits: Vec<_> = (0..4).map(|retry| backoff.heed(backoff.wait_at(retry, None, 0), asked, 0)).collect();
    assert_eq!(waits, [200, 400, 800, 1600].map(ms));
}

#[test]
fn c012_units_are_the_headers_own_and_the_order_is_the_contracts() {
    let preferred = [
        declared("retry-after-ms", Unit::Millis),
        declared("x-ms-retry-after-ms", Unit::Millis),
        declared("retry-after", Unit::RetryAfter),
    ];
    let read = |lines| first_wait(&preferred, &headers(lines), at(EXAMPLE));
    let both = [("retry-after-ms", "1500"), ("retry-after", "2")];
    assert_eq!(read(&both), Some(ms(1500)));
    assert_eq!(read(&[("x-ms-retry-after-ms", "250")]), Some(ms(250)));
}

#[test]
fn c013_a_malformed_preference_leaves_the_word_to_the_next() {
    let preferred = [declared("retry-after-ms", Unit::Millis), declared("retry-after", Unit::RetryAfter)];
    for value in ["abc", ""] {
        let lines = headers(&[("retry-after-ms", value), ("retry-after", "3")]);
        let wait = first_wait(&preferred, &lines, at(EXAMPLE));
        assert_eq!(wait, Some(secs(3)), "{value:?}");
    }
}

#[test]
fn c016_a_reset_in_the_past_is_no_minimum() {
    let wait = read(Unit::EpochSeconds, "1700000000", at(1_700_000_010));
    assert_eq!(wait, Some(Duration::ZERO));
}

#[test]
fn c017_nothing_is_guessed_from_magnitude() {
    let now = at(1_562_287_900);
    for (unit, value, wait) in [
        (Unit::Seconds, "45", ms(45_000)),
        (Unit::EpochSeconds, "1562287945", ms(45_000)),
        (Unit::EpochSeconds, "1562287945.706", ms(45_706)),
        (Unit::EpochMillis, "1562287945706", ms(45_706)),
        // In the wrong unit: the past, or longer than any cap. Never a wait that looks plausible.
        (Unit::EpochSeconds, "45", Duration::ZERO),
        (Unit::Seconds, "1562287945", LONGEST),
        (Unit::EpochSeconds, "1562287945706", LONGEST),
    ] {
        assert_eq!(read(unit, value, now), Some(wait), "{unit:?} {value}");
    }
}

#[test]
fn c018_spans_and_instants_of_providers() {
    let now = at(1_705_314_570); // 2024-01-15T10:29:30Z
    for (value, wait) in [("6m0s", 360_000), ("500ms", 500), ("1m30.5s", 90_500)] {
        assert_eq!(read(Unit::Duration, value, now), Some(ms(wait)), "{value}");
    }
    let wait = read(Unit::Iso8601, "2024-01-15T10:30:00Z", now);
    assert_eq!(wait, Some(secs(30)));

    let lines =
        [("x-ratelimit-reset-requests", "6m0s"), ("anthropic-ratelimit-requests-reset", "2024-01-15T10:30:00Z")];
    assert_eq!(first_wait(&[], &headers(&lines), now), None);
    let preferred = [
        declared("x-ratelimit-reset-requests", Unit::Duration),
        declared("anthropic-ratelimit-requests-reset", Unit::Iso8601),
    ];
    let wait = first_wait(&preferred, &headers(&lines), now);
    assert_eq!(wait, Some(secs(360)));
    let lines = [lines[0], lines[1], ("retry-after", "2")];
    let wait = first_wait(&preferred, &headers(&lines), now);
    assert_eq!(wait, Some(secs(2)));
}

#[test]
fn c020_only_the_responses_headers_are_read() {
    // There is no way to hand in a request: what is left to show is that the response's word counts.
    let read: fn(&HeaderMap, SystemTime) -> Option<Duration> = retry_after;
    let response = headers(&[("retry-after", "5")]);
    assert_eq!(read(&response, at(EXAMPLE)), Some(secs(5)));
}

#[test]
fn c021_retry_after_outranks_reset_headers() {
    let preferred = [declared("x-ratelimit-reset", Unit::Seconds)];
    let lines = headers(&[
        ("retry-after", "1"),
        ("x-ratelimit-limit", "6"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "6"),
    ]);
    let wait = first_wait(&preferred, &lines, at(EXAMPLE));
    assert_eq!(wait, Some(secs(1)));
}

#[test]
fn c022_a_wait_of_exactly_the_cap_is_exactly_the_cap() {
    let cap = secs(60);
    assert_eq!(asked("60"), Some(cap));
    assert_eq!(read(Unit::Millis, "60000", at(EXAMPLE)), Some(cap));
    assert!(asked("61") > Some(cap) && asked("60.0001") > Some(cap));
}
