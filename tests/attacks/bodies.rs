//! Bodies, uploads that outlive their call, heads, memory and locks.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use redial::testing::{Reply, Server};
use redial::{AttemptBody, Replay, RetryLayer, Timeouts};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{
    WIRES, Wire, bodies, client, client_with, policy, policy_within, put, request,
    site::{self, Site, answer},
};

fn short() -> Timeouts {
    Timeouts { attempt: Duration::from_millis(100), total: Duration::from_secs(5) }
}

/// A call that failed for good, by its timeout, goes on uploading behind its caller's back.
#[tokio::test]
async fn a_streaming_upload_ends_with_a_call_that_failed_finally() {
    for wire in WIRES {
        let got = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&got);
        let site = Site::start(wire, move |_, mut request| {
            let count = Arc::clone(&count);
            async move {
                while let Some(Ok(frame)) = request.body_mut().frame().await {
                    count.fetch_add(frame.data_ref().map_or(0, Bytes::len), Ordering::SeqCst);
                }
                std::future::pending().await
            }
        })
        .await;
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("first")).unwrap();
        let call = client_with(wire, policy_within(short())).oneshot(request(Method::POST, &site.url(), body));
        let error = call.await.unwrap_err(); // not repeated: no evidence
        assert!(error.is_timeout());
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _ = feed.send(bodies::data("second"));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            got.load(Ordering::SeqCst),
            5,
            "{wire:?}: sent after the call's end; feed closed: {}",
            feed.is_closed()
        );
        assert!(feed.is_closed(), "{wire:?}: the caller's body is still held");
    }
}

/// hyper polls the body in a task of its own, so a panic there does not unwind the call.
struct Panics(usize);

impl Body for Panics {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 += 1;
        match self.0 {
            1 => Poll::Ready(Some(Ok(Frame::data("one ".into())))),
            2 => panic!("the caller's body panics while it makes `two`"),
            3 => Poll::Ready(Some(Ok(Frame::data("three".into())))),
            _ => Poll::Ready(None),
        }
    }
}
impl Replay for Panics {}

#[tokio::test]
async fn a_body_that_panicked_is_not_sent_again_without_its_middle() {
    for wire in WIRES {
        let server = match wire {
            Wire::Http1 => Server::http1(Reply::ok("")),
            Wire::Http2 => Server::http2(Reply::ok("")),
        };
        let result = client(wire).oneshot(put(&server.url("/x"), Panics(0))).await;
        let got = result.map(|response| response.status());
        assert_eq!(server.seen().complete(), 0, "{wire:?}: a mutilated PUT arrived as a whole one: {got:?}");
    }
}

/// `HeaderMap::with_capacity(number of values)`: a map holds more values than it may be asked to make room for.
#[tokio::test]
async fn a_head_of_many_repeats_is_sent_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let inner = service_fn(move |_: Request<AttemptBody<Empty<Bytes>>>| {
        let status = if count.fetch_add(1, Ordering::SeqCst) == 0 { 503 } else { 200 };
        async move { Ok::<_, Infallible>(Response::builder().status(status).body(Empty::<Bytes>::new()).unwrap()) }
    });
    let mut request = Request::get("http://x/").body(Empty::<Bytes>::new()).unwrap();
    for _ in 0..30_000 {
        request.headers_mut().append(HeaderName::from_static("x"), HeaderValue::from_static("y"));
    }
    let response = RetryLayer::new(policy().build().unwrap()).layer(inner).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
}

/// The caller's body ends its own call while it is polled (it owns a guard that cancels). The lock is held meanwhile,
/// and dropping the call locks again.
#[test]
fn a_body_that_drops_its_call_does_not_deadlock() {
    type Held = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;
    struct Cancels(Held);
    impl Body for Cancels {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let call = self.0.lock().unwrap().take();
            drop(call);
            Poll::Ready(None)
        }
    }
    impl Replay for Cancels {}
    let (done, over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let held = Held::default();
        let (give, take) = std::sync::mpsc::channel();
        // A client that reads the upload elsewhere, as hyper does.
        let inner = service_fn(move |request: Request<AttemptBody<Cancels>>| {
            give.send(request.into_body()).unwrap();
            std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>()
        });
        let layer = RetryLayer::new(policy().build().unwrap());
        let call = layer.layer(inner).oneshot(put("http://x/", Cancels(Arc::clone(&held))));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut call: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async { drop(call.await) });
            assert!(call.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
            *held.lock().unwrap() = Some(call);
            let _ = take.recv().unwrap().frame().await;
        });
        done.send(()).unwrap();
    });
    over.recv_timeout(Duration::from_secs(3)).expect("deadlock");
}

/// 1xx before the answer, Expect, 421: for the record.
#[tokio::test]
async fn informational_answers_and_421() {
    let server = crate::common::raw_h1::start(vec![vec![
        crate::common::raw_h1::Act::Request,
        crate::common::raw_h1::Act::Send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n".to_vec()),
        crate::common::raw_h1::Act::Request,
        crate::common::raw_h1::Act::Send(b"HTTP/1.1 421 X\r\ncontent-length: 0\r\n\r\n".to_vec()),
    ]])
    .await;
    let mut request = put(&server.url("http"), Full::<Bytes>::from("x"));
    request.headers_mut().insert("expect", HeaderValue::from_static("100-continue"));
    let response = client(Wire::Http1).oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().requests), (421, 2));
}

#[allow(unused_imports)]
use {answer as _, site as _};
