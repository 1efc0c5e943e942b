//! The operating system's errors, and timers.

use std::io::{self, ErrorKind};

use super::chain::{Link, peek};
use super::{Fault, FaultKind};

pub(super) fn read(link: Link<'_>) -> Option<Fault> {
    if is_timer(link) {
        return Some(Fault::of(FaultKind::Timeout));
    }
    peek::<io::Error>(link).and_then(|error| wire(error.kind())).map(Fault::of)
}

/// What a kind of I/O error says about a connection. It never says whether a request was sent.
pub(super) fn wire(kind: ErrorKind) -> Option<FaultKind> {
    match kind {
        ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable
        | ErrorKind::AddrInUse => Some(FaultKind::Connect),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Some(FaultKind::Reset),
        ErrorKind::BrokenPipe | ErrorKind::NotConnected | ErrorKind::UnexpectedEof | ErrorKind::WriteZero => {
            Some(FaultKind::Closed)
        }
        ErrorKind::TimedOut => Some(FaultKind::Timeout),
        _ => None,
    }
}

pub(super) fn is_timer(link: Link<'_>) -> bool {
    #[cfg(feature = "tower")]
    if peek::<tower::timeout::error::Elapsed>(link).is_some() {
        return true;
    }
    peek::<tokio::time::error::Elapsed>(link).is_some()
}
