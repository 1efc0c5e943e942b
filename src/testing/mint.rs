//! The errors of hyper and hyper-util, made by them: nobody else can make them.
//!
//! A real client is shown, in memory, what a server would send, and polled by hand until it fails. No runtime, no
//! socket, no task.

use std::{
    error::Error as StdError,
    future::{Future, Ready, poll_fn, ready},
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::{
    client::conn,
    rt::{Executor, Read, ReadBufCursor, Write},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioIo,
};
use tokio::net::TcpStream;

use super::{Resolver, wire::frame};

/// How the server ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Closed,
    Reset,
}

/// Polls of a client that only ever waits for bytes that are there. It needs about ten.
const POLLS: usize = 1000;

/// What hyper says of an answer that begins with these bytes and ends like that.
pub(super) fn http1(bytes: &[u8], end: End) -> hyper::Error {
    let io = Canned::new(Gate::Anything, Vec::new(), bytes.to_vec(), end);
    finish(async {
        let (mut sender, connection) = conn::http1::handshake(io).await?;
        let mut connection = pin!(connection);
        let answer = async {
            let response = sender.send_request(request()).await?;
            response.into_body().collect().await
        };
        beside(answer, move |cx| drop(connection.as_mut().poll(cx))).await
    })
}

/// What hyper says of a request on stream 1 that is answered with these frames, before the connection closes.
pub(super) fn http2(frames: &[u8]) -> hyper::Error {
    let settings = frame::encode(frame::SETTINGS, 0, &[]);
    let io = Canned::new(Gate::Headers, settings, frames.to_vec(), End::Closed);
    let tasks = Tasks::default();
    finish(async {
        let (mut sender, connection) = conn::http2::handshake(tasks.clone(), io).await?;
        let mut connection = pin!(connection);
        let answer = async {
            let response = sender.send_request(request()).await?;
            response.into_body().collect().await
        };
        let rest = move |cx: &mut Context<'_>| {
            let _ = connection.as_mut().poll(cx);
            tasks.poll(cx);
        };
        beside(answer, rest).await
    })
}

/// What hyper-util's client says when nobody listens.
pub(super) fn not_connected() -> hyper_util::client::legacy::Error {
    let client = Client::builder(Tasks::default()).build(Refusing);
    finish(client.request(request()))
}

/// What it says when the name is not resolved.
pub(super) fn not_resolved() -> hyper_util::client::legacy::Error {
    let client = Client::builder(Tasks::default()).build(HttpConnector::new_with_resolver(Resolver::failing()));
    finish(client.request(request()))
}

fn request() -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = Uri::from_static("http://script.invalid/");
    request
}

/// Polls the rest whenever the future is polled.
async fn beside<F: Future>(future: F, mut rest: impl FnMut(&mut Context<'_>)) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        rest(cx);
        polled
    })
    .await
}

#[allow(clippy::panic, reason = "a client that does not fail is a defect of this kit")]
fn finish<T, E: StdError>(future: impl Future<Output = Result<T, E>>) -> E {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..POLLS {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(Err(error)) => return error,
            Poll::Ready(Ok(_)) => panic!("hyper did not fail as the script says"),
            Poll::Pending => {}
        }
    }
    panic!("hyper neither fails nor answers as the script says")
}

/// What must have been written before the answer can be read.
enum Gate {
    Anything,
    /// A frame of that type: an answer to a stream that was never opened would be a violation.
    Headers,
}

struct Canned {
    gate: Gate,
    written: Vec<u8>,
    greeting: Vec<u8>,
    answer: Vec<u8>,
    end: End,
}

impl Canned {
    fn new(gate: Gate, greeting: Vec<u8>, answer: Vec<u8>, end: End) -> Self {
        Canned { gate, written: Vec::new(), greeting, answer, end }
    }

    fn asked(&self) -> bool {
        match self.gate {
            Gate::Anything => !self.written.is_empty(),
            Gate::Headers => {
                // Past the preface.
                let mut frames = self.written.get(24..).unwrap_or_default();
                while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
                    if *kind == frame::HEADERS {
                        return true;
                    }
                    frames = rest.get(u32::from_be_bytes([0, *a, *b, *c]) as usize..).unwrap_or_default();
                }
                false
            }
        }
    }
}

impl Read for Canned {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let asked = self.asked();
        let next = match self.greeting.is_empty() {
            false => &mut self.greeting,
            true if asked => &mut self.answer,
            true => return Poll::Pending,
        };
        if next.is_empty() {
            return Poll::Ready(match self.end {
                End::Closed => Ok(()),
                End::Reset => Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset, says the script")),
            });
        }
        let length = next.len().min(buf.remaining());
        buf.put_slice(&next[..length]);
        next.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl Write for Canned {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a client wants to have run beside it.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Task>>>);

impl Tasks {
    fn poll(&self, cx: &mut Context<'_>) {
        let taken = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let left = taken.into_iter().filter_map(|mut task| task.as_mut().poll(cx).is_pending().then_some(task));
        let left: Vec<_> = left.collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(task));
    }
}

/// A connector that nobody listens to.
#[derive(Clone)]
struct Refusing;

impl tower_service::Service<Uri> for Refusing {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused, says the script")))
    }
}
