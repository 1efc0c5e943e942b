//! What went wrong on the wire, read from an error's source chain.
//!
//! A client's error is a chain of wrappers around the one link that knows. [`Fault::read`] walks it from the outside in,
//! by type and never by text, and stops at the first link that says something. It answers three questions:
//!
//! - **What kind?** One of a closed list, [`FaultKind`], the names that policies and contracts use.
//! - **Was the request provably never processed?** ([`Fault::is_unsent`]) Such a request may be repeated whatever its
//!   method ([RFC 9110, 9.2.2]). Proof is the client's own word alone:
//!
//!   | proof | why |
//!   | --- | --- |
//!   | hyper-util's client failed to connect | no connection, no request |
//!   | hyper cancelled it, or had closed the connection before taking it | it never left the queue |
//!   | the peer reset its stream with `REFUSED_STREAM` | [RFC 9113, 8.7] |
//!   | tonic's channel failed to connect (feature `grpc`) | no connection, no request |
//!   | the peer's `GOAWAY` left its stream out ([`Fault::read_attempt`]) | [RFC 9113, 6.8] |
//!
//!   A connection that closes or resets after the request was written proves nothing, on a reused connection neither,
//!   and an `io::Error` found in anybody else's error proves nothing whatever it says.
//! - **Is it useless to repeat?** ([`Fault::is_permanent`]) A rejected certificate stays rejected.
//!
//! # What cannot be told
//!
//! - *Which request* a proof is about. It speaks of the last request that the inner client sent, and a layer below may
//!   have sent several for one: it followed a redirect, or answered a challenge. The retry layer therefore takes no
//!   error for a proof once such a layer has looked at the attempt's body, and never one of a handler's own calls. A
//!   layer that spawns a task to do so is not noticed, and neither is one below a `buffer`, which calls it from a task of
//!   its own: a buffer belongs below a redirect layer.
//! - A name that does not exist from a resolver that is down, and a lookup at all where the connector is not
//!   hyper-util's: these are [`FaultKind::Connect`]. So is a lookup that fails with an error of the operating system.
//! - A verdict of a TLS library other than rustls. A connect failure that shows no cause in the network (an I/O error, a
//!   timeout, a failed lookup) is permanent, whether it was the scheme, the certificate or a connector's own refusal.
//! - A stream within a `GOAWAY`'s last id, whose connection then closes: h2 reports a broken pipe, and the reason is lost.
//! - Which hop failed of redirects that reqwest followed by itself: of its errors only a failed connection is a proof,
//!   and only while nothing of the request was sent.
//! - Pointers: through `Arc` and `Box` of a client's error this module looks, through `Rc` or a lock it does not.
//!
//! [RFC 9110, 9.2.2]: https://www.rfc-editor.org/rfc/rfc9110#section-9.2.2
//! [RFC 9113, 6.8]: https://www.rfc-editor.org/rfc/rfc9113#section-6.8
//! [RFC 9113, 8.7]: https://www.rfc-editor.org/rfc/rfc9113#section-8.7

mod chain;
mod kind;
mod system;
mod tls;

#[cfg(feature = "hyper")]
mod client;
#[cfg(feature = "hyper")]
mod connect;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "hyper")]
mod shown;
#[cfg(feature = "hyper")]
mod stream;

#[cfg(test)]
mod tests;

use std::error::Error;

pub(crate) use chain::{Link, Links, peek};

use crate::retry::BodyFailed;

pub use kind::{FaultKind, UnknownFaultKind};

/// What went wrong with one attempt, as far as the error proves it.
///
/// Small and `Copy`, so that it outlives the error. Only [`Fault::read`] can say that a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    unsent: bool,
    permanent: bool,
    calm: bool,
}

impl Fault {
    /// Reads an error and what lies beneath it.
    ///
    /// Wrappers that this crate does not know (a middleware's error, a buffer's) are looked through. At most 32 links are read, so an endless chain ends as [`FaultKind::Unclassified`].
    pub fn read(error: &(dyn Error + 'static)) -> Fault {
        Fault::read_attempt(error, false)
    }

    /// Reads the error of an attempt, knowing whether the client had begun to read (`poll_frame`) the
    /// body of its request.
    ///
    /// It matters for `GOAWAY` alone. hyper asks its connection once more after it has handed over a
    /// request and before it reads the body; a `GOAWAY` that comes in between ends the request with the
    /// connection's error, though its stream may be within the last id and on its way. Once the body is
    /// being read, the error can only be the stream's own. So a request without a body never gets this
    /// proof, and one with a body gets it when it was polled.
    #[doc(hidden)] // its argument is only meaningful to whoever watches the body
    pub fn read_attempt(error: &(dyn Error + 'static), body_polled: bool) -> Fault {
        read_links(Links::of(error), body_polled)
    }

    /// A fault of this kind, of unknown reach and not permanent: for the tests of a policy.
    pub const fn of(kind: FaultKind) -> Fault {
        Fault { kind, unsent: false, permanent: false, calm: false }
    }

    /// What failed.
    pub const fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Whether the request was provably never processed: it may be repeated whatever its method.
    ///
    /// `false` does not mean that it was processed: it means that nobody knows.
    pub const fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Whether repeating is useless: a rejected certificate, an unsupported scheme, a malformed request, the caller's
    /// own body failing.
    pub const fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// Whether the peer asked for less load: `ENHANCE_YOUR_CALM` ([RFC 9113, 7]). Such a request waits before it is
    /// repeated, even where it was provably not processed.
    ///
    /// [RFC 9113, 7]: https://www.rfc-editor.org/rfc/rfc9113#section-7
    pub const fn asks_calm(&self) -> bool {
        self.calm
    }

    /// A fault that is only supposed, for whoever asks what a policy would do: nothing was sent, and nothing is proved.
    #[cfg(feature = "simulate")]
    pub(crate) const fn supposed(kind: FaultKind, unsent: bool) -> Fault {
        Fault { unsent, ..Fault::of(kind) }
    }

    /// The same without its proof: the error may be that of another request.
    pub(crate) const fn unproved(self) -> Fault {
        Fault { unsent: false, ..self }
    }

    /// The attempt's own timer fired. The request may have arrived, so nothing is proved.
    pub(crate) const fn attempt_timeout() -> Fault {
        Fault::of(FaultKind::Timeout)
    }

    /// The response's body failed, after its head had arrived.
    ///
    /// Whatever the error says, the request was processed, so no proof survives; a stall stays a timeout.
    pub(crate) fn response_body_failed(error: &(dyn Error + 'static)) -> Fault {
        let fault = Fault::read(error);
        let kind = match fault.kind {
            FaultKind::Timeout => FaultKind::Timeout,
            _ => FaultKind::Body,
        };
        Fault { kind, unsent: false, ..fault }
    }

    /// What broke a response's body, where it was read as part of the attempt or is asked for again: the kind is that of
    /// the cause, and no proof survives.
    pub(crate) fn of_broken_body(error: &(dyn Error + 'static)) -> Fault {
        // A layer of ours that saw it break knows no more than that.
        let ours = error.downcast_ref::<crate::Error>().filter(|error| error.is_body());
        match ours.and_then(Error::source) {
            Some(cause) => Fault::of_broken_body(cause),
            None => Fault::read(error).unproved(),
        }
    }

    /// The caller's own body failed: its error is the caller's, whatever it looks like.
    pub(crate) const fn request_body_failed() -> Fault {
        Fault::of(FaultKind::Body).permanently()
    }

    /// Repeating cannot help.
    pub(crate) const fn permanently(self) -> Fault {
        Fault { permanent: true, ..self }
    }

    /// For the readers of the client's own errors beneath this module, and for nobody else.
    #[cfg(feature = "hyper")]
    const fn proved_unsent(self) -> Fault {
        Fault { unsent: true, ..self }
    }
}

/// The first link that says something.
fn read_links(mut links: Links<'_>, body_polled: bool) -> Fault {
    while let Some(link) = links.next() {
        if let Some(fault) = read_link(link, &links, body_polled) {
            return fault;
        }
    }
    Fault::of(FaultKind::Unclassified)
}

/// What one link says; `None` where it only wraps what lies beneath.
fn read_link(link: Link<'_>, beneath: &Links<'_>, body_polled: bool) -> Option<Fault> {
    if peek::<crate::error::AttemptTimedOut>(link).is_some() {
        return Some(Fault::attempt_timeout());
    }
    if let Some(error) = chain::peek::<crate::Error>(link).filter(|error| !error.is_of_attempt()) {
        return match error.fault() {
            Some(fault) => Some(Fault { unsent: fault.unsent && !error.is_of_another_call(), ..fault }),
            None => error.is_timeout().then(|| Fault::of(FaultKind::Timeout)),
        };
    }
    if chain::peek::<BodyFailed>(link).is_some() {
        return Some(Fault::request_body_failed());
    }
    #[cfg(feature = "reqwest")]
    if let Some(reading) = reqwest::read(link, beneath) {
        return reading;
    }
    #[cfg(feature = "grpc")]
    if let Some(fault) = grpc::read(link, beneath, body_polled) {
        return Some(fault);
    }
    #[cfg(feature = "hyper")]
    if let Some(reading) = client::read(link, beneath, body_polled) {
        return reading;
    }
    #[cfg(not(feature = "hyper"))]
    let _ = (beneath, body_polled);
    tls::read(link).or_else(|| system::read(link))
}
