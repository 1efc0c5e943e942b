//! A body that itself fails: the caller's fault, whatever its error looks like.

use std::{fmt, io};

use bytes::Bytes;
use http::Method;
use redial::{FaultKind, StopReason, testing::Reply};
use tower::ServiceExt;

use crate::{
    answering, play,
    support::{WIRES, bodies, client, put, request, soon},
};

/// The caller's own error; its cause looks like a connection's.
#[derive(Debug)]
struct DiskGone(io::Error);

impl fmt::Display for DiskGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is gone")
    }
}

impl std::error::Error for DiskGone {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn gone() -> bodies::Item {
    Err(DiskGone(io::Error::new(io::ErrorKind::ConnectionReset, "volume 3")).into())
}

/// One attempt, permanent, and the caller's error and the client's are both found.
#[tokio::test]
async fn it_is_permanent_and_the_callers_error_is_found() {
    for wire in WIRES {
        for frames in [0, 1, 3] {
            let server = answering(wire, [200]);
            let frames = (0..frames).map(|_| bodies::data("some ")).chain([gone()]).collect::<Vec<_>>();
            let error =
                soon(client(wire).oneshot(put(&server.url("/x"), bodies::streaming(frames)))).await.unwrap_err();
            assert_eq!(error.stop(), Some(StopReason::Permanent), "{wire:?}: {error}");
            assert_eq!(error.fault().map(|fault| fault.kind()), Some(FaultKind::Body), "{wire:?}");
            assert_eq!(error.report().map(|report| report.attempts().len()), Some(1), "{wire:?}");
            assert!(error.find_source::<DiskGone>().is_some(), "{wire:?}: {error:?}");
            assert!(error.find_source::<hyper::Error>().is_some(), "{wire:?}: the client's own is still there");
            assert!(error.to_string().ends_with(": volume 3"), "{wire:?}: {error}");
            let seen = server.seen();
            assert!(seen.requests.len() <= 1 && seen.complete() == 0, "{wire:?}: {seen}");
        }
    }
}

/// It fails later, when the server is reading: the same.
#[tokio::test]
async fn while_it_streams() {
    for wire in WIRES {
        let server = answering(wire, [200]);
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("some ")).unwrap();
        let call = tokio::spawn(client(wire).oneshot(put(&server.url("/x"), body)));
        server.until(|seen| seen.requests.len() == 1).await;
        feed.send(gone()).unwrap();
        let error = soon(call).await.unwrap().unwrap_err();
        assert_eq!(error.stop(), Some(StopReason::Permanent), "{wire:?}: {error}");
        assert!(error.find_source::<DiskGone>().is_some(), "{wire:?}: {error:?}");
        let seen = server.until(|seen| seen.in_flight() == 0).await;
        assert_eq!(seen.sent(1).complete(), 0, "{wire:?}");
    }
}

/// In the second attempt: that one is the last.
#[tokio::test]
async fn in_the_second_attempt() {
    for wire in WIRES {
        let server = play(wire, [Reply::status(503).early(), Reply::ok("")]);
        let (feed, body) = bodies::fed();
        feed.send(bodies::data("some ")).unwrap();
        let request = request(Method::PUT, &server.url("/x"), body);
        let call = tokio::spawn(client(wire).oneshot(request));
        server.until(|seen| seen.requests.len() == 2).await;
        feed.send(gone()).unwrap();
        let error = soon(call).await.unwrap().unwrap_err();
        assert_eq!(error.stop(), Some(StopReason::Permanent), "{wire:?}: {error}");
        assert_eq!(error.report().map(|report| report.attempts().len()), Some(2), "{wire:?}");
        assert!(error.find_source::<DiskGone>().is_some(), "{wire:?}");
        server.seen().sent(2);
    }
}

/// A body that says it can be cloned is not taped. Its failure is the caller's all the same.
#[tokio::test]
async fn a_body_of_the_callers_own_that_is_cloned() {
    #[derive(Clone)]
    struct Broken;

    impl http_body::Body for Broken {
        type Data = Bytes;
        type Error = DiskGone;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, DiskGone>>> {
            let error = io::Error::new(io::ErrorKind::ConnectionReset, "volume 3");
            std::task::Poll::Ready(Some(Err(DiskGone(error))))
        }
    }

    impl redial::Replay for Broken {
        fn try_clone(&self) -> Option<Self> {
            Some(Broken)
        }
    }

    for wire in WIRES {
        let server = answering(wire, [200]);
        let error = soon(client(wire).oneshot(put(&server.url("/x"), Broken))).await.unwrap_err();
        assert_eq!(error.stop(), Some(StopReason::Permanent), "{wire:?}: {error}");
        assert_eq!(error.report().map(|report| report.attempts().len()), Some(1), "{wire:?}");
        assert!(error.find_source::<DiskGone>().is_some(), "{wire:?}: {error:?}");
    }
}
