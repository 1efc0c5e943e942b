//! The errors of hyper-util's client and of hyper: what it says itself, and what lies beneath.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;

use super::chain::{Link, Links, peek};
use super::{Fault, FaultKind, connect, shown::shows, stream, system, tls};

/// The outer `None` is "not the client's error"; the inner, "it says nothing itself, look beneath".
pub(super) fn read(link: Link<'_>, beneath: &Links<'_>, body_polled: bool) -> Option<Option<Fault>> {
    if let Some(error) = peek::<legacy::Error>(link) {
        return Some(pooled(error, beneath));
    }
    if let Some(error) = peek::<hyper::Error>(link) {
        return Some(Some(http(error, beneath.clone(), body_polled)));
    }
    peek::<h2::Error>(link).map(|error| Some(stream::read(error)))
}

/// hyper-util's client, which pools connections.
fn pooled(error: &legacy::Error, beneath: &Links<'_>) -> Option<Fault> {
    if error.is_connect() {
        return Some(connect::read(beneath.clone()));
    }
    let Some(source) = error.source() else {
        // A relative URI, a version or method that it cannot send: turned down before a connection was looked for.
        return Some(Fault::of(FaultKind::Protocol).permanently().proved_unsent());
    };
    // Directly beneath this client's error, `is_closed` is the sender's: a connection that closed before it asked for a
    // request, so none was handed over. (hyper's own senders of bodies use the same error, but never in this place.)
    if source.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_closed) {
        return Some(Fault::of(FaultKind::Closed).proved_unsent());
    }
    None
}

/// hyper, which speaks over one connection.
fn http(error: &hyper::Error, mut beneath: Links<'_>, body_polled: bool) -> Fault {
    if error.is_canceled() {
        let fault = Fault::of(FaultKind::Closed);
        return if never_left_the_queue(error) { fault.proved_unsent() } else { fault };
    }
    // Before all that looks deeper: what lies beneath is the caller's, and may contain any error at all.
    if error.is_user() {
        return by_the_caller(error);
    }
    if error.is_timeout() {
        return Fault::of(FaultKind::Timeout);
    }
    if error.is_incomplete_message() || error.is_closed() {
        return Fault::of(FaultKind::Closed);
    }
    if error.is_parse() {
        return Fault::of(FaultKind::Protocol);
    }
    // hyper has no word for the rest; the cause has. Without one, bytes came that nobody had asked for.
    let Some(cause) = beneath.next() else {
        return Fault::of(FaultKind::Protocol);
    };
    if let Some(error) = peek::<h2::Error>(cause) {
        let fault = stream::read(error);
        // Perhaps the connection's error, handed to a request that it does not concern.
        let doubtful = error.is_go_away() && !body_polled;
        return Fault { unsent: fault.unsent && !doubtful, ..fault };
    }
    if let Some(fault) = beneath.find_map(tls::read).or_else(|| system::read(cause)) {
        return fault;
    }
    match peek::<io::Error>(cause) {
        // Framing that does not parse, such as a chunk's size.
        Some(_) => Fault::of(FaultKind::Protocol),
        None => Fault::of(FaultKind::Body),
    }
}

/// `is_canceled` has two origins. One is a request still in its connection's queue: nothing was written. The other is an
/// upgrade that was answered and then given up: everything was. The first carries the connection's error or a message,
/// the second a marker without content.
fn never_left_the_queue(error: &hyper::Error) -> bool {
    error.source().is_some_and(|cause| cause.is::<hyper::Error>() || size_of_val(cause) > 0)
}

/// What hyper calls the user's fault: the body, the request, or, misleadingly, a connection task that is gone.
fn by_the_caller(error: &hyper::Error) -> Fault {
    if is_task_gone(error) {
        // The connection ended with the request in its hands, or in its queue behind MAX_CONCURRENT_STREAMS.
        return Fault::of(FaultKind::Closed);
    }
    if error.source().is_some() || error.is_body_write_aborted() {
        // Whatever the body's error contains, it is the caller's and says nothing about this connection.
        return Fault::of(FaultKind::Body).permanently();
    }
    Fault::of(FaultKind::Protocol).permanently()
}

/// hyper reports a lost connection task as the user's error and has no predicate for it. Should the variant be renamed,
/// `is_user` is taken at its word and the fault is permanent: too careful, but never sent twice.
fn is_task_gone(error: &hyper::Error) -> bool {
    shows(error, "hyper::Error(User(DispatchGone)")
}
