//! What HTTP/2 says about one stream.

use h2::Reason;

use super::{Fault, FaultKind, system};

pub(super) fn read(error: &h2::Error) -> Fault {
    if let Some(error) = error.get_io() {
        return Fault::of(system::wire(error.kind()).unwrap_or(FaultKind::Closed));
    }
    if error.is_remote() {
        return from_the_peer(error);
    }
    if error.is_library() {
        // h2 noticed a violation and hung up. It looks like the peer's GOAWAY or RST_STREAM, but proves nothing.
        return Fault::of(FaultKind::Protocol);
    }
    if error.is_reset() {
        // Our own reset, which hyper sends for one reason while the response is awaited: the caller's body failed.
        return Fault::of(FaultKind::Body).permanently();
    }
    if error.is_go_away() {
        return Fault::of(FaultKind::Closed);
    }
    match error.reason() {
        Some(_) => Fault::of(FaultKind::Protocol),
        // h2 refused the request itself: a header or URI that HTTP/2 cannot carry.
        None => Fault::of(FaultKind::Protocol).permanently(),
    }
}

fn from_the_peer(error: &h2::Error) -> Fault {
    let fault = if error.is_go_away() {
        // Only streams above the last id are given this error; those within it go on, or get a broken pipe.
        Fault::of(FaultKind::Goaway).proved_unsent()
    } else if error.reason() == Some(Reason::REFUSED_STREAM) {
        Fault::of(FaultKind::RefusedStream).proved_unsent()
    } else {
        // CANCEL, INTERNAL_ERROR and the rest: the peer gave up, perhaps half way.
        Fault::of(FaultKind::Reset)
    };
    Fault { calm: error.reason() == Some(Reason::ENHANCE_YOUR_CALM), ..fault }
}
