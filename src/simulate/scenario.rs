//! Who calls, what answers, and what goes wrong.

use std::time::Duration;

use super::document::ScenarioError;

/// Clients, a server, and its trouble. Four are there by name, see [`Scenario::preset`]; others are read from TOML by
/// [`Scenario::parse`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scenario {
    /// Shown above figures and pictures.
    pub name: String,
    /// Whatever is random follows from it.
    pub seed: u64,
    /// How many clients: separate processes, each with its own budget. 1 to 100 000; default 1000.
    pub clients: u32,
    /// Calls a second that each client makes, at random. Above 0, at most 10 000; default 10.
    pub rate: f64,
    /// How long calls are made. At most an hour, and at most 50 million calls in all; default 80 s.
    pub length: Duration,
    /// What answers them.
    pub server: Server,
    /// What goes wrong.
    pub trouble: Trouble,
}

/// A server that works off one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Server {
    /// Requests a second. Above 0; default 12 000.
    pub capacity: f64,
    /// How many requests may wait for their turn, as the time that they take at full capacity; beyond that they are
    /// refused with a 503. In a brown-out the places stay the same and the wait grows. At most a minute; default 100 ms.
    pub queue: Duration,
    /// What a refusal costs, as a share of a served request. 0 to 1; default 0.25.
    pub refusal: f64,
    /// What an answer takes beside its wait. At most a minute; default 20 ms.
    pub latency: Duration,
}

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trouble {
    /// What.
    pub kind: TroubleKind,
    /// From when, after the start.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TroubleKind {
    /// Nothing is served: each request is answered with this status, at no cost.
    Outage {
        /// 400 to 599; default 503.
        status: u16,
    },
    /// Nothing can be reached: no connection is made, so that every request is provably unsent.
    Unreachable,
    /// Requests vanish: there is never an answer.
    Silence,
    /// A share of the capacity is left.
    BrownOut {
        /// Above 0, below 1.
        capacity: f64,
    },
    /// A share of the requests fails at random, at the cost of a refusal.
    Failures {
        /// Above 0, at most 1.
        share: f64,
        /// 400 to 599; default 500.
        status: u16,
    },
    /// All clients together may have so many requests in each second; the others are refused with a 429.
    RateLimit {
        /// Requests a second. Above 0.
        limit: f64,
        /// What the 429's `Retry-After` says, in whole seconds; at most an hour.
        retry_after: Option<Duration>,
    },
}

/// The most calls of a run.
const MOST_CALLS: f64 = 5e7;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The named scenarios and their files.
const PRESETS: [(&str, &str); 4] = [
    ("brown-out", include_str!("scenarios/brown-out.toml")),
    ("outage", include_str!("scenarios/outage.toml")),
    ("random-failures", include_str!("scenarios/random-failures.toml")),
    ("rate-limit", include_str!("scenarios/rate-limit.toml")),
];

impl Default for Server {
    fn default() -> Self {
        let (queue, latency) = (Duration::from_millis(100), Duration::from_millis(20));
        Server { capacity: 12_000.0, queue, refusal: 0.25, latency }
    }
}

impl Scenario {
    /// The usual clients and server, and this trouble from the 30th to the 50th second.
    pub fn new(name: impl Into<String>, kind: TroubleKind) -> Self {
        let seconds = Duration::from_secs;
        Scenario {
            name: name.into(),
            seed: 7,
            clients: 1000,
            rate: 10.0,
            length: seconds(80),
            server: Server::default(),
            trouble: Trouble { kind, from: seconds(30), until: seconds(50) },
        }
    }

    /// A scenario that ships: one of [`Scenario::names`].
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(preset, _)| *preset == name)?;
        Self::parse(text).ok()
    }

    /// The names of the scenarios that ship.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// The same share of everything: fewer clients, and a server and limits that are as much smaller. What happens to
    /// each client is the same, but for chance.
    #[must_use]
    pub fn scaled_to(mut self, clients: u32) -> Self {
        let share = f64::from(clients) / f64::from(self.clients.max(1));
        self.clients = clients;
        self.server.capacity *= share;
        if let TroubleKind::RateLimit { limit, .. } = &mut self.trouble.kind {
            *limit *= share;
        }
        self
    }

    /// Whether every value is within its bounds.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`], naming each value that is not.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let Scenario { server, trouble, .. } = self;
        let mut problems = Vec::new();
        let mut hold = |holds: bool, problem: &str| {
            if !holds {
                problems.push(problem.to_owned());
            }
        };
        // Written so that NaN fails too.
        let within = |value: f64, above: f64, most: f64| value > above && value <= most;
        hold((1..=100_000).contains(&self.clients), "`clients`: 1 to 100000");
        hold(within(self.rate, 0.0, 10_000.0), "`rate`: calls a second of each client, above 0, at most 10000");
        hold(!self.length.is_zero() && self.length <= HOUR, "`length`: above 0, at most an hour");
        let calls = f64::from(self.clients) * self.rate * self.length.as_secs_f64();
        hold(calls <= MOST_CALLS || calls.is_nan(), "`clients` x `rate` x `length`: at most 50 million calls in a run");
        hold(within(server.capacity, 0.0, 1e9), "`server.capacity`: requests a second, above 0");
        hold(server.queue <= MINUTE, "`server.queue`: at most a minute");
        hold((0.0..=1.0).contains(&server.refusal), "`server.refusal`: a share of a served request, 0 to 1");
        hold(server.latency <= MINUTE, "`server.latency`: at most a minute");
        hold(trouble.from < trouble.until, "`trouble.until`: after `trouble.from`");
        hold(trouble.until <= self.length, "`trouble.until`: within `length`");
        let failure = |status: u16| (400..600).contains(&status);
        match trouble.kind {
            TroubleKind::Outage { status } => hold(failure(status), "`trouble.status`: 400 to 599"),
            TroubleKind::BrownOut { capacity } => {
                hold(capacity > 0.0 && capacity < 1.0, "`trouble.capacity`: the share that is left, between 0 and 1");
            }
            TroubleKind::Failures { share, status } => {
                hold(within(share, 0.0, 1.0), "`trouble.share`: above 0, at most 1");
                hold(failure(status), "`trouble.status`: 400 to 599");
            }
            TroubleKind::RateLimit { limit, retry_after } => {
                hold(within(limit, 0.0, 1e9), "`trouble.limit`: requests a second, above 0");
                let whole = |wait: Duration| wait.subsec_nanos() == 0 && wait <= HOUR;
                hold(retry_after.is_none_or(whole), "`trouble.retry_after`: whole seconds, at most an hour");
            }
            TroubleKind::Unreachable | TroubleKind::Silence => {}
        }
        if problems.is_empty() { Ok(()) } else { Err(ScenarioError::of(problems)) }
    }
}
