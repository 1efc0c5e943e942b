use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// What kind of failure it was: the closed list of names that policies, contracts and metrics use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No connection could be made, a connect timeout included.
    Connect,
    /// A name could not be resolved.
    Dns,
    /// TLS failed: a certificate was rejected, or the peers could not agree.
    Tls,
    /// The peer reset the connection or, for a reason of its own, the stream.
    Reset,
    /// The connection closed before the answer was complete.
    Closed,
    /// Nothing came in time.
    Timeout,
    /// A body failed: the caller's own, or the response's after its head.
    Body,
    /// Either side broke the protocol.
    Protocol,
    /// `REFUSED_STREAM`: the peer did not process this stream ([RFC 9113, 8.7]).
    ///
    /// [RFC 9113, 8.7]: https://www.rfc-editor.org/rfc/rfc9113#section-8.7
    RefusedStream,
    /// The peer's `GOAWAY` left this stream out ([RFC 9113, 6.8]).
    ///
    /// [RFC 9113, 6.8]: https://www.rfc-editor.org/rfc/rfc9113#section-6.8
    Goaway,
    /// No link of the chain is known. Never retried, but counted.
    Unclassified,
}

impl FaultKind {
    /// Every kind, in the order of their documentation.
    pub const ALL: [FaultKind; 11] = [
        FaultKind::Connect,
        FaultKind::Dns,
        FaultKind::Tls,
        FaultKind::Reset,
        FaultKind::Closed,
        FaultKind::Timeout,
        FaultKind::Body,
        FaultKind::Protocol,
        FaultKind::RefusedStream,
        FaultKind::Goaway,
        FaultKind::Unclassified,
    ];

    /// The name in contracts, events and metrics: `connect`, `refused-stream`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            FaultKind::Connect => "connect",
            FaultKind::Dns => "dns",
            FaultKind::Tls => "tls",
            FaultKind::Reset => "reset",
            FaultKind::Closed => "closed",
            FaultKind::Timeout => "timeout",
            FaultKind::Body => "body",
            FaultKind::Protocol => "protocol",
            FaultKind::RefusedStream => "refused-stream",
            FaultKind::Goaway => "goaway",
            FaultKind::Unclassified => "unclassified",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FaultKind {
    type Err = UnknownFaultKind;

    /// Exactly the names of [`FaultKind::as_str`]; case matters.
    fn from_str(name: &str) -> Result<FaultKind, UnknownFaultKind> {
        FaultKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or(UnknownFaultKind(()))
    }
}

/// No fault has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFaultKind(());

impl fmt::Display for UnknownFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown fault; known are")?;
        for (at, kind) in FaultKind::ALL.iter().enumerate() {
            write!(f, "{} `{kind}`", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Error for UnknownFaultKind {}
