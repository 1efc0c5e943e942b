//! What kept hyper-util's client from connecting. Whatever it was, no request was sent.

use std::io::{self, ErrorKind};

use hyper_util::client::legacy::{self, connect::HttpConnector};

use super::chain::{Link, Links, peek};
use super::{Fault, FaultKind, shown::shows, system, tls};

/// The error of hyper-util's connector. Its module is private, its type is not.
type ConnectError = <HttpConnector as tower_service::Service<http::Uri>>::Error;

/// Reads what lies beneath a failure to connect.
///
/// Transient only where the chain shows a cause in the network. Without one it is a verdict: an unsupported scheme, a
/// name that is none, a certificate turned down by a library that this module does not know.
pub(super) fn read(links: Links<'_>) -> Fault {
    judge(links).proved_unsent()
}

fn judge(mut links: Links<'_>) -> Fault {
    let mut verdict = Fault::of(FaultKind::Connect).permanently();
    while let Some(link) = links.next() {
        if let Some(fault) = tls::read(link) {
            return fault;
        }
        if peek::<ConnectError>(link).is_some() {
            // Without a cause it turned the URI itself down.
            let Some(cause) = links.next() else {
                return verdict;
            };
            let looked_up = !is_from_socket(cause, &links);
            return Fault::of(if looked_up { FaultKind::Dns } else { FaultKind::Connect });
        }
        if system::is_timer(link) || peek::<hyper::Error>(link).is_some() || peek::<h2::Error>(link).is_some() {
            // A timeout around the connector, or a proxy that spoke HTTP and failed.
            return Fault::of(FaultKind::Connect);
        }
        if let Some(error) = peek::<io::Error>(link) {
            match error.kind() {
                _ if error.raw_os_error().is_some() => return Fault::of(FaultKind::Connect),
                // A TLS library's verdict, wrapped. The next link knows better, where it can be read.
                ErrorKind::InvalidData => verdict = Fault::of(FaultKind::Tls).permanently(),
                ErrorKind::Other | ErrorKind::InvalidInput | ErrorKind::Unsupported => {}
                _ => return Fault::of(FaultKind::Connect),
            }
        }
        // Several calls waited for one HTTP/2 connection, and it failed for the one that made it: the others are told this
        // and no more. Should the variant be renamed, they are judged permanent, as they would be without this.
        if shows(link, "CheckoutNoLongerWanted") {
            return Fault::of(FaultKind::Connect);
        }
        if peek::<legacy::Error>(link).is_some_and(|error| !error.is_connect()) {
            return Fault::of(FaultKind::Connect);
        }
    }
    verdict
}

/// Whether the connector's error came from the socket. All of those are the operating system's, but for two that the
/// connector makes itself: its timer, and an address list that was empty. The rest is the resolver's.
fn is_from_socket(cause: Link<'_>, beneath: &Links<'_>) -> bool {
    let Some(error) = peek::<io::Error>(cause) else {
        return false;
    };
    error.raw_os_error().is_some()
        || error.kind() == ErrorKind::NotConnected
        || error.kind() == ErrorKind::TimedOut && beneath.clone().next().is_some_and(system::is_timer)
}
