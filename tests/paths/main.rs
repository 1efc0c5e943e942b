//! Paths that are longer than one client: a caller's wishes on the way in and out, and blocks of code around calls.

#[path = "../common/capture.rs"]
mod capture;
#[path = "../common/policies.rs"]
mod policies;
#[path = "../common/script.rs"]
mod script;

mod block;
mod block_ends;
#[path = "../../examples/support/chain.rs"]
mod chain;
mod inbound;
mod one_path;
mod outbound;
mod sockets;
mod two_services;
