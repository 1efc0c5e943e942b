//! Of which kind a failure is, and why a target is given up.

use std::fmt;

use serde::Serialize;

/// Of which kind a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureClass {
    /// A call over HTTP failed for now, its attempts spent or refused: later it may work.
    Exhausted,
    /// It fails every time: the provider, or our own rules, said no (J9).
    Business,
    /// The handler's error is none that anybody classified.
    Unclassified,
    /// The handler panicked.
    Panic,
    /// The handler ran longer than its type may.
    Timeout,
    /// The worker died or hung: nobody renewed its lease (J5). Counted apart.
    Ghost,
    /// Whether the work was done could not be found out.
    Unverified,
    /// The payload is not one of its type.
    Undecodable,
    /// Nobody handles its type.
    UnknownType,
    /// It was put off too often, or for too long.
    PutOff,
}

impl FailureClass {
    const ALL: [FailureClass; 10] = [
        FailureClass::Exhausted,
        FailureClass::Business,
        FailureClass::Unclassified,
        FailureClass::Panic,
        FailureClass::Timeout,
        FailureClass::Ghost,
        FailureClass::Unverified,
        FailureClass::Undecodable,
        FailureClass::UnknownType,
        FailureClass::PutOff,
    ];

    /// As stored, such as `exhausted`.
    pub const fn as_str(self) -> &'static str {
        match self {
            FailureClass::Exhausted => "exhausted",
            FailureClass::Business => "business",
            FailureClass::Unclassified => "unclassified",
            FailureClass::Panic => "panic",
            FailureClass::Timeout => "timeout",
            FailureClass::Ghost => "ghost",
            FailureClass::Unverified => "unverified",
            FailureClass::Undecodable => "undecodable",
            FailureClass::UnknownType => "unknown-type",
            FailureClass::PutOff => "put-off",
        }
    }

    /// The class of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Why such a failure is the end at once; `None`: recovery repairs it.
    pub const fn dead_at_once(self) -> Option<DeadReason> {
        match self {
            FailureClass::Business => Some(DeadReason::Business),
            FailureClass::Undecodable => Some(DeadReason::Undecodable),
            FailureClass::UnknownType => Some(DeadReason::UnknownType),
            FailureClass::PutOff => Some(DeadReason::PutOff),
            _ => None,
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why recovery gave a target up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeadReason {
    /// A repeat would fail the same way.
    Business,
    /// As many failures as [`Recovery`](crate::Recovery) allows, since the last COMPLETED (J4).
    Failures,
    /// As many ghosts as it allows: the job may be what kills its workers.
    Ghosts,
    /// The payload is not one of its type.
    Undecodable,
    /// Nobody handles its type.
    UnknownType,
    /// It was put off too often, or for too long; or its provider asked to be left alone for more than a year.
    PutOff,
}

impl DeadReason {
    const ALL: [DeadReason; 6] = [
        DeadReason::Business,
        DeadReason::Failures,
        DeadReason::Ghosts,
        DeadReason::Undecodable,
        DeadReason::UnknownType,
        DeadReason::PutOff,
    ];

    /// As stored, such as `failures`.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeadReason::Business => "business",
            DeadReason::Failures => "failures",
            DeadReason::Ghosts => "ghosts",
            DeadReason::Undecodable => "undecodable",
            DeadReason::UnknownType => "unknown-type",
            DeadReason::PutOff => "put-off",
        }
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
