//! `ResumeLayer`: a broken download goes on.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use redial::{
    Error, ResumeLayer, RetryLayer, StandardPolicy,
    layers::{NotResumed, ResumeBody},
    retry::Retry,
    testing::{Events, Reply, ReplyBody, ScriptService, SeenRequest, Server, service},
};
use sha2::{Digest, Sha256};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::{
    file::FileServer,
    get, paused, read,
    support::{WIRES, Wire, hyper_client, noise, policy, soon},
    wait,
};

pub const FILE: &str = "0123456789";
pub const ETAG: &str = "\"v1\"";

type Stack = Retry<ScriptService, StandardPolicy>;
pub type Download = Response<ResumeBody<Stack, Full<Bytes>, redial::AnswerBody<ReplyBody>>>;

/// The file, of which so many bytes come before the connection closes.
pub fn broken(bytes: usize) -> Reply {
    Reply::ok(&FILE[..bytes]).header("content-length", "10").header("etag", ETAG).close_within()
}

/// A part that is answered 206, as far as the head says.
pub fn part(first: usize, range: &str) -> Reply {
    Reply::status(206).body(&FILE[first..]).header("etag", ETAG).header("content-range", range)
}

/// All that is left, as it should be.
pub fn rest(first: usize) -> Reply {
    part(first, &format!("bytes {first}-9/10"))
}

pub fn layer() -> ResumeLayer {
    ResumeLayer::new().backoff(wait()).unwrap()
}

pub async fn call_with(
    layer: ResumeLayer,
    server: &ScriptService,
    request: Request<Full<Bytes>>,
) -> Result<Download, Error> {
    let stack = RetryLayer::new(paused().build().unwrap()).layer(server.clone());
    layer.layer(stack).oneshot(request).await
}

pub async fn call(server: &ScriptService, request: Request<Full<Bytes>>) -> Result<Download, Error> {
    call_with(layer(), server, request).await
}

/// What the caller gets of a `GET`.
pub async fn download(server: &ScriptService) -> Result<Bytes, Error> {
    read(call(server, get("/file")).await?.into_body()).await
}

pub fn header<'a>(request: &'a SeenRequest, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().unwrap())
}

fn asked(request: &SeenRequest) -> (Option<&str>, Option<&str>) {
    (header(request, "range"), header(request, "if-range"))
}

pub fn given_up(error: &Error) -> (u32, String) {
    let given_up: &NotResumed = error.find_source().expect("why it was not resumed");
    (given_up.resumes(), given_up.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_broken_download_goes_on_where_it_broke() {
    let server = service([broken(3), rest(3)]);
    assert_eq!(download(&server).await.unwrap(), FILE);
    let seen = server.seen();
    assert_eq!(asked(&seen.sent(2).requests[0]), (None, None));
    assert_eq!(asked(&seen.requests[1]), (Some("bytes=3-9"), Some(ETAG)));
    assert_eq!(seen.gaps(), [Duration::from_millis(100)], "not at once");
}

#[tokio::test(start_paused = true)]
async fn as_often_as_it_breaks() {
    let again = |from: usize, to: usize| {
        let range = format!("bytes {from}-9/10");
        let reply = Reply::status(206).body(&FILE[from..to]).header("etag", ETAG).header("content-range", range);
        reply.header("content-length", (10 - from).to_string()).reset_within()
    };
    let server = service([broken(1), again(1, 4), again(4, 4), again(4, 9), rest(9)]);
    assert_eq!(download(&server).await.unwrap(), FILE);
    let seen = server.seen();
    let ranges: Vec<_> = seen.requests.iter().filter_map(|request| header(request, "range")).collect();
    assert_eq!(ranges, ["bytes=1-9", "bytes=4-9", "bytes=4-9", "bytes=9-9"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_request_is_a_call_of_its_own() {
    let server = service([broken(3), Reply::status(503), Reply::reset(), rest(3)]);
    assert_eq!(download(&server).await.unwrap(), FILE, "the retry layer below repeats it");
    server.seen().sent(4);
}

#[tokio::test(start_paused = true)]
async fn the_request_is_the_same_but_for_its_range() {
    let mut request = get("/file?part=1");
    let headers = request.headers_mut();
    headers.insert("authorization", HeaderValue::from_static("Bearer secret"));
    headers.append("x-twice", HeaderValue::from_static("a"));
    headers.append("x-twice", HeaderValue::from_static("b"));
    // What has come is what these would compare with.
    headers.insert("if-none-match", HeaderValue::from_static("\"v0\""));
    headers.insert("if-modified-since", HeaderValue::from_static("Tue, 01 Dec 2026 00:00:00 GMT"));
    let server = service([broken(3), rest(3)]);
    let response = call(&server, request).await.unwrap();
    assert_eq!(read(response.into_body()).await.unwrap(), FILE);
    let seen = server.seen();
    let [first, second] = &seen.sent(2).requests[..] else { unreachable!() };
    assert_eq!(second.path, "/file?part=1");
    assert_eq!(header(second, "authorization"), Some("Bearer secret"));
    assert_eq!(second.headers.get_all("x-twice").iter().count(), 2);
    assert_eq!((header(first, "if-none-match"), header(first, "if-modified-since").is_some()), (Some("\"v0\""), true));
    assert_eq!((header(second, "if-none-match"), header(second, "if-modified-since")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_caller_s_own_range_is_resumed_within_it() {
    let ranged = |range: &'static str| {
        let mut request = get("/file");
        request.headers_mut().insert("range", HeaderValue::from_static(range));
        request
    };
    let first = |range: &str, length: &str, body: &'static str| {
        let reply = Reply::status(206).body(body).header("etag", ETAG).header("content-range", range);
        reply.header("content-length", length).close_within()
    };
    for (range, said, length, begun, asked, rest, whole) in [
        ("bytes=2-6", "bytes 2-6/10", "5", "23", "bytes=4-6", ("bytes 4-6/10", "456"), "23456"),
        ("bytes=2-", "bytes 2-9/10", "8", "23", "bytes=4-9", ("bytes 4-9/10", "456789"), "23456789"),
        ("bytes=-3", "bytes 7-9/10", "3", "7", "bytes=8-9", ("bytes 8-9/10", "89"), "789"),
        // The total may be unknown, of the range and of its rest.
        ("bytes=2-6", "bytes 2-6/*", "5", "23", "bytes=4-6", ("bytes 4-6/*", "456"), "23456"),
        ("bytes=2-6", "bytes 2-6/*", "5", "23", "bytes=4-6", ("bytes 4-6/10", "456"), "23456"),
        ("bytes=2-6", "bytes 2-6/10", "5", "23", "bytes=4-6", ("bytes 4-6/*", "456"), "23456"),
    ] {
        let second = Reply::status(206).body(rest.1).header("etag", ETAG).header("content-range", rest.0);
        let server = service([first(said, length, begun), second]);
        let response = call(&server, ranged(range)).await.unwrap();
        assert_eq!(response.status(), 206);
        assert_eq!(read(response.into_body()).await.unwrap(), whole, "{range}");
        assert_eq!(header(&server.seen().requests[1], "range"), Some(asked), "{range}");
    }
}

/// A server may answer a range with all of it.
#[tokio::test(start_paused = true)]
async fn all_in_answer_to_a_range_is_resumed_as_all() {
    let mut request = get("/file");
    request.headers_mut().insert("range", HeaderValue::from_static("bytes=2-6"));
    let server = service([broken(3), rest(3)]);
    let response = call(&server, request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(read(response.into_body()).await.unwrap(), FILE);
    assert_eq!(header(&server.seen().requests[1], "range"), Some("bytes=3-9"));
}

#[tokio::test(start_paused = true)]
async fn sizes_trailers_and_ends_are_exact() {
    let server = service([broken(3), rest(3).trailer("x-sum", "7").header("content-length", "7")]);
    let mut body = call(&server, get("/file")).await.unwrap().into_body();
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(10), false));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "012");
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(7), false));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "3456789");
    assert_eq!(body.size_hint().exact(), Some(0));
    assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap()["x-sum"], "7");
    assert!(body.frame().await.is_none() && body.is_end_stream());
    assert!(format!("{body:?}").contains("resumes: 1"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_early_without_an_error_goes_on() {
    let short = tower::service_fn(|request: Request<Full<Bytes>>| async move {
        /// Says ten bytes, and ends after three.
        struct Short(Option<&'static str>, u64);
        impl Body for Short {
            type Data = Bytes;
            type Error = redial::BoxError;
            fn poll_frame(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, redial::BoxError>>> {
                std::task::Poll::Ready(self.0.take().map(|text| Ok(http_body::Frame::data(text.into()))))
            }
            fn size_hint(&self) -> http_body::SizeHint {
                http_body::SizeHint::with_exact(self.1)
            }
        }
        let response = Response::builder().header("etag", ETAG);
        Ok::<_, redial::BoxError>(match request.headers().get("range") {
            None => response.body(Short(Some("012"), 10)).unwrap(),
            Some(_) => {
                let response = response.status(206).header("content-range", "bytes 3-9/10");
                response.body(Short(Some("3456789"), 7)).unwrap()
            }
        })
    });
    let response = layer().layer(short).oneshot(get("/file")).await.unwrap();
    assert_eq!(read(response.into_body()).await.unwrap(), FILE);
}

#[tokio::test(start_paused = true)]
async fn a_resume_is_one_debug_event() {
    let events = Events::capture();
    let server = service([broken(3), rest(3)]);
    let response = call(&server, get("http://shop.example/file?token=secret")).await.unwrap();
    read(response.into_body()).await.unwrap();
    let all = events.all();
    let resumed: Vec<_> = all.iter().filter(|event| event.get("outcome") == "resuming").collect();
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0].get("url"), "http://shop.example/file");
    assert_eq!(
        (resumed[0].get("resume"), resumed[0].get("first_byte"), resumed[0].get("error.type")),
        ("1", "3", "closed")
    );
    events.no_error();
}

#[tokio::test]
async fn over_sockets() {
    let file = noise(300_000);
    for wire in WIRES {
        let half = Reply::ok(file.slice(..150_000)).header("content-length", "300000").header("etag", ETAG);
        let half = match wire {
            Wire::Http1 => half.close_within(),
            Wire::Http2 => half.reset_stream_within(redial::testing::Reason::InternalError),
        };
        let rest = Reply::status(206).body(file.slice(150_000..)).header("etag", ETAG);
        let script = [half, rest.header("content-range", "bytes 150000-299999/300000")];
        let server = match wire {
            Wire::Http1 => Server::http1(script),
            Wire::Http2 => Server::http2(script),
        };
        let client = ServiceBuilder::new()
            .layer(
                ResumeLayer::new()
                    .backoff(
                        redial::Backoff::exponential(Duration::from_millis(20))
                            .floor(Duration::from_millis(1))
                            .max(Duration::from_millis(40)),
                    )
                    .unwrap(),
            )
            .layer(RetryLayer::new(policy().build().unwrap()))
            .service(hyper_client(wire));
        let response = soon(client.oneshot(get(&server.url("/file")))).await.unwrap();
        assert_eq!(soon(read(response.into_body())).await.unwrap(), file, "{wire:?}");
        assert_eq!(header(&server.seen().sent(2).requests[1], "range"), Some("bytes=150000-299999"));
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn printed_a_server_is_killed_in_the_middle_of_a_download() {
    let file = noise(16 << 20);
    let server = FileServer::start(0, file.clone(), ETAG).await;
    let addr = server.addr;
    let mut client = ServiceBuilder::new()
        .layer(ResumeLayer::new())
        .layer(RetryLayer::new(policy().build().unwrap()))
        .service(hyper_client(Wire::Http1));
    let request = get(&format!("http://{addr}/file"));
    let response = soon(client.ready().await.unwrap().call(request)).await.unwrap();
    let mut body = response.into_body();
    let mut got = Vec::new();
    while got.len() < 1 << 20 {
        got.extend_from_slice(&soon(body.frame()).await.unwrap().unwrap().into_data().unwrap());
    }
    let at_kill = got.len();
    let mut seen = server.kill().await;
    let server = FileServer::start(addr.port(), file.clone(), ETAG).await;
    while let Some(frame) = soon(body.frame()).await {
        got.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    seen.extend(server.seen());
    println!("killed after {at_kill} of {} bytes were read; the servers saw: {}", file.len(), seen.join(", "));
    println!("  file     {}\n  download {}", hex(&file), hex(&got));
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[1].ends_with("-> 206"), "{seen:?}");
    assert_eq!((got.len(), hex(&got)), (file.len(), hex(&file)));

    // Another file under the same name is never spliced to the first.
    let response = soon(client.ready().await.unwrap().call(get(&format!("http://{addr}/file")))).await.unwrap();
    let mut body = response.into_body();
    soon(body.frame()).await.unwrap().unwrap();
    server.kill().await;
    let _other = FileServer::start(addr.port(), noise(16 << 20).slice(1..), "\"v2\"").await;
    let error = soon(read(body)).await.unwrap_err();
    println!("  after a change of the file: {error}");
    assert_eq!(
        given_up(&error),
        (1, "given up after 1 resume: the content has changed, or the server knows no ranges".to_owned())
    );
}
