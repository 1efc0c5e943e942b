//! A `Content-Length`, or a body, that does not tell the truth: a defined end, and never a second whole request.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use redial::{AttemptBody, BoxError, Error, FaultKind, Replay, StopReason, testing::Server};
use tower::ServiceExt;

use crate::{
    answering,
    memory::framing,
    support::{WIRES, Wire, bodies, client, noise, put, soon, stop},
};

async fn send<B>(
    wire: Wire,
    server: &Server,
    promised: usize,
    body: B,
) -> Result<Response<redial::AnswerBody<Incoming>>, Error>
where
    B: Replay<Data: Send> + Send + 'static,
    AttemptBody<B>: Unpin,
{
    let mut request = put(&server.url("/x"), body);
    request.headers_mut().insert("content-length", promised.into());
    soon(client(wire).oneshot(request)).await
}

/// In memory, and as a stream of frames.
fn both(length: usize) -> [Either<Full<Bytes>, bodies::Streaming>; 2] {
    let bytes = noise(length);
    [Either::Right(bodies::streaming(bodies::chunked(&bytes, length / 4))), Either::Left(Full::new(bytes))]
}

fn is_the_callers_fault(error: &Error, attempts: usize, cause: &str) {
    assert_eq!(error.stop(), Some(StopReason::Permanent), "{error}");
    assert_eq!(error.fault().map(|fault| fault.kind()), Some(FaultKind::Body), "{error}");
    assert_eq!(error.report().map(|report| report.attempts().len()), Some(attempts), "{error}");
    assert!(error.to_string().contains(cause), "{error}");
}

/// hyper would send what there is, and wait with the server for the rest.
#[tokio::test]
async fn a_length_that_is_too_long() {
    for wire in WIRES {
        for (length, promised) in [(80, 100), (80_000, 100_000)] {
            for body in both(length) {
                let server = answering(wire, [200]);
                let error = send(wire, &server, promised, body).await.unwrap_err();
                is_the_callers_fault(&error, 1, &format!("the body ended {} bytes before", promised - length));
                assert!(server.seen().requests.len() <= 1 && server.seen().complete() == 0);
            }
        }
    }
}

#[tokio::test]
async fn an_empty_body_under_a_length() {
    for wire in WIRES {
        let server = answering(wire, [200]);
        let error = send(wire, &server, 5, Full::<Bytes>::default()).await.unwrap_err();
        is_the_callers_fault(&error, 1, "the body ended 5 bytes before");
    }
}

/// hyper would send as much as was promised over HTTP/1.1, and everything over HTTP/2.
#[tokio::test]
async fn a_length_that_is_too_short() {
    for wire in WIRES {
        for (length, promised) in [(100, 30), (100_000, 30_000)] {
            for body in both(length) {
                let server = answering(wire, [200]);
                let error = send(wire, &server, promised, body).await.unwrap_err();
                is_the_callers_fault(&error, 1, "the body is longer");
                assert!(server.seen().requests.len() <= 1 && server.seen().complete() == 0);
            }
        }
    }
}

/// hyper stops asking once it has what was promised: what a frame's end cuts off there, nobody can see. Each attempt
/// is cut off at the same place.
#[tokio::test]
async fn a_length_that_ends_with_a_frame() {
    let server = answering(Wire::Http1, [503, 200]);
    let body = bodies::streaming(bodies::chunked(&noise(100), 25));
    let response = send(Wire::Http1, &server, 50, body).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(server.seen().sent(2).requests.iter().all(|request| request.body.is(&noise(100)[..50])));
}

/// A true length changes nothing.
#[tokio::test]
async fn a_true_length() {
    for wire in WIRES {
        for body in both(100_000) {
            let repeated = matches!(body, Either::Left(_));
            let server = answering(wire, [503, 200]);
            let response = send(wire, &server, 100_000, body).await.unwrap();
            assert_eq!(response.status().as_u16(), if repeated { 200 } else { 503 });
            for request in &server.seen().requests {
                assert!(request.body.is(noise(100_000)));
                assert_eq!(framing(request), [Some("100000"), None]);
            }
        }
    }
}

/// Says that it can be sent again, but there is nothing left in it the second time.
struct Spent {
    left: Arc<AtomicUsize>,
    /// What it says of its length: the truth, or always the same.
    honest: bool,
}

const WHOLE: usize = 6900;

impl http_body::Body for Spent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let left = self.left.swap(0, Ordering::Relaxed);
        Poll::Ready((left > 0).then(|| Ok(Frame::data(noise(left)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(if self.honest { self.left.load(Ordering::Relaxed) } else { WHOLE } as u64)
    }
}

impl Replay for Spent {
    fn try_clone(&self) -> Option<Self> {
        Some(Spent { left: Arc::clone(&self.left), honest: self.honest })
    }
}

/// The first outcome stands.
#[tokio::test]
async fn c094_a_second_reading_that_is_empty_is_not_sent() {
    for wire in WIRES {
        let server = answering(wire, [503, 200]);
        let body = Spent { left: Arc::new(WHOLE.into()), honest: true };
        let response = send(wire, &server, WHOLE, body).await.unwrap();
        assert_eq!((response.status().as_u16(), stop(&response)), (503, Some(StopReason::BodyTooLarge)), "{wire:?}");
        server.seen().sent(1);
    }
}

/// With a `Content-Length` of the caller's, and with the one that the client makes of what the body says.
#[tokio::test]
async fn c094_one_that_lies_about_it_is_cut_off() {
    for (wire, stated) in [(Wire::Http1, true), (Wire::Http1, false), (Wire::Http2, true), (Wire::Http2, false)] {
        let server = answering(wire, [503, 200]);
        let body = Spent { left: Arc::new(WHOLE.into()), honest: false };
        let call = async {
            match stated {
                true => send(wire, &server, WHOLE, body).await,
                false => soon(client(wire).oneshot(put(&server.url("/x"), body))).await,
            }
        };
        is_the_callers_fault(&call.await.unwrap_err(), 2, "the body ended 6900 bytes before");
        assert_eq!(server.seen().complete(), 1, "{wire:?}");
    }
}
