//! The document: what a file says, as it says it.

use toml::de::DeValue;

use super::{
    names::Others,
    place::{At, Level, Place},
    read::{Keys, Named, OneOrMore, Read, Reader},
    scalar::{Day, Time},
    settings::Settings,
    table::{replaces, table},
};

/// The version of the format that this crate reads.
pub(crate) const FORMAT: u32 = 1;

table! {
    /// A contract file: what providers promise, and what the program does about it.
    Document {
        /// The version of the format: 1.
        format: u32,
        /// What holds for every provider of this file that does not say otherwise.
        defaults: Defaults,
        /// Providers, by name.
        provider: Named<Provider>,
        /// Overrides, by the name of the environment that the program chooses.
        env: Named<Env>,
        /// Rules that are not kept yet, until when, and why.
        waiver: Vec<At<Waiver>>,
    }
}

table! {
    /// What holds for every provider of this file that does not say otherwise.
    Defaults flatten settings: Settings; {
        /// How long a request to a host that no provider has may take. Default: 60s.
        unknown_hosts: Time,
    }
}

table! {
    /// A provider.
    Provider flatten settings: Settings; {
        /// Its hosts: `host`, `host:port` or `*.suffix`.
        hosts: OneOrMore<String>,
        /// Where this is documented, when it was last read, and by whom (S6).
        contract: Source,
        /// What becomes of requests that no operation matches. Default: `as-provider`.
        others: Others,
        /// Its operations.
        operation: Vec<At<Operation>>,
    }
}

table! {
    /// The source of a provider's contract.
    Source {
        /// The page.
        url: String,
        /// When somebody last read it.
        reviewed: Day,
        /// Who answers for it.
        owner: String,
    }
}

table! {
    /// An operation.
    Operation flatten settings: Settings; {
        /// Its name in events, metrics and errors.
        name: String,
        /// Which requests: `METHOD /path/{parameter}`, one or several.
        matches as "match": OneOrMore<String>,
    }
}

table! {
    /// Overrides for one environment. Each stands beside what it overrides, at its level.
    Env {
        /// Over the file's defaults.
        defaults: Defaults,
        /// Over providers and, by their names, over their operations.
        provider: Named<Provider>,
    }
}

table! {
    /// A rule that is not kept yet.
    Waiver {
        /// Its number, such as `S6`.
        rule: String,
        /// The provider that does not keep it.
        provider: String,
        /// The operation, where it is one alone.
        operation: String,
        /// Why.
        reason: String,
        /// The last day of the waiver.
        until: Day,
    }
}

replaces!(Source, Waiver);

/// Tables that stand at a level of their own, which an environment's level overrules.
macro_rules! at_level {
    ($($name:ident: $level:ident),+) => {$(
        impl Read for $name {
            fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
                let level = reader.level.max_env(Level::$level);
                reader.within(level, |reader| reader.table(value, place))
            }

            fn over(self, below: Self) -> Self {
                Keys::over(self, below)
            }

            fn weight(&self) -> u64 {
                Keys::weight(self)
            }
        }
    )+};
}

at_level!(Defaults: Defaults, Provider: Provider, Operation: Operation, Env: Env);

impl Level {
    /// This level within a table that stands at another: what an environment says stays its word.
    fn max_env(self, inner: Level) -> Level {
        if self == Level::Env { Level::Env } else { inner }
    }
}
