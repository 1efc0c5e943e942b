//! What is fed with arbitrary bytes, here over a kept corpus and in `fuzz/` by a fuzzer: nothing may panic, nothing may
//! grow without bound, and what must hold of the results is asserted.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use redial::{
    BoxError, Clock, Evidence, Outcome, Plan, Policy, RequestHead, RequestOptions, ResumeLayer, Routes, StandardPolicy,
    Timeouts, Transient, Unit, policy::WaitHeader,
};
use tower::{Layer, ServiceExt};

pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("retry_signals", retry_signals),
    ("dates", dates),
    ("path_patterns", path_patterns),
    ("request_options", request_options),
    ("resumed_ranges", resumed_ranges),
    #[cfg(feature = "contract")]
    ("contracts", contracts),
];

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

/// 2026-11-30T12:00:00Z.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_796_040_000)
}

fn headers(name: &HeaderName, data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Several lines of one name, as a server may send.
    for line in data.split(|byte| *byte == b'\n').take(16) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    headers
}

/// Waits, in each unit: whatever is read can be added to any instant.
pub fn retry_signals(data: &[u8]) {
    let name = HeaderName::from_static("retry-after");
    let headers = headers(&name, data);
    for unit in UNITS {
        if let Some(wait) = WaitHeader::new(name.clone(), unit).read(&headers, now()) {
            assert!(now().checked_add(wait).is_some(), "{unit:?}: {wait:?}");
            assert!(tokio::time::Instant::now().checked_add(wait).is_some(), "{unit:?}: {wait:?}");
        }
    }
    // The policy reads the same, and never less than the standard header alone says.
    let standard = WaitHeader::new(name, Unit::RetryAfter).read(&headers, now());
    let policy = policy().clock(Clock::fixed(now())).build().expect("a policy");
    let plan = policy.plan(&RequestHead::of(&Request::new(())));
    let verdict = policy.judge(&plan, &Outcome::answer(StatusCode::TOO_MANY_REQUESTS, &headers));
    assert_eq!(verdict.hint().wait, standard);
}

/// Dates: a date that is read is read alike whichever clock is asked, less the time between.
pub fn dates(data: &[u8]) {
    let name = HeaderName::from_static("x-reset");
    let headers = headers(&name, data);
    let later = now() + Duration::from_secs(3600);
    for unit in [Unit::HttpDate, Unit::Iso8601] {
        let header = WaitHeader::new(name.clone(), unit);
        let (from_now, from_later) = (header.read(&headers, now()), header.read(&headers, later));
        assert_eq!(from_now.is_some(), from_later.is_some());
        if let (Some(from_now), Some(from_later)) = (from_now, from_later) {
            assert!(from_later <= from_now);
            assert!(from_now <= from_later + Duration::from_secs(3600));
        }
    }
}

/// Routes and paths: what cannot be read is refused with a reason, what can is looked up.
pub fn path_patterns(data: &[u8]) {
    let text = String::from_utf8_lossy(&data[..data.len().min(4096)]);
    let (routes, path) = text.split_once('\0').unwrap_or((&text, "/a/b"));
    let unrouted = StandardPolicy::unretried("unrouted", Duration::from_secs(1)).expect("a policy");
    let mut builder = Routes::builder(unrouted);
    for route in routes.lines().take(16) {
        builder = builder.route(route, policy().build().expect("a policy"));
    }
    match builder.build() {
        Err(refused) => assert!(refused.problems().next().is_some()),
        Ok(routes) => {
            for uri in [path.to_owned(), format!("https://api.example{path}"), format!("//{path}")] {
                if let Ok(request) = Request::get(uri).body(()) {
                    let plan = routes.plan(&RequestHead::of(&request));
                    assert!(plan.max_attempts() >= 1);
                }
            }
        }
    }
}

/// Options of a request: whatever they say, a plan is never looser than its policy.
pub fn request_options(data: &[u8]) {
    let number = |at: usize| {
        let mut bytes = [0; 8];
        for (byte, place) in data.iter().skip(at).zip(&mut bytes) {
            *place = *byte;
        }
        u64::from_le_bytes(bytes)
    };
    let mut options = RequestOptions::new()
        .attempts(number(0) as u32)
        .attempt(Duration::from_nanos(number(4)))
        .total(Duration::from_secs(number(12)));
    if data.len() % 2 == 0 {
        options = options.idempotent(String::from_utf8_lossy(&data[..data.len().min(64)]));
    }
    let mut request = Request::builder().method(Method::POST).uri("/").body(()).expect("a request");
    request.extensions_mut().insert(options);
    let policy = policy().build().expect("a policy");
    let plan: Plan = policy.plan(&RequestHead::of(&request));
    assert!((1..=3).contains(&plan.max_attempts()));
    assert!(plan.timeouts().attempt <= Duration::from_secs(1) && plan.timeouts().total <= Duration::from_secs(9));
    assert!(matches!(plan.evidence(), None | Some(Evidence::Stated(_))));
}

/// What a server says of the rest of a broken download: lines of `Content-Range` and `ETag`, and a body. Whatever they
/// are, nothing is spliced to the three bytes that came first but the seven that are missing.
pub fn resumed_ranges(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut value = || HeaderValue::from_bytes(parts.next().unwrap_or_default());
    let (Ok(range), Ok(etag)) = (value(), value()) else { return };
    let rest = parts.next().unwrap_or_default().to_vec();
    let whole = [b"012", &*rest].concat();
    let rightly = etag == ETAG && rest.len() == 7;
    let got = download(range.clone(), etag, rest);
    assert!(got.starts_with(b"012"));
    if got.len() > 3 {
        let text = range.to_str().expect("a range that was read").trim().to_ascii_lowercase();
        // A number may have leading zeros, and the total may be left out.
        let said: Vec<_> = text.split([' ', '-', '/']).map(|word| word.trim_start_matches('0')).collect();
        assert!(rightly && matches!(*said, ["bytes", "3", "9", "10" | "*"]), "{text}");
        assert_eq!(got, whole);
    }
}

const ETAG: &str = "\"v1\"";

/// All that a caller gets: of ten bytes three come, and then this is the answer to a request for the rest.
fn download(range: HeaderValue, etag: HeaderValue, rest: Vec<u8>) -> Vec<u8> {
    let server = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let mut response = if request.headers().contains_key("range") {
            let mut response = Response::new(Part { data: Some(rest.clone()), length: rest.len() as u64 });
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert("content-range", range.clone());
            response.headers_mut().insert("etag", etag.clone());
            response
        } else {
            Response::new(Part { data: Some(b"012".to_vec()), length: 10 })
        };
        response.headers_mut().entry("etag").or_insert(HeaderValue::from_static(ETAG));
        async move { Ok::<_, BoxError>(response) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let request = Request::get("/").body(Full::default()).expect("a request");
        let response = ResumeLayer::new().layer(server).oneshot(request).await.expect("an answer");
        let (mut body, mut got) = (response.into_body(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            got.extend(frame.into_data().expect("no trailers"));
        }
        got
    })
}

/// A body that says how long it is, and may end before.
struct Part {
    data: Option<Vec<u8>>,
    length: u64,
}

impl Body for Part {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// Contracts: whatever is written, it is refused with its places within the text, or it is a policy that plans.
#[cfg(feature = "contract")]
pub fn contracts(data: &[u8]) {
    use redial::contract::Contract;

    let text = String::from_utf8_lossy(&data[..data.len().min(16 * 1024)]);
    let lines = text.split('\n').count();
    match Contract::parse("fuzzed", text.as_ref()) {
        Err(refused) => {
            assert!(!refused.findings().is_empty());
            for finding in refused.findings() {
                assert!((1..=lines).contains(&finding.line()) && finding.column() >= 1, "{finding:?}");
            }
            assert!(!refused.to_string().is_empty());
        }
        Ok(contract) => {
            for uri in ["https://api.shop.example/orders/7", "/", "http://other/"] {
                let request = Request::get(uri).body(()).expect("a request");
                let plan = contract.plan(&RequestHead::of(&request));
                assert!((1..10).contains(&plan.max_attempts()) && plan.timeouts().total <= Duration::from_secs(86_400));
            }
        }
    }
}

fn policy() -> redial::policy::StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(9) };
    StandardPolicy::builder("fuzzed", timeouts, Transient::usual())
}
