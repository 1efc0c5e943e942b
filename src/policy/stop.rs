//! Why a call was not repeated.

/// Why a failed attempt was not followed by another. Every refusal has a name: in the report, the events and the
/// metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The failure does not pass by itself, or nobody listed it as passing (S1, S5).
    Permanent,
    /// The request may have taken effect, and nothing says that a repeat is safe (S7).
    NoEvidence,
    /// All attempts were made (S12).
    Attempts,
    /// The body cannot be sent again: it outgrew the tape, or its source failed.
    BodyTooLarge,
    /// The retry budget is spent or closed (S20). The first repeat of a request that provably was never processed, which is
    /// not charged, is not made then either.
    Budget,
    /// The total timeout or an outer [`Deadline`](crate::Deadline) has passed, or the next wait would cross it.
    Deadline,
    /// The server said not to repeat, or a repeat would be told the same by its contract (saved answers, D31).
    ServerSaidNo,
    /// The server asked for a longer wait than the deadline or the policy allows (S17).
    WaitTooLong,
    /// The inner service failed to become ready.
    NotReady,
    /// An outer retry layer, or a [`redial::retry`](fn@crate::retry) around it, is already on this path; this one sent
    /// once (S13).
    Stacked,
    /// Whoever is served by this call is itself a retry, and such calls are not to be repeated
    /// ([`OutboundHints`](crate::OutboundHints)).
    CallerRetries,
    /// An earlier attempt may have worked: look before repeating.
    Verify,
    /// `CONNECT` and `Upgrade` requests are never repeated.
    Upgrade,
}

impl StopReason {
    /// The name in events and metrics, such as `no-evidence`.
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::Permanent => "permanent",
            StopReason::NoEvidence => "no-evidence",
            StopReason::Attempts => "attempts",
            StopReason::BodyTooLarge => "body-too-large",
            StopReason::Budget => "budget",
            StopReason::Deadline => "deadline",
            StopReason::ServerSaidNo => "server-said-no",
            StopReason::WaitTooLong => "wait-too-long",
            StopReason::NotReady => "not-ready",
            StopReason::Stacked => "stacked",
            StopReason::CallerRetries => "caller-retries",
            StopReason::Verify => "verify",
            StopReason::Upgrade => "upgrade",
        }
    }

    /// The same in words, for an error's text.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            StopReason::Permanent => "a repeat would not help",
            StopReason::NoEvidence => "nothing says that a repeat is safe",
            StopReason::Attempts => "all attempts made",
            StopReason::BodyTooLarge => "the body cannot be sent again",
            StopReason::Budget => "retry budget spent",
            StopReason::Deadline => "no time left",
            StopReason::ServerSaidNo => "the server said not to repeat",
            StopReason::WaitTooLong => "the server asked for a longer wait than allowed",
            StopReason::NotReady => "the inner service is not ready",
            StopReason::Stacked => "an outer retry layer is on this path",
            StopReason::CallerRetries => "the caller itself is a retry",
            StopReason::Verify => "an earlier attempt may have worked",
            StopReason::Upgrade => "an upgrade is never repeated",
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
