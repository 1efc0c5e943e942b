//! tonic's errors, and those of this crate's own adapter for it.

use tonic::{ConnectError, TimeoutExpired};

use super::chain::{Link, Links, peek};
use super::{Fault, FaultKind, connect, read_links};
use crate::clients::grpc::AnswerFailed;

/// tonic's other errors (the transport's, the buffer's, a status with a source) only wrap what lies beneath.
pub(super) fn read(link: Link<'_>, beneath: &Links<'_>, body_polled: bool) -> Option<Fault> {
    if peek::<ConnectError>(link).is_some() {
        // The channel had no connection for the request, and could not make one.
        return Some(connect::read(beneath.clone()));
    }
    if peek::<TimeoutExpired>(link).is_some() {
        return Some(Fault::of(FaultKind::Timeout));
    }
    peek::<AnswerFailed>(link).map(|_| read_links(beneath.clone(), body_polled).unproved())
}
