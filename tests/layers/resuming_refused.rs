//! What is not resumed, and what is not spliced: the caller gets the error that broke the body, and never a wrong byte.

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use redial::{
    FaultKind, ResumeLayer,
    testing::{Reply, service},
};

use crate::{
    get, post, read,
    resuming::{ETAG, FILE, broken, call, call_with, download, given_up, header, layer, rest},
};

/// The download ends with what broke it, after so many resumes and for this reason.
#[track_caller]
fn ends(error: &redial::Error, resumes: u32, why: &str) {
    let (tried, text) = given_up(error);
    assert_eq!(tried, resumes, "{text}");
    assert!(text.ends_with(why), "{text}");
    assert!(error.is_body(), "{error}");
    assert!(error.to_string().contains(why), "{error}");
    assert!(error.find_source::<hyper::Error>().is_some(), "the original error is in the chain");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_resumed_passes_through() {
    let half = || Reply::ok(&FILE[..3]).header("content-length", "10");
    let part = |range: &str| Reply::status(206).body(&FILE[..3]).header("etag", ETAG).header("content-range", range);
    for (name, reply, why) in [
        ("a weak ETag", half().header("etag", "W/\"v1\"").close_within(), "it has no strong ETag"),
        ("no ETag", half().close_within(), "it has no strong ETag"),
        (
            "a date",
            half().header("last-modified", "Tue, 01 Dec 2020 00:00:00 GMT").close_within(),
            "it has no strong ETag",
        ),
        ("two ETags", half().header("etag", ETAG).header("etag", ETAG).close_within(), "it has no strong ETag"),
        (
            "encoded",
            half().header("etag", ETAG).header("content-encoding", "gzip").close_within(),
            "its content is encoded",
        ),
        ("an unknown length", Reply::ok(&FILE[..3]).header("etag", ETAG).close_within(), "its length is not known"),
        (
            "another status",
            Reply::status(203).body("012").header("content-length", "10").header("etag", ETAG).close_within(),
            "203 holds nothing of it",
        ),
        (
            "a failure",
            Reply::status(404).body("012").header("content-length", "10").header("etag", ETAG).close_within(),
            "404 holds nothing of it",
        ),
        (
            "an unasked range that does not fit",
            part("bytes 0-9/10").header("content-length", "9").close_within(),
            "the range is not the one that is missing",
        ),
        ("a range without places", part("bytes */10").close_within(), "the range is not the one that is missing"),
        (
            "parts",
            part("bytes 0-9/10").header("content-type", "multipart/byteranges; boundary=x").close_within(),
            "it comes in several parts",
        ),
    ] {
        let server = service([reply, rest(3)]);
        let error = download(&server).await.expect_err(name);
        ends(&error, 0, why);
        server.seen().sent(1);
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_resumed() {
    let with = |mut request: Request<Full<Bytes>>, name: &'static str, values: &[&'static str]| {
        for value in values {
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
        request
    };
    let with_body = Request::get("/file").body(Full::from("a query")).unwrap();
    for request in [
        post("/file"),
        with_body,
        Request::put("/file").body(Full::default()).unwrap(),
        with(get("/file"), "range", &["bytes=0-4", "bytes=6-9"]),
        with(get("/file"), "upgrade", &["websocket"]),
    ] {
        let name = format!("{request:?}");
        let server = service([broken(3), rest(3)]);
        let response = call(&server, request).await.unwrap();
        let error = read(response.into_body()).await.expect_err(&name);
        assert!(error.is_body() && error.find_source::<redial::layers::NotResumed>().is_none(), "{error}");
        assert_eq!(error.fault().unwrap().kind(), FaultKind::Body);
        server.seen().sent(1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_is_not_touched() {
    let server = service([broken(3)]);
    let request = Request::head("/file").body(Full::default()).unwrap();
    let response = call(&server, request).await.unwrap();
    assert_eq!(
        (&response.headers()["content-length"], &response.headers()["etag"]),
        (&HeaderValue::from(10), &HeaderValue::from_static(ETAG))
    );
    assert_eq!(read(response.into_body()).await.unwrap(), "");
    assert_eq!(header(&server.seen().sent(1).requests[0], "range"), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_rest_is_not_spliced() {
    let other = |range: &str| Reply::status(206).body("XXXXXXX").header("etag", ETAG).header("content-range", range);
    let tagged =
        |etag: &str| Reply::status(206).body("XXXXXXX").header("etag", etag).header("content-range", "bytes 3-9/10");
    const RANGE: &str = "the range is not the one that is missing";
    for (name, reply, why) in [
        (
            "another version",
            Reply::ok("XXXXXXXXXX").header("etag", "\"v2\""),
            "the content has changed, or the server knows no ranges",
        ),
        ("no ranges", Reply::ok(FILE).header("etag", ETAG), "the content has changed, or the server knows no ranges"),
        ("another ETag", tagged("\"v2\""), "the rest has another ETag"),
        ("the same ETag, weak", tagged("W/\"v1\""), "the rest has another ETag"),
        (
            "no ETag",
            Reply::status(206).body("XXXXXXX").header("content-range", "bytes 3-9/10"),
            "the rest has another ETag",
        ),
        ("no range", Reply::status(206).body("XXXXXXX").header("etag", ETAG), RANGE),
        ("an earlier range", other("bytes 2-8/10"), RANGE),
        ("a later range", other("bytes 4-10/11"), RANGE),
        ("a shorter range", other("bytes 3-8/10").header("content-length", "6"), RANGE),
        ("all of it", other("bytes 0-9/10"), RANGE),
        ("another total", other("bytes 3-9/11"), RANGE),
        ("a range that cannot be read", other("bytes three-9/10"), RANGE),
        ("another unit", other("items 3-9/10"), RANGE),
        ("two ranges", other("bytes 3-9/10").header("content-range", "bytes 3-9/10"), RANGE),
        (
            "a body longer than its range",
            Reply::status(206).body("XXXXXXXX").header("etag", ETAG).header("content-range", "bytes 3-9/10"),
            RANGE,
        ),
        (
            "parts",
            other("bytes 3-9/10").header("content-type", "Multipart/ByteRanges; boundary=x"),
            "it comes in several parts",
        ),
        ("encoded", other("bytes 3-9/10").header("content-encoding", "gzip"), "its content is encoded"),
        ("a failed precondition", Reply::status(412), "412 holds nothing of it"),
        ("no such range", Reply::status(416).header("content-range", "bytes */3"), "416 holds nothing of it"),
        ("gone", Reply::status(404), "404 holds nothing of it"),
    ] {
        let server = service([broken(3), reply, rest(3)]);
        let mut body = call(&server, get("/file")).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "012", "{name}");
        let error = body.frame().await.unwrap().expect_err(name);
        ends(&error, 1, why);
        assert!(body.frame().await.is_none(), "{name}: it ends once");
        server.seen().sent(2);
    }
}

/// The range's head is right, and its body is not.
#[tokio::test(start_paused = true)]
async fn a_body_longer_than_its_range_is_cut_off_with_an_error() {
    let long = Reply::status(206).body("345").pause(std::time::Duration::from_millis(1)).body("6789XXX");
    let long = long.header("etag", ETAG).header("content-range", "bytes 3-9/10").trailer("x-sum", "7");
    let server = service([broken(3), long]);
    let mut body = call(&server, get("/file")).await.unwrap().into_body();
    let mut got = Vec::new();
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => got.extend(frame.into_data().unwrap()),
            Err(error) => break error,
        }
    };
    assert_eq!(got, b"012345", "nothing beyond what is known to be there");
    assert_eq!(given_up(&error).1, "given up after 1 resume: it is longer than its head says");
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_call_that_fails_is_the_end() {
    let server = service([broken(3), Reply::status(503)]);
    ends(&download(&server).await.unwrap_err(), 1, "503 holds nothing of it");
    server.seen().sent(1 + 3);

    let server = service([broken(3), Reply::reset()]);
    let error = download(&server).await.unwrap_err();
    let (resumes, why) = given_up(&error);
    assert!(resumes == 1 && why.contains("the request for the rest failed (shop any: the request failed"), "{why}");
    assert_eq!(
        redial::Fault::read(error.find_source::<hyper::Error>().unwrap()).kind(),
        FaultKind::Closed,
        "the first"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_broke_after_its_last_byte_is_an_error_and_nothing_is_asked_for() {
    let server =
        service([Reply::ok(FILE).header("content-length", "10").header("etag", ETAG).trailer("x", "y").close_within()]);
    let mut body = call(&server, get("/file")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), FILE);
    ends(&body.frame().await.unwrap().unwrap_err(), 0, "nothing of it is missing");
    server.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_resumes_is_bounded() {
    let empty = Reply::status(206)
        .header("etag", ETAG)
        .header("content-range", "bytes 3-9/10")
        .header("content-length", "7")
        .close_within();
    let server = service([broken(3), empty.clone()]);
    ends(&download(&server).await.unwrap_err(), 5, "all resumes made");
    server.seen().sent(1 + 5);

    let server = service([broken(3), empty]);
    let response = call_with(layer().resumes(2), &server, get("/file")).await.unwrap();
    ends(&read(response.into_body()).await.unwrap_err(), 2, "all resumes made");

    let server = service([broken(3), rest(3)]);
    let response = call_with(ResumeLayer::new().resumes(0), &server, get("/file")).await.unwrap();
    ends(&read(response.into_body()).await.unwrap_err(), 0, "all resumes made");
    server.seen().sent(1);
}

/// What nobody knows does not pass by itself (S1).
#[tokio::test(start_paused = true)]
async fn an_error_that_nobody_knows_is_final() {
    use tower::{Layer, ServiceExt};
    let inner = tower::service_fn(|_: Request<Full<Bytes>>| async {
        let body = http_body_util::Limited::new(Full::<Bytes>::from(FILE), 4);
        Ok::<_, redial::BoxError>(http::Response::builder().header("etag", ETAG).body(body).unwrap())
    });
    let response = layer().layer(inner).oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: what broke it does not pass".to_owned()));

    // A timeout layer that saw it fail makes it no better known.
    let timeout = redial::TimeoutLayer::new().body_idle(std::time::Duration::from_secs(1));
    let response = layer().layer(timeout.layer(inner)).oneshot(get("/file")).await.unwrap();
    let error = read(response.into_body()).await.unwrap_err();
    assert_eq!(given_up(&error), (0, "not resumed: what broke it does not pass".to_owned()));
}
