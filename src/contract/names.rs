//! The closed lists of names that a contract uses.

use toml::de::DeValue;

use super::{
    place::Place,
    read::{Read, Reader},
};
use crate::{
    FaultKind,
    policy::{GrpcCode, HoldScope, Jitter, Place as Foreign, Unit},
};

/// An enum of names, read with the nearest one suggested.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident ($what:literal) { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
        pub(crate) enum $name {
            $($(#[$doc])* #[cfg_attr(feature = "cli", schemars(rename = $text))] $variant,)+
        }

        impl $name {
            pub(crate) const ALL: &'static [(&'static str, $name)] = &[$(($text, $name::$variant)),+];

            /// As it is written.
            #[allow(dead_code)] // of some lists
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl Read for $name {
            fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
                let Some(text) = value.as_str() else {
                    reader.wrong_type(place, concat!("the name of a ", $what), value);
                    return None;
                };
                let found = $name::ALL.iter().find(|(name, _)| *name == text).map(|(_, found)| *found);
                if found.is_none() {
                    reader.unknown($what, text, place, $name::ALL.iter().map(|(name, _)| *name));
                }
                found
            }
        }
    };
}

names! {
    /// What went wrong on the wire (D28).
    FaultName("fault") {
        /// No connection could be made.
        Connect = "connect",
        /// A name could not be resolved.
        Dns = "dns",
        /// TLS failed.
        Tls = "tls",
        /// The peer reset the connection or the stream.
        Reset = "reset",
        /// The connection closed before the answer was complete.
        Closed = "closed",
        /// Nothing came in time.
        Timeout = "timeout",
        /// A body failed.
        Body = "body",
        /// Either side broke the protocol.
        Protocol = "protocol",
        /// The peer did not process this stream.
        RefusedStream = "refused-stream",
        /// The peer's `GOAWAY` left this stream out.
        Goaway = "goaway",
        /// Nobody knows.
        Unclassified = "unclassified",
    }
}

impl FaultName {
    pub(crate) fn kind(self) -> FaultKind {
        match self {
            FaultName::Connect => FaultKind::Connect,
            FaultName::Dns => FaultKind::Dns,
            FaultName::Tls => FaultKind::Tls,
            FaultName::Reset => FaultKind::Reset,
            FaultName::Closed => FaultKind::Closed,
            FaultName::Timeout => FaultKind::Timeout,
            FaultName::Body => FaultKind::Body,
            FaultName::Protocol => FaultKind::Protocol,
            FaultName::RefusedStream => FaultKind::RefusedStream,
            FaultName::Goaway => FaultKind::Goaway,
            FaultName::Unclassified => FaultKind::Unclassified,
        }
    }
}

names! {
    /// A status code of gRPC, by its name (<https://grpc.io/docs/guides/status-codes/>).
    CodeName("gRPC code") {
        Cancelled = "CANCELLED",
        Unknown = "UNKNOWN",
        InvalidArgument = "INVALID_ARGUMENT",
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        NotFound = "NOT_FOUND",
        AlreadyExists = "ALREADY_EXISTS",
        PermissionDenied = "PERMISSION_DENIED",
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        FailedPrecondition = "FAILED_PRECONDITION",
        Aborted = "ABORTED",
        OutOfRange = "OUT_OF_RANGE",
        Unimplemented = "UNIMPLEMENTED",
        Internal = "INTERNAL",
        Unavailable = "UNAVAILABLE",
        DataLoss = "DATA_LOSS",
        Unauthenticated = "UNAUTHENTICATED",
    }
}

impl CodeName {
    pub(crate) fn code(self) -> GrpcCode {
        // Every name of the list is one of the engine's.
        GrpcCode::ALL.into_iter().find(|code| code.as_str() == self.as_str()).unwrap_or(GrpcCode::Unknown)
    }
}

names! {
    /// What an answer means.
    Means("meaning") {
        /// A failure that passes; repeating it needs evidence.
        Transient = "transient",
        /// It was not processed, and passes: repeating it needs no evidence.
        Rejected = "rejected",
        /// Known and final.
        Business = "business",
        /// What the caller asked for.
        Success = "success",
        /// Final: the caller looks before repeating.
        Verify = "verify",
    }
}

names! {
    /// On what a rule rests.
    Basis("basis") {
        /// The provider documents it.
        Official = "official",
        /// It was seen in practice.
        Practice = "practice",
        /// This project decided it.
        Project = "project",
    }
}

names! {
    /// In what a header says when to come back.
    UnitName("unit") {
        /// A number of seconds from now.
        Seconds = "seconds",
        /// A number of milliseconds from now.
        Millis = "ms",
        /// An instant, in seconds since 1970.
        EpochSeconds = "epoch-s",
        /// An instant, in milliseconds since 1970.
        EpochMillis = "epoch-ms",
        /// An instant by RFC 3339.
        Iso8601 = "iso8601",
        /// A span such as `1m30.5s`.
        Span = "duration",
        /// An instant in a form of RFC 9110.
        HttpDate = "http-date",
        /// As `Retry-After`: seconds or a date.
        RetryAfter = "retry-after",
    }
}

impl UnitName {
    pub(crate) fn unit(self) -> Unit {
        match self {
            UnitName::Seconds => Unit::Seconds,
            UnitName::Millis => Unit::Millis,
            UnitName::EpochSeconds => Unit::EpochSeconds,
            UnitName::EpochMillis => Unit::EpochMillis,
            UnitName::Iso8601 => Unit::Iso8601,
            UnitName::Span => Unit::Duration,
            UnitName::HttpDate => Unit::HttpDate,
            UnitName::RetryAfter => Unit::RetryAfter,
        }
    }
}

names! {
    /// Which calls wait while a provider that said "rejected, wait" is left alone (S17, D32).
    HoldName("hold") {
        /// Retries wait; first tries go out.
        Retries = "retries",
        /// First tries wait as well.
        All = "all",
        /// Each call learns it for itself.
        None = "none",
    }
}

impl HoldName {
    pub(crate) fn scope(self) -> HoldScope {
        match self {
            HoldName::Retries => HoldScope::Retries,
            HoldName::All => HoldScope::All,
            HoldName::None => HoldScope::None,
        }
    }
}

names! {
    /// How waits are spread.
    JitterName("jitter") {
        /// From the floor to the full wait.
        Full = "full",
        /// Half fixed, half random.
        Equal = "equal",
        /// Up to three times the previous wait.
        Decorrelated = "decorrelated",
        /// Not at all; needs a `reason`.
        None = "none",
    }
}

impl JitterName {
    pub(crate) fn jitter(self) -> Jitter {
        match self {
            JitterName::Full => Jitter::Full,
            JitterName::Equal => Jitter::Equal,
            JitterName::Decorrelated => Jitter::Decorrelated,
            JitterName::None => Jitter::None,
        }
    }
}

names! {
    /// A named budget.
    BudgetName("budget") {
        /// Five retries to begin with, earned back by success.
        Default = "default",
        /// The AWS SDKs' quota.
        Aws = "aws",
        /// gRPC's retry throttling.
        Grpc = "grpc",
        /// Finagle's retry budget.
        Finagle = "finagle",
        /// None at all; needs a `reason`.
        Unlimited = "unlimited",
    }
}

names! {
    /// Who else retries on the path.
    Where("place") {
        /// An SDK.
        Sdk = "sdk",
        /// The HTTP client itself, beneath.
        Client = "client",
        /// A proxy, mesh or gateway on the way.
        Gateway = "gateway",
        /// The application above.
        Application = "application",
    }
}

impl Where {
    pub(crate) fn place(self) -> Foreign {
        match self {
            Where::Sdk => Foreign::Sdk,
            Where::Client => Foreign::Client,
            Where::Gateway => Foreign::Gateway,
            Where::Application => Foreign::Application,
        }
    }
}

names! {
    /// What becomes of the requests to a provider's hosts that no operation matches.
    Others("way") {
        /// The provider's own settings hold for them.
        AsProvider = "as-provider",
        /// They are sent once.
        Once = "once",
    }
}

names! {
    /// What an earlier attempt must have been.
    After("condition") {
        /// It may have taken effect.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_engines() {
        for (name, found) in CodeName::ALL {
            assert_eq!(found.code().as_str(), *name);
        }
        assert_eq!(CodeName::ALL.len() + 1, GrpcCode::ALL.len(), "all but OK");
        for (name, found) in FaultName::ALL {
            assert_eq!(found.kind().as_str(), *name);
        }
        assert_eq!(FaultName::ALL.len(), FaultKind::ALL.len());
        for (name, found) in Where::ALL {
            assert_eq!(found.place().as_str(), *name);
        }
    }
}
