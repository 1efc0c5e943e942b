//! What to answer, as data.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;

use super::{
    LastStream, Reason,
    answer::{Answer, Part, line},
};
use crate::BoxError;

/// What becomes of one request: an answer, or a fault.
///
/// A request is read to its end before anything is said, unless the reply is [`early`](Self::early). What the client
/// sees is said at each; "unsent" means that [`Fault::is_unsent`](crate::Fault::is_unsent) holds of its error.
///
/// ```
/// use redial::testing::Reply;
/// use std::time::Duration;
///
/// Reply::status(503).header("retry-after", "1").after(Duration::from_millis(20));
/// Reply::ok("first half, ").pause(Duration::from_millis(20)).body("second half").trailer("x-sum", "7");
/// Reply::ok("half").reset_within();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a reply does nothing until it is in a script"]
pub struct Reply {
    pub(super) what: What,
    pub(super) after: Duration,
    pub(super) early: bool,
    pub(super) goaway: Option<(LastStream, Reason)>,
    pub(super) then: Then,
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Open,
    Close,
    CloseOnReuse,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Answer(Box<Answer>),
    Stall,
    Close,
    Reset,
    HalfHead,
    ResetStream(Reason),
    NotConnected,
    Error(MakeError),
}

#[derive(Clone)]
pub(super) struct MakeError(pub(super) Arc<dyn Fn() -> BoxError + Send + Sync>);

impl fmt::Debug for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeError")
    }
}

impl Reply {
    const fn of(what: What) -> Self {
        Reply { what, after: Duration::ZERO, early: false, goaway: None, then: Then::Open }
    }

    /// An answer with this status and no body.
    ///
    /// # Panics
    ///
    /// Where the number is no status, and for an interim one (1xx but 101), after which a client goes on waiting.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        let Ok(status) = StatusCode::from_u16(status) else { panic!("{status} is no status") };
        let last = !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS;
        assert!(last, "{status} is interim: it is followed by an answer, and is none");
        Self::of(What::Answer(Box::new(Answer { status, ..Answer::default() })))
    }

    /// A 200 with this body.
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::of(What::Answer(Box::default())).body(body)
    }

    /// Never says anything. The client sees its own timeout, or none.
    pub const fn stall() -> Self {
        Self::of(What::Stall)
    }

    /// Closes the connection in order and without an answer. The client sees `closed`; whether the request was
    /// processed nobody knows, on a fresh connection and on a reused one.
    pub const fn close() -> Self {
        Self::of(What::Close)
    }

    /// Resets the connection (TCP RST) without an answer. The client sees `reset`, of unknown outcome. With
    /// [`early`](Self::early) before the request's body is read.
    pub const fn reset() -> Self {
        Self::of(What::Reset)
    }

    /// Begins an answer's head and closes within it. The client sees `closed`, of unknown outcome.
    pub const fn half_head() -> Self {
        Self::of(What::HalfHead)
    }

    /// HTTP/2: resets the stream. The client sees `refused-stream`, unsent, for [`Reason::RefusedStream`], and `reset`
    /// for every other reason; [`Reason::EnhanceYourCalm`] asks for calm beside. A script with it panics over HTTP/1.1.
    pub const fn reset_stream(reason: Reason) -> Self {
        Self::of(What::ResetStream(reason))
    }

    /// HTTP/2: `RST_STREAM` with `REFUSED_STREAM`: not processed, says the server ([RFC 9113, 8.7]). The client sees
    /// `refused-stream`, unsent.
    ///
    /// [RFC 9113, 8.7]: https://www.rfc-editor.org/rfc/rfc9113#section-8.7
    pub const fn refused_stream() -> Self {
        Self::reset_stream(Reason::RefusedStream)
    }

    /// HTTP/2: `GOAWAY` with this last stream id and reason, after which the connection is closed in order.
    ///
    /// Where this stream is left out ([`LastStream::Before`]) the client sees `goaway`, unsent (if the body of its
    /// request was read, see [`Fault::read_attempt`](crate::Fault::read_attempt)), and
    /// [`asks_calm`](crate::Fault::asks_calm) for [`Reason::EnhanceYourCalm`]. Where it is within, the client sees the
    /// connection close: `closed`, and the reason is lost.
    pub const fn goaway(last: LastStream, reason: Reason) -> Self {
        Self::close().with_goaway(last, reason)
    }

    /// For [`service`](super::service) alone: no connection could be made. The error is that of hyper-util's client,
    /// so `connect`, unsent. Over sockets see [`Server::refusing`](super::Server::refusing): a script with it panics
    /// there.
    pub const fn not_connected() -> Self {
        Self::of(What::NotConnected)
    }

    /// For [`service`](super::service) alone: fails with an error of your own. A script with it panics over sockets.
    pub fn error<E: Into<BoxError>>(make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self::of(What::Error(MakeError(Arc::new(move || make().into()))))
    }

    /// Appends a header line; several of one name are sent as several lines. Any bytes that a header may hold: visible
    /// ASCII, space, tab, and 0x80 to 0xFF.
    ///
    /// `Content-Length` is sent as it is given, right or wrong. One that is longer than the body leaves the client
    /// waiting, unless a [`close_within`](Self::close_within) follows: `closed`; one that is shorter cuts the body off
    /// (HTTP/1.1). Over HTTP/2 a wrong one is `protocol`. With a `Transfer-Encoding` of your own the body is sent as it
    /// stands, its framing yours too (HTTP/1.1 on a socket). `Connection: close` closes after the answer. Over HTTP/2 the
    /// headers of a connection are left out, since they may not be sent there.
    ///
    /// # Panics
    ///
    /// Where the name or the value is none, and on a reply that is not an answer.
    #[track_caller]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = line(name, value.as_ref());
        self.answer("header").headers.append(name, value);
        self
    }

    /// Appends to the body.
    ///
    /// # Panics
    ///
    /// On a reply that is not an answer.
    #[track_caller]
    pub fn body(self, data: impl Into<Bytes>) -> Self {
        self.part("body", Part::Data(data.into()))
    }

    /// A pause within the body, where it is called between two [`body`](Self::body)s, or before its end.
    ///
    /// An answer to a `HEAD`, a 204 and a 304 have no body: what is to happen within one does not happen. So it is with
    /// the five that follow.
    ///
    /// # Panics
    ///
    /// On a reply that is not an answer. So do the five that follow.
    #[track_caller]
    pub fn pause(self, time: Duration) -> Self {
        self.part("pause", Part::Pause(time))
    }

    /// The body goes no further, and the connection stays open. The client sees its own timeout, or none.
    #[track_caller]
    pub fn stall_within(self) -> Self {
        self.part("stall_within", Part::Stall)
    }

    /// The connection closes in order within the body. The client sees the head and what came of the body, then
    /// `closed` from the client's own error (`body` where [`TimeoutLayer`](crate::TimeoutLayer) reads it).
    #[track_caller]
    pub fn close_within(self) -> Self {
        self.part("close_within", Part::Close)
    }

    /// The connection is reset (TCP RST) within the body. The client sees the head and perhaps what came of the body,
    /// then `reset` (`body` where [`TimeoutLayer`](crate::TimeoutLayer) reads it).
    #[track_caller]
    pub fn reset_within(self) -> Self {
        self.part("reset_within", Part::Reset)
    }

    /// HTTP/2: the stream is reset within the body, for this reason. The client sees the head and what came of the
    /// body, then what [`reset_stream`](Self::reset_stream) says; but the request was processed. A script with it panics
    /// over HTTP/1.1.
    #[track_caller]
    pub fn reset_stream_within(self, reason: Reason) -> Self {
        self.part("reset_stream_within", Part::ResetStream(reason))
    }

    /// A chunk without a size (HTTP/1.1), or a frame where none may be (HTTP/2, which has no chunks). The client sees
    /// the head and what came of the body, then `protocol`.
    #[track_caller]
    pub fn break_within(self) -> Self {
        self.part("break_within", Part::Broken)
    }

    /// Appends a trailer, sent after the body; over HTTP/1.1 the body is chunked then.
    ///
    /// # Panics
    ///
    /// Where the name or the value is none, and on a reply that is not an answer.
    #[track_caller]
    pub fn trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = line(name, value.as_ref());
        self.answer("trailer").trailers.append(name, value);
        self
    }

    /// Waits this long before it does anything, counted from when the request was read (or its head, if
    /// [`early`](Self::early)). Default: no wait.
    pub const fn after(mut self, time: Duration) -> Self {
        self.after = time;
        self
    }

    /// Acts as soon as the request's head is there, before its body is read: after an answer, or, where the connection
    /// ends with the answer or without one, never.
    pub const fn early(mut self) -> Self {
        self.early = true;
        self
    }

    /// HTTP/2: sends a `GOAWAY` first. With [`LastStream::Every`] and an answer it is a graceful shutdown: what is on
    /// its way ends well, and the client opens a new connection for what follows. A script with it panics over
    /// HTTP/1.1.
    pub const fn with_goaway(mut self, last: LastStream, reason: Reason) -> Self {
        self.goaway = Some((last, reason));
        self
    }

    /// After this answer the connection closes in order, without having been announced: as a server does that has kept
    /// it for long enough. The client sees nothing of it, unless it uses the connection at that very moment. A
    /// [`service`](super::service) knows nothing of it.
    pub const fn close_after(mut self) -> Self {
        self.then = Then::Close;
        self
    }

    /// After this answer the connection stays open until it is used again, and closes at that moment. The second
    /// request is lost: neither recorded nor answered by the script. Its client sees `closed`, of unknown outcome.
    pub const fn close_on_reuse(mut self) -> Self {
        self.then = Then::CloseOnReuse;
        self
    }

    #[track_caller]
    fn part(mut self, what: &str, part: Part) -> Self {
        self.answer(what).parts.push(part);
        self
    }

    #[track_caller]
    fn answer(&mut self, what: &str) -> &mut Answer {
        match &mut self.what {
            What::Answer(answer) => answer,
            other => panic!("`{what}` belongs to an answer, and this reply is {other:?}"),
        }
    }
}
