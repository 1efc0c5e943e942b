//! The record that is being written, shared by everything that writes to it.

use std::{sync::Arc, time::Duration};

use bytes::Buf;
use http::{HeaderMap, request::Parts};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::Instant};

use super::{Seen, SeenBody, SeenRequest};

/// How much of a body is kept.
const KEPT: usize = 64 * 1024;

/// Nothing on loopback takes this long, unless it hangs.
const TOO_LONG: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(super) struct Record(Arc<watch::Sender<Seen>>);

impl Record {
    pub(super) fn new() -> Self {
        Record(Arc::new(watch::Sender::new(Seen::default())))
    }

    pub(super) fn seen(&self) -> Seen {
        self.0.borrow().clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Seen)) {
        self.0.send_modify(change);
    }

    #[allow(clippy::panic, reason = "a test that waits in vain has failed")]
    pub(super) async fn until(&self, mut enough: impl FnMut(&Seen) -> bool) -> Seen {
        let mut seen = self.0.subscribe();
        match tokio::time::timeout(TOO_LONG, seen.wait_for(|seen| enough(seen))).await {
            Ok(Ok(seen)) => seen.clone(),
            _ => panic!("waited {TOO_LONG:?} in vain, saw only {}", self.seen()),
        }
    }

    /// A request's head has arrived.
    pub(super) fn arrived(&self, connection: usize, head: &Parts) -> Arrival {
        let request = SeenRequest {
            at: Instant::now(),
            connection,
            version: head.version,
            method: head.method.clone(),
            path: head.uri.path_and_query().map_or_else(|| head.uri.to_string(), ToString::to_string),
            headers: head.headers.clone(),
            attempt: crate::attempt_number(&head.extensions),
            body: SeenBody::default(),
            trailers: None,
            over: None,
        };
        let mut at = 0;
        self.change(|seen| {
            at = seen.requests.len();
            seen.requests.push(request);
        });
        Arrival { record: self.clone(), at, hash: Sha256::new() }
    }
}

/// One request on its way in. Over when dropped.
#[derive(Debug)]
pub(super) struct Arrival {
    record: Record,
    at: usize,
    hash: Sha256,
}

impl Arrival {
    fn change(&self, change: impl FnOnce(&mut SeenRequest)) {
        self.record.change(|seen| change(&mut seen.requests[self.at]));
    }

    pub(super) fn data(&mut self, mut data: impl Buf) {
        while data.has_remaining() {
            let chunk = data.chunk();
            self.hash.update(chunk);
            self.change(|request| {
                let body = &mut request.body;
                body.length += chunk.len() as u64;
                body.start.extend_from_slice(&chunk[..chunk.len().min(KEPT - body.start.len())]);
            });
            let size = chunk.len();
            data.advance(size);
        }
    }

    pub(super) fn complete(&mut self, trailers: Option<HeaderMap>) {
        let hash = self.hash.clone().finalize().into();
        self.change(|request| {
            request.body.complete = true;
            request.body.sha256 = Some(hash);
            request.trailers = trailers;
        });
    }

    pub(super) fn over(&self) {
        self.change(|request| {
            request.over.get_or_insert_with(Instant::now);
        });
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.over();
        self.change(|request| request.body.broken = !request.body.complete);
    }
}
