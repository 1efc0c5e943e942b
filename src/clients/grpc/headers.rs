//! What an attempt says of itself.

use http::{HeaderName, Request};
use tokio::time::Instant;

use super::{
    Commit,
    timeout::{self, GRPC_TIMEOUT},
};
use crate::attempt_number;

const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// When the caller's own `grpc-timeout` is over.
#[derive(Clone, Copy)]
pub(super) struct Asked(pub(super) Instant);

/// What this attempt says of itself; among it, when its time is up.
pub(super) fn set<B>(request: &mut Request<B>, commit: Commit, ends: Option<Instant>) -> Option<Instant> {
    let asked = request.extensions().get().map(|Asked(asked)| *asked);
    let previous = attempt_number(request.extensions()).unwrap_or(1).saturating_sub(1);
    let told = match commit {
        // No later than what the caller asked for: that is a deadline of the call.
        Commit::Status => ends,
        // The attempt ends with the head, or the first message; the server would stop the stream that follows.
        Commit::Head | Commit::Message => asked,
    };
    let headers = request.headers_mut();
    match told {
        Some(told) => {
            drop(headers.insert(GRPC_TIMEOUT, timeout::print(told.saturating_duration_since(Instant::now()))))
        }
        None => drop(headers.remove(GRPC_TIMEOUT)),
    }
    match previous {
        0 => drop(headers.remove(PREVIOUS_ATTEMPTS)),
        previous => drop(headers.insert(PREVIOUS_ATTEMPTS, previous.into())),
    }
    told
}
