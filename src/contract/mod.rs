//! Provider contracts: the document that the program runs.
//!
//! One TOML file says of a provider which failures pass, which never do, which requests may be repeated and why, how
//! long all of it may take, and where that is documented (S6, S18). People read it, `redial check` holds it against the
//! standard, and the program runs it: a [`Contract`] is a [`Policy`].
//!
//! ```
//! use redial::{RetryLayer, contract::Contract};
//!
//! let contract = Contract::parse("shop.toml", r#"
//!     format = 1
//!
//!     [provider.shop]
//!     hosts     = ["api.shop.example"]
//!     contract  = { url = "https://shop.example/docs", reviewed = 2026-11-30, owner = "platform" }
//!     timeouts  = { attempt = "2s", total = "10s" }
//!     attempts  = 3
//!     backoff   = { initial = "500ms", multiplier = 2.0, max = "5s" }
//!     transient = { status = [502, 503, 504], faults = ["connect", "reset", "timeout"] }
//!     elsewhere = []
//!     fallback  = "none"
//!
//!     [[provider.shop.operation]]
//!     name  = "orders.create"
//!     match = "POST /orders"
//!     never = "the order system has no idempotency key yet"
//! "#)?;
//! let layer = RetryLayer::new(contract);
//! # Ok::<(), redial::contract::ContractError>(())
//! ```
//!
//! # What inherits from what
//!
//! An operation inherits what it does not say from its provider, and that from its file's `[defaults]`. Tables
//! (`timeouts`, `backoff`, `transient`, `business`, `server`, `key`, `idempotent`) inherit key by key; lists, `budget` and all else
//! replace. Rules on answers are joined: the operation's are tried first, then its provider's, then its file's. An
//! `[env.NAME]`, which the program chooses by name ([`ContractBuilder::env`]), stands over each of the three at its level.
//!
//! # Which requests
//!
//! The host chooses the provider. Of its operations, the most specific one that matches wins, as in [`Routes`]; the provider's
//! own settings hold for what none matches, unless it says `others = "once"`. A request to any other host is sent once.

//!
//! # The format
//!
//! `redial schema` prints it as JSON Schema, which an editor takes from a first line `#:schema redial.schema.json`.
//! Durations are texts (`"500ms"`, `"2s"`, `"1m30s"`; units `d`, `h`, `m`, `s`, `ms`, the longer first), dates are TOML's
//! own. A key that is not known is refused, with the nearest one that is.
//!
//! | at the top | |
//! | --- | --- |
//! | `format` | `1` |
//! | `[defaults]` | settings for every provider of the file; `unknown_hosts`: how long a request to a host that no provider has may take (default `"60s"`) |
//! | `[provider.NAME]` | a provider: `hosts` (`host`, `host:port`, `*.suffix`), `contract` (`url`, `reviewed`, `owner`), `others` (`as-provider`, the default, or `once`), and settings |
//! | `[[provider.NAME.operation]]` | an operation: `name`, `match` (`METHOD /path/{parameter}`, one or several, `{*rest}` at the end), and settings |
//! | `[env.NAME]` | `defaults` and `provider`, over those of the file |
//! | `[[waiver]]` | a rule that is not kept yet: `rule`, `provider`, `operation`, `reason`, `until`. Not for what a policy cannot be built against |
//!
//! | setting | default | |
//! | --- | --- | --- |
//! | `timeouts` | none: asked for | `attempt`, `total` (S8); `connect` for [`Contract::connect_timeout`], `body_idle` for [`TimeoutLayer::of`](crate::TimeoutLayer::of) |
//! | `attempts` | none: asked for | in all, the first included; `{ max = 4, reason = "…" }` above 3 (S12) |
//! | `backoff` | none: asked for | `initial`, `multiplier`, `max`; `floor` (50 ms), `jitter` (`full`, `equal`, `decorrelated`, or `none` with a `reason`) |
//! | `transient` | none: asked for | `status`, `faults` ([`FaultKind`](crate::FaultKind)), `grpc`: what passes by itself |
//! | `business` | none | the same lists: what is known and final |
//! | `answer` | none | rules on answers, tried before the lists: `when` (`status`, `header`, `body`, `after`), `means`, `wait`, `basis`, `because`; see [`AnswerRule`](crate::policy::AnswerRule) |
//! | `budget` | `default` | `setting` (`default`, `aws`, `grpc`, `finagle`, `unlimited` with a `reason`) or the numbers of a [`BudgetSetting`](crate::policy::budget::BudgetSetting); `group` |
//! | `server` | `Retry-After` alone | `wait`, `reset` (lists of `header`, `unit`), `should_retry`, `longest_wait` |
//! | `key` | `idempotency-key` | `header`, `valid_for`, `replays`: the provider gives a repeat the saved answer again, so that what was answered is not repeated for the key's sake |
//! | `idempotent` | by method | `stated`, `key`, `headers`, `query`, `method = false` |
//! | `elsewhere` | warned of | what else retries: `where` (`sdk`, `gateway`, `application`), `by`, `attempts` |
//! | `hold` | `retries` | which calls wait when one was told to: `retries`, `all`, `none` |
//! | `never` | | why it is never repeated |
//! | `fallback` | none: asked for | what instead, or `"none"` |
//!
//! # Bounds
//!
//! A file has at most 4 MiB, a folder a thousand files. A provider's settings hold for each of its operations, and each of
//! its hosts has all of their routes: a contract in which that would grow beyond some hundred megabytes is refused, which
//! one with ten thousand operations and usual settings is not. Texts and names have no control characters but the ends of
//! lines and tabs: they go to terminals, logs and pages.
//!
//! # Rules
//!
//! | rule | |
//! | --- | --- |
//! | S1 | only what the contract names is repeated; what nobody knows never is |
//! | S5 | business answers are final: a 4xx that passes by itself needs a written reason |
//! | S6 | what an answer means is documented: the source, the day of its review, its owner, and each rule's basis |
//! | S7 | what may have had an effect is repeated only with evidence that this is safe |
//! | S8 | an attempt and a call have a timeout each, and the waits fit in |
//! | S9, S10, S11 | waits have a floor above zero, are spread, and are bounded |
//! | S12 | two or three attempts; more need a reason, and ten cannot be built |
//! | S13 | whatever else retries on the path is declared, or switched off |
//! | S15 | every operation has a name, by which it is found in events and metrics |
//! | S17 | never earlier than the provider says |
//! | S18 | one provider's rules stand in one place, and no two of them speak of the same request |
//! | S19 | each operation says what happens instead when it has failed, or that nothing does |
//! | S20 | a budget bounds the load of retries |
//!
//! What depends on the day (a review that is too old, a waiver that has ended) is `redial check`'s to say: a program does not
//! stop for a date that has passed.

mod answers;
#[cfg(feature = "cli")]
pub(crate) mod ask;
mod budgets;
pub(crate) mod check;
#[cfg(feature = "cli")]
pub(crate) mod checklist;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod load;
mod locate;
mod lower;
mod mask;
pub(crate) mod model;
pub(crate) mod names;
mod overlap;
pub(crate) mod place;
mod presets;
pub(crate) mod problem;
pub(crate) mod read;
pub(crate) mod resolve;
pub(crate) mod routing;
#[cfg(feature = "cli")]
pub(crate) mod rules;
pub(crate) mod scalar;
#[cfg(feature = "cli")]
mod schema;
pub(crate) mod settings;
mod shown;
pub(crate) mod table;
mod watch;
mod weight;

use std::{collections::HashMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use arc_swap::ArcSwap;

use crate::{Outcome, Plan, Policy, RequestHead, Routes, StandardPolicy, Verdict};

pub(crate) use budgets::Groups;
use lower::Lowered;
use place::Sources;
use problem::Problem;
use resolve::Resolved;

pub use error::ContractError;
pub use load::ContractBuilder;
pub use problem::{Finding, Severity};

/// A contract that was read, checked and built: a [`Policy`] for every provider that it speaks of.
///
/// Cheap to clone. Clones are one contract: what is read anew for one is in force for all.
#[derive(Clone)]
pub struct Contract {
    loaded: Arc<ArcSwap<Loaded>>,
    /// What it was loaded from.
    origin: Arc<ContractBuilder>,
}

/// What is in force.
pub(crate) struct Loaded {
    pub(crate) sources: Arc<Sources>,
    pub(crate) resolved: Resolved,
    /// By provider and operation, as in `resolved`.
    policies: Vec<Vec<Option<StandardPolicy>>>,
    routes: Routes,
    groups: Groups,
    /// By the names of provider and operation.
    body_idle: HashMap<String, HashMap<String, Duration>>,
    warnings: Vec<Finding>,
}

impl Contract {
    /// Begins one that is made of more than files.
    pub fn builder() -> ContractBuilder {
        ContractBuilder::default()
    }

    /// Reads these files, and of folders every `*.toml` in them, and joins them.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with every problem of every file.
    pub fn load<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Result<Self, ContractError> {
        paths.into_iter().fold(Self::builder(), |builder, path| builder.path(path)).load()
    }

    /// Reads a text, such as one from `include_str!`. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with every problem in it.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Result<Self, ContractError> {
        Self::builder().text(name, text).load()
    }

    fn of(loaded: Loaded, origin: ContractBuilder) -> Self {
        Contract { loaded: Arc::new(ArcSwap::from_pointee(loaded)), origin: Arc::new(origin) }
    }

    /// What is allowed, but probably not meant.
    pub fn warnings(&self) -> Vec<Finding> {
        self.loaded.load().warnings.clone()
    }

    /// The policy of one operation, for code that does not go by requests; `any` stands for what no operation matches.
    pub fn policy(&self, provider: &str, operation: &str) -> Option<StandardPolicy> {
        let loaded = self.loaded.load();
        let (at, provider) =
            loaded.resolved.providers.iter().enumerate().find(|(_, found)| found.name.value == provider)?;
        let operation = provider.operations.iter().position(|found| found.name.value == operation)?;
        loaded.policies.get(at)?.get(operation)?.clone()
    }

    /// How long one connection to this provider may take, where its contract says so. It is for whoever makes connections:
    /// hyper-util's `HttpConnector::set_connect_timeout`, say.
    pub fn connect_timeout(&self, provider: &str) -> Option<Duration> {
        let loaded = self.loaded.load();
        let provider = loaded.resolved.providers.iter().find(|found| found.name.value == provider)?;
        Some(provider.settings.timeouts.as_ref()?.connect.as_ref()?.value.0)
    }

    /// How long a request may take to its response head, and how long its body may be silent.
    pub(crate) fn limits(&self, head: &RequestHead<'_>) -> (Duration, Option<Duration>) {
        let loaded = self.loaded.load();
        let policy = loaded.routes.look_up(head);
        let idle = loaded.body_idle.get(policy.provider()).and_then(|idle| idle.get(policy.operation()));
        (policy.shared().timeouts.total, idle.copied())
    }

    /// How many requests went to a host that no provider has, since this was last read.
    pub fn unmatched(&self) -> u64 {
        self.loaded.load().routes.unmatched()
    }
}

impl Loaded {
    fn new(sources: &Arc<Sources>, resolved: Resolved, lowered: Lowered, problems: &[Problem]) -> Self {
        let warnings = problems.iter().filter(|problem| !problem.is_error());
        let warnings = warnings.map(|problem| Finding::new(problem.clone(), sources)).collect();
        let Lowered { routes, policies, groups } = lowered;
        let body_idle = resolved.providers.iter().map(|provider| {
            let stated = provider.operations.iter().filter_map(|operation| {
                let idle = operation.settings.timeouts.as_ref()?.body_idle.as_ref()?.value.0;
                Some((operation.name.value.clone(), idle))
            });
            (provider.name.value.clone(), stated.collect())
        });
        let body_idle = body_idle.collect();
        Loaded { sources: Arc::clone(sources), resolved, policies, routes, groups, body_idle, warnings }
    }

    /// The policy of an operation, by its place in `resolved`.
    #[cfg(feature = "cli")]
    pub(crate) fn policy(&self, provider: usize, operation: usize) -> Option<&StandardPolicy> {
        self.policies.get(provider)?.get(operation)?.as_ref()
    }

    #[cfg(feature = "cli")]
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }
}

impl Policy for Contract {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        self.loaded.load().routes.plan(head)
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        // By the plan's own operation: a call ends by the contract that it began with.
        plan.operation.judge(plan, outcome)
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loaded = self.loaded.load();
        let providers = loaded.resolved.providers.iter().map(|provider| provider.name.value.as_str());
        f.debug_struct("Contract").field("providers", &providers.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
