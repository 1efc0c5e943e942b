//! A waker is dropped under the tape's lock.
use std::{
    any::Any,
    convert::Infallible,
    future::{Future, pending},
    pin::{Pin, pin},
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Empty;
use redial::{AttemptBody, RetryLayer, StandardPolicy, Streamed, Timeouts, Transient};
use tower::{Layer, ServiceExt, service_fn};

struct Slow;
impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// A task as simple executors have it: its future lives in it, and ends with the last waker.
struct Task(#[allow(dead_code)] Mutex<Option<Box<dyn Any + Send>>>);
impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn the_last_waker_of_the_calls_task_may_be_the_tapes() {
    let (done_tx, done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let (body_tx, bodies) = mpsc::channel();
        let client = service_fn(move |request: Request<AttemptBody<Streamed<Slow>>>| {
            body_tx.send(request.into_body()).unwrap();
            pending::<Result<Response<Empty<Bytes>>, Infallible>>()
        });
        let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(10) };
        let policy = StandardPolicy::new("orders", timeouts, Transient::usual()).unwrap();
        let request = Request::put("http://h/x").body(Streamed::new(Slow)).unwrap();
        let mut call = Box::pin(RetryLayer::new(policy).layer(client).oneshot(request));
        let mut idle = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut idle).is_pending());
        let mut body = pin!(bodies.recv().unwrap());
        {
            let waker = Waker::from(Arc::new(Task(Mutex::new(Some(Box::new(call))))));
            assert!(body.as_mut().poll_frame(&mut Context::from_waker(&waker)).is_pending());
        }
        // The connection goes on with the body, in its own task.
        let _ = body.as_mut().poll_frame(&mut idle);
        done_tx.send(()).unwrap();
    });
    assert!(done.recv_timeout(Duration::from_secs(5)).is_ok(), "the tape waits for itself");
}
