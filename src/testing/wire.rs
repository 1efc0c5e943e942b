//! A socket on which frames of one's own can be sent between those of `h2`.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Clones are the same socket.
#[derive(Clone)]
pub(super) struct Wire(Arc<Mutex<Inner>>);

struct Inner {
    stream: TcpStream,
    frame: Frame,
    /// Whole frames, sent as soon as `h2` has ended its own.
    injected: BytesMut,
    /// The socket takes no more at the moment.
    blocked: bool,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        let (frame, injected) = (Frame::default(), BytesMut::new());
        Wire(Arc::new(Mutex::new(Inner { stream, frame, injected, blocked: false })))
    }

    /// Sends a frame, at once or as soon as the one that is being sent has ended.
    pub(super) async fn inject(&self, frame: &[u8]) -> io::Result<()> {
        self.lock().injected.extend_from_slice(frame);
        std::future::poll_fn(|cx| self.lock().poll_injected(cx)).await
    }

    /// Whether `h2` has more to say than the socket takes.
    pub(super) fn is_blocked(&self) -> bool {
        self.lock().blocked
    }

    /// The socket, once nobody else has it.
    pub(super) fn into_stream(self) -> Option<TcpStream> {
        let inner = Arc::into_inner(self.0)?;
        Some(inner.into_inner().unwrap_or_else(PoisonError::into_inner).stream)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn poll_injected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.frame.is_over() && !self.injected.is_empty() {
            let polled = Pin::new(&mut self.stream).poll_write(cx, &self.injected);
            self.blocked = polled.is_pending();
            let sent = ready!(polled)?;
            self.injected.advance(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.lock();
        ready!(inner.poll_injected(cx))?;
        let polled = Pin::new(&mut inner.stream).poll_write(cx, buf);
        inner.blocked = polled.is_pending();
        let sent = ready!(polled)?;
        inner.frame.advance(&buf[..sent]);
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        ready!(inner.poll_injected(cx))?;
        Pin::new(&mut inner.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(cx)
    }
}

/// Where in a frame of HTTP/2 the last byte was. A frame is nine bytes, the first three its length, and a payload.
#[derive(Default)]
struct Frame {
    head: [u8; 9],
    read: usize,
    left: usize,
}

impl Frame {
    fn is_over(&self) -> bool {
        self.read == 0 && self.left == 0
    }

    fn advance(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head[self.read] = bytes[0];
            self.read += 1;
            bytes = &bytes[1..];
            if self.read == self.head.len() {
                let [a, b, c, ..] = self.head;
                (self.read, self.left) = (0, u32::from_be_bytes([0, a, b, c]) as usize);
            }
        }
    }
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
pub(super) mod frame {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const GOAWAY: u8 = 0x7;

    /// Encodes one without flags. None of ours is longer than 255 bytes.
    pub(crate) fn encode(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        debug_assert!(payload.len() < 256);
        let mut bytes = vec![0, 0, payload.len() as u8, kind, 0];
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    pub(crate) fn goaway(last: u32, reason: u32) -> Vec<u8> {
        encode(GOAWAY, 0, &[last.to_be_bytes(), reason.to_be_bytes()].concat())
    }
}
