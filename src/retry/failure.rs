//! What ends an upload before its time: the caller's own body, or the end of its attempt.

use std::{
    error::Error as StdError,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{BoxError, error::chain, redact::Redacted};

/// Whether one attempt's body failed. A client may lose its error (hyper does over HTTP/2), and the caller must see it.
#[derive(Default)]
pub(super) struct Watch {
    failed: OnceLock<BodyFailed>,
}

impl Watch {
    /// Keeps the failure, and gives it back.
    pub(super) fn failed(&self, failed: BodyFailed) -> BodyFailed {
        self.failed.get_or_init(|| failed).clone()
    }

    pub(super) fn failure(&self) -> Option<BodyFailed> {
        self.failed.get().cloned()
    }
}

/// The caller's body failed: the caller's own fault, whatever its error looks like.
#[derive(Clone)]
pub(crate) struct BodyFailed {
    cause: Arc<dyn StdError + Send + Sync>,
    /// The client's error, where it does not lead to the cause.
    client: Option<Arc<dyn StdError + Send + Sync>>,
}

impl BodyFailed {
    pub(super) fn new(cause: BoxError) -> Self {
        BodyFailed { cause: cause.into(), client: None }
    }

    /// The client's error, led to the cause. Where it leads there by itself, it is left as it is.
    pub(super) fn beneath(self, client: BoxError) -> BoxError {
        if chain(&*client).any(|link| link.is::<BodyFailed>()) {
            return client;
        }
        BodyFailed { client: Some(client.into()), ..self }.into()
    }

    pub(crate) fn client(&self) -> Option<&(dyn StdError + 'static)> {
        self.client.as_deref().map(|client| client as _)
    }
}

impl fmt::Debug for BodyFailed {
    // Not the cause's own `Debug`, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BodyFailed").field(&format_args!("{}", Redacted(&self.cause.to_string()))).finish()
    }
}

impl fmt::Display for BodyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body failed")
    }
}

impl StdError for BodyFailed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

/// The upload of an attempt that is over was cut off.
#[derive(Debug)]
pub(crate) struct UploadRevoked;

impl fmt::Display for UploadRevoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the attempt that this upload belongs to is over")
    }
}

impl StdError for UploadRevoked {}
