//! What reqwest says itself: where its own words are private, its predicates speak.

use super::chain::{Link, Links, peek};
use super::{Fault, FaultKind};
use crate::retry::BodyFailed;

/// The outer `None` is "not reqwest's error"; the inner, "it says nothing itself, look beneath".
pub(super) fn read(link: Link<'_>, beneath: &Links<'_>) -> Option<Option<Fault>> {
    let error = peek::<reqwest::Error>(link)?;
    if error.is_builder() || error.is_redirect() {
        // A URL that it cannot send, or too many redirects: the next time is the same (D15). No proof: it may have
        // been a later hop's URL.
        return Some(Some(Fault::of(FaultKind::Protocol).permanently()));
    }
    // It looks for a timeout through all that lies beneath, be it in the caller's own body.
    if !error.is_timeout() || beneath.clone().any(|link| link.is::<BodyFailed>()) {
        return Some(None);
    }
    // Its timer around the connector leaves nothing in the chain that could be named.
    let fault = match error.is_connect() {
        true => Fault::of(FaultKind::Connect).proved_unsent(),
        false => Fault::of(FaultKind::Timeout),
    };
    Some(Some(fault))
}
