//! What reached a server or a service, and assertions about it.

use std::{fmt, time::Duration};

use http::{HeaderMap, Method, Version};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::script::Pattern;

/// What has reached a server or a service so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Seen {
    /// Each request whose head has arrived, in that order.
    pub requests: Vec<SeenRequest>,
    /// Connections accepted. None for a service.
    pub connections: usize,
    /// Connections that have ended.
    pub ended: usize,
    /// Requests beyond an [`exact`](super::Script::exact) script.
    pub surplus: usize,
}

/// One request, as it arrived. It is here as soon as its head is; the body follows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SeenRequest {
    /// When its head had arrived, by tokio's clock.
    pub at: Instant,
    /// The connection it came on, counted from 1; 0 for a service.
    pub connection: usize,
    /// HTTP/1.1 or HTTP/2; for a service, what the request says.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// The path and query, as they were sent.
    pub path: String,
    /// Every header line, in the order in which those of one name came, with its very bytes.
    pub headers: HeaderMap,
    /// What [`attempt_number`](crate::attempt_number) says. `None` on a socket, which does not carry it.
    pub attempt: Option<u32>,
    /// The body, as far as it has come.
    pub body: SeenBody,
    /// The trailers, where there were any.
    pub trailers: Option<HeaderMap>,
    /// When nothing more was to be said to it: its answer's last byte was handed to the connection, or the head to the
    /// caller of a service; its fault was done; its client had gone (which an [`early`](super::Reply::early) reply over
    /// HTTP/1.1 cannot notice behind an upload that is longer than sockets hold, as it leaves that unread). `None`: it is
    /// still being answered.
    pub over: Option<Instant>,
}

/// The body of a request, as far as it has come.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SeenBody {
    /// Whether it has come to its end.
    pub complete: bool,
    /// It will come no further, and is not complete: the client broke it off, the connection ended, or the reply was one
    /// that leaves it unread.
    pub broken: bool,
    /// Its length in bytes, without framing, as far as it has come.
    pub length: u64,
    /// Its first bytes, 64 KiB of them at most.
    pub start: Vec<u8>,
    /// The SHA-256 of all of it, once it is complete.
    pub sha256: Option<[u8; 32]>,
}

impl SeenBody {
    /// Whether it is complete, and these bytes; compared by length and hash.
    pub fn is(&self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        self.length == bytes.len() as u64 && self.sha256 == Some(Sha256::digest(bytes).into())
    }
}

impl Seen {
    /// Asserts that this many requests arrived.
    ///
    /// # Panics
    ///
    /// With a list of what did arrive, where it is another number.
    #[track_caller]
    pub fn sent(&self, requests: usize) -> &Self {
        assert!(self.requests.len() == requests, "expected {requests} requests, saw {self}");
        self
    }

    /// The times between requests, from the arrival of one head to that of the next. One fewer than there are
    /// requests.
    pub fn gaps(&self) -> Vec<Duration> {
        self.requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    }

    /// When each request came, counted from this instant.
    pub fn times(&self, since: Instant) -> Vec<Duration> {
        self.requests.iter().map(|request| request.at - since).collect()
    }

    /// Only the requests of this route, written as in [`Script::route`](super::Script::route).
    ///
    /// # Panics
    ///
    /// On a route that cannot be read.
    #[track_caller]
    pub fn to(&self, route: &str) -> Self {
        let pattern = Pattern::new(route);
        let of_route = |request: &&SeenRequest| pattern.matches(&request.method, &request.path);
        Seen { requests: self.requests.iter().filter(of_route).cloned().collect(), ..self.clone() }
    }

    /// Requests whose body is complete.
    pub fn complete(&self) -> usize {
        self.requests.iter().filter(|request| request.body.complete).count()
    }

    /// Requests whose body is broken.
    pub fn broken(&self) -> usize {
        self.requests.iter().filter(|request| request.body.broken).count()
    }

    /// Requests that are still being answered.
    pub fn in_flight(&self) -> usize {
        self.requests.iter().filter(|request| request.over.is_none()).count()
    }

    /// Bytes of all bodies, without framing.
    pub fn body_bytes(&self) -> u64 {
        self.requests.iter().map(|request| request.body.length).sum()
    }
}

impl fmt::Display for Seen {
    /// A line for each request. Neither queries nor headers: a test's output may be read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { requests, connections, ended, surplus } = self;
        write!(f, "{} on {connections} connections, {ended} of them ended", requests.len())?;
        if *surplus > 0 {
            write!(f, ", {surplus} beyond the script")?;
        }
        for (number, request) in (1..).zip(requests) {
            let SeenRequest { at, connection, version, method, path, body, .. } = request;
            let after = at.saturating_duration_since(requests[0].at);
            let path = path.split('?').next().unwrap_or_default();
            write!(f, "\n  {number}. after {after:?}: {method} {path} {version:?}, connection {connection}, ")?;
            write!(f, "{} bytes{}", body.length, if body.complete { "" } else { " and not all of the body" })?;
        }
        Ok(())
    }
}
