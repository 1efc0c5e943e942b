//! HTTP dates, by RFC 9110, section 5.6.7.

use std::time::UNIX_EPOCH;

use http::HeaderMap;
use http::header::{HeaderValue, RETRY_AFTER};
use redial::policy::{Unit, WaitHeader};

use crate::table::{self, Deviation, only, outcome};

const BEFORE_1970: &str = "D7: `httpdate` reads no year before 1970, and a wait until then is none";

const DEVIATIONS: &[Deviation] = &[Deviation(1, BEFORE_1970, "None"), Deviation(37, BEFORE_1970, "None")];

#[test]
fn http_date_table() {
    let json = include_str!("http_date.json");
    table::run("http_date", json, DEVIATIONS, |case| {
        only(case, &["format", "input", "unix"]);
        let format = case["format"].as_str().expect("the name of a form");
        assert!(["IMF-fixdate", "RFC850", "asctime"].contains(&format), "a form of RFC 9110: {format}");
        let text = case["input"].as_str().expect("a date");
        let value = HeaderValue::from_str(text).expect("a header value");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, value)]);
        // From the epoch, a wait until a date is the date; unless it is too long, so from near it.
        let near = case["unix"].as_u64().unwrap_or_default().saturating_sub(1000);
        let now = UNIX_EPOCH + std::time::Duration::from_secs(near);
        let ours = WaitHeader::new(RETRY_AFTER, Unit::HttpDate).read(&headers, now).map(|wait| near + wait.as_secs());
        outcome(format!("{:?}", case["unix"].as_i64()), format!("{ours:?}"))
    });
}
