//! Bodies that are sent again: each attempt arrives whole and alike, or the request is not repeated.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod early;
mod failing;
mod lying;
mod memory;
mod streams;

use redial::testing::{Reply, Script, Server};

use crate::support::Wire;

/// A server of the kit.
fn play(wire: Wire, script: impl Into<Script>) -> Server {
    match wire {
        Wire::Http1 => Server::http1(script),
        Wire::Http2 => Server::http2(script),
    }
}

/// Answers with these statuses, one a request; the last one repeats.
fn answering<const N: usize>(wire: Wire, statuses: [u16; N]) -> Server {
    play(wire, statuses.map(Reply::status))
}
