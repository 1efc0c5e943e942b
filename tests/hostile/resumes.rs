//! Downloads that break, against servers and layers that do not play along.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use redial::{Backoff, BoxError, Deadline, OutboundHints, ResumeLayer, RetryLayer};
use tokio::time::{Instant, timeout};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::decompression::DecompressionLayer;

use crate::{
    policies::policy,
    script::{ms, secs},
};

type Stream = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

fn get() -> Request<Full<Bytes>> {
    Request::get("http://files.example/a").body(Full::default()).unwrap()
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// A body of this text, which then breaks, of this length by its head.
struct Promised(Stream, u64);

impl Body for Promised {
    type Data = Bytes;
    type Error = BoxError;
    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        std::pin::Pin::new(&mut self.0).poll_frame(cx)
    }
    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.1)
    }
}

fn frames(frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Stream {
    BodyExt::boxed_unsync(StreamBody::new(stream::iter(frames)))
}

fn breaking(text: &'static str, promised: u64) -> Response<Promised> {
    let body = Promised(frames(vec![Ok(Frame::data(Bytes::from_static(text.as_bytes()))), Err(reset())]), promised);
    Response::builder().header("etag", "\"v1\"").body(body).unwrap()
}

fn layer() -> ResumeLayer {
    ResumeLayer::new().backoff(Backoff::fixed(ms(100), "tests are exact")).unwrap()
}

/// "A `Deadline` in the request's extensions bounds all of it", whatever stands below.
#[tokio::test(start_paused = true)]
async fn a_deadline_bounds_the_request_for_the_rest() {
    let client = service_fn(|request: Request<Full<Bytes>>| async move {
        if request.headers().contains_key("range") {
            std::future::pending::<()>().await;
        }
        Ok::<_, BoxError>(breaking("012", 10))
    });
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(secs(2)));
    let start = Instant::now();
    let response = layer().layer(client).oneshot(request).await.unwrap();
    let read = timeout(secs(3_600), response.into_body().collect()).await;
    assert!(read.is_ok(), "it waits for ever");
    assert_eq!(start.elapsed(), secs(2));
}

/// A caller's deadline that the request carries as a hint: a wait that would cross it is not begun.
#[tokio::test(start_paused = true)]
async fn a_hinted_deadline_bounds_the_wait_before_a_resume() {
    let client =
        service_fn(|_: Request<redial::AttemptBody<Full<Bytes>>>| async { Ok::<_, BoxError>(breaking("012", 10)) });
    let long = ResumeLayer::new().backoff(Backoff::fixed(secs(30), "tests are exact")).unwrap();
    let stack = ServiceBuilder::new().layer(long).layer(RetryLayer::new(policy())).service(client);
    let mut request = get();
    request.extensions_mut().insert(OutboundHints::new().with_deadline(Deadline::after(secs(1))));
    let start = Instant::now();
    let response = stack.oneshot(request).await.unwrap();
    response.into_body().collect().await.map(drop).unwrap_err();
    assert!(start.elapsed() <= secs(1), "the caller had gone for long: {:?}", start.elapsed());
}

/// The same by scope: a wait beyond the caller's deadline is in vain.
#[tokio::test(start_paused = true)]
async fn a_scoped_deadline_bounds_the_wait_before_a_resume() {
    let client =
        service_fn(|_: Request<redial::AttemptBody<Full<Bytes>>>| async { Ok::<_, BoxError>(breaking("012", 10)) });
    let long = ResumeLayer::new().backoff(Backoff::fixed(secs(30), "tests are exact")).unwrap();
    let stack = ServiceBuilder::new().layer(long).layer(RetryLayer::new(policy())).service(client);
    let start = Instant::now();
    let call = async { stack.oneshot(get()).await.unwrap().into_body().collect().await.map(drop).unwrap_err() };
    OutboundHints::new().with_deadline(Deadline::after(secs(1))).scope(call).await;
    assert!(start.elapsed() <= secs(1), "the caller had gone for long: {:?}", start.elapsed());
}

/// gzip of 1000 times `a`, made by hand: a stored block, so that its length is known.
fn gzip_of(text: &[u8]) -> Bytes {
    fn crc(text: &[u8]) -> u32 {
        !text.iter().fold(!0_u32, |mut crc, byte| {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            }
            crc
        })
    }
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    // Fixed Huffman of one literal and a run would be shorter; stored is plain.
    out.push(1);
    out.extend((text.len() as u16).to_le_bytes());
    out.extend((!(text.len() as u16)).to_le_bytes());
    out.extend(text);
    out.extend(crc(text).to_le_bytes());
    out.extend((text.len() as u32).to_le_bytes());
    out.into()
}

/// "Outside decompression: the length is not known there, and nothing is resumed." What is not resumed passes through
/// untouched: a range that comes encoded, whole and unbroken, is read to its end.
#[tokio::test(start_paused = true)]
async fn a_range_through_decompression_passes_untouched() {
    let text = vec![b'a'; 1_000];
    let packed = gzip_of(&text);
    let client = service_fn(move |_: Request<Full<Bytes>>| {
        let packed = packed.clone();
        async move {
            let range = format!("bytes 0-{}/{}", packed.len() - 1, packed.len());
            let head = Response::builder().status(206).header("etag", "\"v1-gzip\"").header("content-encoding", "gzip");
            Ok::<_, BoxError>(head.header("content-range", range).body(Full::new(packed)).unwrap())
        }
    });
    let read = |request| {
        let client = DecompressionLayer::new().layer(client.clone());
        let resumed = layer().layer(client.clone());
        async move {
            let without = client.oneshot(Request::clone(&request)).await.unwrap().into_body().collect().await;
            assert_eq!(without.unwrap().to_bytes().len(), 1_000, "without the layer");
            let response = resumed.oneshot(request).await.unwrap();
            let promised = response.body().size_hint().exact();
            (promised, response.into_body().collect().await.map(|all| all.to_bytes().len()))
        }
    };
    let mut request = get();
    request.headers_mut().insert("range", "bytes=0-".parse().unwrap());
    let (promised, read) = read(request).await;
    assert_eq!(read.map_err(|error| error.to_string()), Ok(1_000));
    assert!(promised.is_none_or(|promised| promised == 1_000), "{promised:?} were promised");
}

/// "`206` to a range that the caller asked for": a server that answers 206 to a request for all is not trusted.
#[tokio::test(start_paused = true)]
async fn a_206_that_nobody_asked_for_is_not_resumed() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let client = service_fn(move |_: Request<Full<Bytes>>| {
        *count.lock().unwrap() += 1;
        let mut response = breaking("012", 10);
        *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
        response.headers_mut().insert("content-range", "bytes 0-9/500".parse().unwrap());
        async move { Ok::<_, BoxError>(response) }
    });
    let response = layer().layer(client).oneshot(get()).await.unwrap();
    response.into_body().collect().await.map(drop).unwrap_err();
    assert_eq!(*asked.lock().unwrap(), 1);
}

/// Trailers of the rest are those of the download.
#[tokio::test(start_paused = true)]
async fn trailers_of_the_rest_arrive() {
    let client = service_fn(|request: Request<Full<Bytes>>| async move {
        let mut response = breaking("012", 10);
        if request.headers().contains_key("range") {
            *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert("content-range", "bytes 3-9/10".parse().unwrap());
            let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "1".parse().unwrap())]);
            let rest = frames(vec![Ok(Frame::data(Bytes::from_static(b"3456789"))), Ok(Frame::trailers(trailers))]);
            *response.body_mut() = Promised(rest, 7);
        }
        Ok::<_, BoxError>(response)
    });
    let all = layer().layer(client).oneshot(get()).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(all.trailers().unwrap()["x-sum"], "1");
    assert_eq!(all.to_bytes(), "0123456789");
}

/// Rests that lie: never spliced.
#[tokio::test(start_paused = true)]
async fn rests_that_lie_are_not_spliced() {
    let lies: [&[(&str, &str)]; 12] = [
        &[("content-range", "bytes 3-9/11"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 2-9/10"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 4-9/10"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 3-8/10"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 3-18446744073709551615/*"), ("etag", "\"v1\"")],
        &[("content-range", "bytes */10"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 3-9/10"), ("content-range", "bytes 0-9/10"), ("etag", "\"v1\"")],
        &[("content-range", "bytes 3-9/10"), ("etag", "W/\"v1\"")],
        &[("content-range", "bytes 3-9/10"), ("etag", "\"v2\"")],
        &[("content-range", "bytes 3-9/10"), ("etag", "\"v1\""), ("etag", "\"v1\"")],
        &[("content-range", "bytes 3-9/10")],
        &[("content-range", "bytes 3-9/10"), ("etag", "\"v1\""), ("content-type", "Multipart/ByteRanges; boundary=x")],
    ];
    for lie in lies {
        let client = service_fn(move |request: Request<Full<Bytes>>| async move {
            let mut response = breaking("012", 10);
            if request.headers().contains_key("range") {
                *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
                response.headers_mut().clear();
                for (name, value) in lie {
                    response.headers_mut().append(*name, value.parse().unwrap());
                }
                *response.body_mut() = Promised(frames(vec![Ok(Frame::data(Bytes::from_static(b"3456789")))]), 7);
            }
            Ok::<_, BoxError>(response)
        });
        let mut body = layer().layer(client).oneshot(get()).await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "012");
        assert!(body.frame().await.unwrap().is_err(), "{lie:?}");
        assert!(body.frame().await.is_none());
    }
}

/// A body that is dropped in its wait, or while the rest is asked for, leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn dropped_at_any_point() {
    for patience in [0, 50, 150] {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let client = service_fn(move |request: Request<Full<Bytes>>| {
            let held = Arc::clone(&held);
            async move {
                if request.headers().contains_key("range") {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                drop(held);
                Ok::<_, BoxError>(breaking("012", 10))
            }
        });
        let body = layer().layer(client).oneshot(get()).await.unwrap().into_body();
        let _ = timeout(ms(patience), body.collect()).await;
        assert_eq!(Arc::strong_count(&alive), 1, "{patience}");
    }
}

/// Frame after frame of nothing ends as well.
#[tokio::test(start_paused = true)]
async fn a_rest_of_nothing_is_given_up() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let client = service_fn(move |request: Request<Full<Bytes>>| {
        *count.lock().unwrap() += 1;
        async move {
            let mut response = breaking("0", 10);
            if request.headers().contains_key("range") {
                *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
                response.headers_mut().insert("content-range", "bytes 1-9/10".parse().unwrap());
                let nothing = stream::repeat_with(|| Ok::<_, BoxError>(Frame::data(Bytes::new()))).take(100);
                let rest = StreamBody::new(nothing.chain(stream::iter([Err(reset())])));
                *response.body_mut() = Promised(BodyExt::boxed_unsync(rest), 9);
            }
            Ok::<_, BoxError>(response)
        }
    });
    layer().layer(client).oneshot(get()).await.unwrap().into_body().collect().await.map(drop).unwrap_err();
    assert_eq!(*asked.lock().unwrap(), 6);
}

/// Trailers that come before the end are not those of the download.
#[tokio::test(start_paused = true)]
async fn trailers_before_the_end_are_a_break() {
    let client = service_fn(|request: Request<Full<Bytes>>| async move {
        let mut response = breaking("012", 10);
        let trailers = |text: &'static str| HeaderMap::from_iter([("x-sum".parse().unwrap(), text.parse().unwrap())]);
        let (text, sum, size) = match request.headers().contains_key("range") {
            false => (&b"012"[..], "early", 10),
            true => (&b"3456789"[..], "end", 7),
        };
        if size == 7 {
            *response.status_mut() = http::StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert("content-range", "bytes 3-9/10".parse().unwrap());
        }
        let frames = frames(vec![Ok(Frame::data(Bytes::from_static(text))), Ok(Frame::trailers(trailers(sum)))]);
        *response.body_mut() = Promised(frames, size);
        Ok::<_, BoxError>(response)
    });
    let mut body = layer().layer(client).oneshot(get()).await.unwrap().into_body();
    let (mut text, mut sums) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        match frame.unwrap().into_data() {
            Ok(data) => text.extend_from_slice(&data),
            Err(frame) => sums.push(frame.into_trailers().unwrap()["x-sum"].to_str().unwrap().to_owned()),
        }
    }
    assert_eq!((text, sums), (b"0123456789".to_vec(), vec!["end".to_owned()]));
}
