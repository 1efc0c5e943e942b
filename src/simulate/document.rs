//! Scenarios as TOML.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};

use super::scenario::{Scenario, Server, Trouble, TroubleKind};
use crate::contract::duration::{self, NoDuration};

/// A scenario that cannot be run, and why. Every reason is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<String>,
}

impl ScenarioError {
    pub(super) fn of(problems: Vec<String>) -> Self {
        ScenarioError { problems }
    }

    /// What is wrong, one text each.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the scenario cannot be run: {}", self.problems.join("; "))
    }
}

impl std::error::Error for ScenarioError {}

impl Scenario {
    /// Reads a scenario.
    ///
    /// ```
    /// use redial::simulate::Scenario;
    ///
    /// let outage = Scenario::parse(
    ///     r#"
    ///     name = "an hour's outage, in short"
    ///     clients = 50
    ///     [server]
    ///     capacity = 600
    ///     [trouble]
    ///     kind = "outage"
    ///     from = "30s"
    ///     until = "50s"
    ///     "#,
    /// )?;
    /// assert_eq!(outage.rate, 10.0);
    /// # Ok::<(), redial::simulate::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] where it is no TOML, has keys that are not known, or values out of their bounds.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let document: Document = toml::from_str(text).map_err(|error| ScenarioError::of(vec![error.to_string()]))?;
        let scenario = document.scenario()?;
        scenario.check()?;
        Ok(scenario)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    seed: Option<u64>,
    clients: Option<u32>,
    rate: Option<f64>,
    length: Option<Span>,
    server: Option<ServerTable>,
    trouble: TroubleTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    capacity: Option<f64>,
    queue: Option<Span>,
    refusal: Option<f64>,
    latency: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TroubleTable {
    kind: Kind,
    from: Span,
    until: Span,
    capacity: Option<f64>,
    share: Option<f64>,
    status: Option<u16>,
    limit: Option<f64>,
    retry_after: Option<Span>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Outage,
    Unreachable,
    Silence,
    BrownOut,
    Failures,
    RateLimit,
}

/// A duration as contracts write it: `"500ms"`, `"1m30s"`.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refused = |no: NoDuration| D::Error::custom(format!("{}: {}", no.what, no.help));
        duration::parse(&text).map(Span).map_err(refused)
    }
}

impl Document {
    fn scenario(self) -> Result<Scenario, ScenarioError> {
        let kind = self.trouble.kind()?;
        let mut scenario = Scenario::new(crate::redact::plain(&self.name), kind);
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        scenario.clients = self.clients.unwrap_or(scenario.clients);
        scenario.rate = self.rate.unwrap_or(scenario.rate);
        scenario.length = self.length.map_or(scenario.length, |length| length.0);
        let (table, usual) = (self.server.unwrap_or_default(), Server::default());
        scenario.server.capacity = table.capacity.unwrap_or(usual.capacity);
        scenario.server.queue = table.queue.map_or(usual.queue, |queue| queue.0);
        scenario.server.refusal = table.refusal.unwrap_or(usual.refusal);
        scenario.server.latency = table.latency.map_or(usual.latency, |latency| latency.0);
        scenario.trouble = Trouble { kind, from: self.trouble.from.0, until: self.trouble.until.0 };
        Ok(scenario)
    }
}

impl TroubleTable {
    fn kind(&self) -> Result<TroubleKind, ScenarioError> {
        let (kind, needs): (_, &[&str]) = match self.kind {
            Kind::Outage => (TroubleKind::Outage { status: self.status.unwrap_or(503) }, &["status"]),
            Kind::Unreachable => (TroubleKind::Unreachable, &[]),
            Kind::Silence => (TroubleKind::Silence, &[]),
            Kind::BrownOut => (TroubleKind::BrownOut { capacity: needed("capacity", self.capacity)? }, &["capacity"]),
            Kind::Failures => {
                let (share, status) = (needed("share", self.share)?, self.status.unwrap_or(500));
                (TroubleKind::Failures { share, status }, &["share", "status"])
            }
            Kind::RateLimit => {
                let retry_after = self.retry_after.as_ref().map(|wait| wait.0);
                let limit = needed("limit", self.limit)?;
                (TroubleKind::RateLimit { limit, retry_after }, &["limit", "retry_after"])
            }
        };
        let given = [
            ("capacity", self.capacity.is_some()),
            ("share", self.share.is_some()),
            ("status", self.status.is_some()),
            ("limit", self.limit.is_some()),
            ("retry_after", self.retry_after.is_some()),
        ];
        let foreign = given.iter().filter(|(key, given)| *given && !needs.contains(key));
        let problems: Vec<_> =
            foreign.map(|(key, _)| format!("`trouble.{key}` means nothing for this kind: leave it out")).collect();
        if problems.is_empty() { Ok(kind) } else { Err(ScenarioError::of(problems)) }
    }
}

fn needed(key: &str, value: Option<f64>) -> Result<f64, ScenarioError> {
    value.ok_or_else(|| ScenarioError::of(vec![format!("`trouble.{key}` is missing, which this kind needs")]))
}
