//! A stale attempt has the caller's body in hand when its successor begins.
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use redial::{AttemptBody, RetryLayer, StandardPolicy, Streamed, Timeouts, Transient};
use tower::{Layer, ServiceExt, service_fn};

#[derive(Clone, Copy)]
enum Second {
    Error,
    Panic,
    Large,
}

struct Slow {
    polls: usize,
    second: Second,
    entered: mpsc::Sender<()>,
    go: mpsc::Receiver<()>,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = std::io::Error;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let this = self.get_mut();
        this.polls += 1;
        match this.polls {
            1 => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"first"))))),
            2 => {
                // A read that takes a while (a disk, a lock): the attempt is over before it returns.
                this.entered.send(()).unwrap();
                this.go.recv().unwrap();
                match this.second {
                    Second::Error => Poll::Ready(Some(Err(std::io::Error::other("disk failed")))),
                    Second::Panic => panic!("body panicked"),
                    Second::Large => Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'; 70_000]))))),
                }
            }
            3 => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"last"))))),
            _ => Poll::Ready(None),
        }
    }
}

async fn second_attempt_sees(second: Second) -> Result<usize, String> {
    let (entered_tx, entered) = mpsc::channel();
    let (go_tx, go) = mpsc::channel();
    let entered = Arc::new(Mutex::new(entered));
    let go_tx = Arc::new(go_tx);
    let attempt = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (saw_tx, mut saw) = tokio::sync::mpsc::unbounded_channel();
    let client = service_fn(move |request: Request<AttemptBody<Streamed<Slow>>>| {
        let first = attempt.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let (entered, go_tx, saw_tx) = (entered.clone(), go_tx.clone(), saw_tx.clone());
        async move {
            let body = request.into_body();
            if first {
                // The connection's own task reads the body, as hyper's does; the answer comes early.
                std::thread::spawn(move || {
                    let _ = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(body.collect());
                });
                tokio::task::spawn_blocking(move || entered.lock().unwrap().recv().unwrap()).await.unwrap();
                Ok::<_, Infallible>(Response::builder().status(503).body(Empty::<Bytes>::new()).unwrap())
            } else {
                let reading = tokio::spawn(body.collect());
                tokio::time::sleep(Duration::from_millis(100)).await;
                go_tx.send(()).unwrap();
                let result = reading.await.unwrap();
                saw_tx.send(result.map(|all| all.to_bytes().len()).map_err(|e| e.to_string())).unwrap();
                Ok(Response::new(Empty::new()))
            }
        }
    });
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap();
    let body = Streamed::new(Slow { polls: 0, second, entered: entered_tx, go });
    let request = Request::put("http://h/x").body(body).unwrap();
    let answer = RetryLayer::new(policy).layer(client).oneshot(request).await;
    let saw = saw.try_recv();
    assert!(saw.is_ok(), "no second attempt: {answer:?}");
    saw.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_body_fails_in_a_stale_attempts_hand() {
    let saw = second_attempt_sees(Second::Error).await;
    assert!(saw.is_err(), "the body failed, and the second attempt sent {saw:?} bytes as if it were whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_body_panics_in_a_stale_attempts_hand() {
    let saw = second_attempt_sees(Second::Panic).await;
    assert!(saw.is_err(), "the body panicked, and the second attempt sent {saw:?} bytes as if it were whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tape_overflows_in_a_stale_attempts_hand() {
    let saw = second_attempt_sees(Second::Large).await;
    assert!(matches!(saw, Err(_) | Ok(70_009)), "the second attempt sent {saw:?} of 70009 bytes");
}

/// A file on a slow disk: a read takes longer than an attempt may, and then fails.
struct SlowDisk(u32);
impl Body for SlowDisk {
    type Data = Bytes;
    type Error = std::io::Error;
    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0 += 1;
        if self.0 == 1 {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"first")))));
        }
        std::thread::sleep(Duration::from_millis(700));
        Poll::Ready(Some(Err(std::io::Error::other("disk failed"))))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn half_a_body_is_stored_by_a_real_server() {
    use hyper_util::{client::legacy::Client, rt::TokioExecutor};
    use redial::testing::{Reply, Server};
    let server = Server::http1([Reply::ok("stored")]);
    let timeouts = Timeouts { attempt: Duration::from_millis(400), total: Duration::from_secs(10) };
    let policy = StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap();
    let client = RetryLayer::new(policy).layer(Client::builder(TokioExecutor::new()).build_http());
    let request = Request::put(server.url("/x")).body(Streamed::new(SlowDisk(0))).unwrap();
    let answer = client.oneshot(request).await;
    let seen = server.seen();
    assert_eq!(seen.complete(), 0, "half a body was stored as a whole one: {:?}, {seen}", answer.map(|a| a.status()));
}
