//! How often, and how many times, a failed job is repaired.

use std::{fmt, time::Duration};

use rand::RngExt;
use redial::StandardPolicy;

use crate::Error;

const HOUR: Duration = Duration::from_secs(60 * 60);
const MINUTE: Duration = Duration::from_secs(60);
/// Above this many requests for one piece of work, a warning is due.
const LARGE: u32 = 30;

/// How often, and how many times, a failed job is repaired.
///
/// By default three runs in all (D25), two hours apart with up to 12 minutes of jitter, and three ghosts; a sweep every
/// 60 s enqueues up to 100 successors, up to 20 of one provider, and one alone while that provider has not been seen to
/// work again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    failures: u32,
    ghosts: u32,
    every: Duration,
    jitter: Duration,
    ghost_wait: Duration,
    sweep: Duration,
    per_sweep: u32,
    per_provider: u32,
    canary: bool,
    stuck: Duration,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            failures: 3,
            ghosts: 3,
            every: 2 * HOUR,
            jitter: 12 * MINUTE,
            ghost_wait: MINUTE,
            sweep: MINUTE,
            per_sweep: 100,
            per_provider: 20,
            canary: true,
            stuck: HOUR,
        }
    }
}

impl Recovery {
    /// The highest limit of failures, and of ghosts.
    pub(crate) const MOST: u32 = 20;

    /// How many failures in all, since the last COMPLETED, make a target DEAD: the first one is counted, ghosts are not.
    /// 3 by default, 1 to 20.
    pub fn failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self
    }

    /// How many ghosts, since the last COMPLETED, make a target DEAD. 3 by default, 1 to 20: a job that kills its process
    /// runs that many times.
    pub fn ghosts(mut self, ghosts: u32) -> Self {
        self.ghosts = ghosts;
        self
    }

    /// How long after a failure its successor is due. Two hours by default; more than zero, a year at most.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// By how much that wait is lengthened at random, at most. 12 minutes by default.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// How long the successor of a target's second ghost waits; the first one's starts at once, a third one's waits twice
    /// as long, and so on. A minute by default.
    pub fn ghost_wait(mut self, wait: Duration) -> Self {
        self.ghost_wait = wait;
        self
    }

    /// How often is swept. A minute by default; more than zero.
    pub fn sweep_every(mut self, sweep: Duration) -> Self {
        self.sweep = sweep;
        self
    }

    /// How many successors one sweep enqueues, at most (J12). 100 by default, 1 to 10 000.
    pub fn per_sweep(mut self, cap: u32) -> Self {
        self.per_sweep = cap;
        self
    }

    /// How many of them for one provider, at most. 20 by default, 1 to 10 000. Types without a provider are limited by
    /// the sweep alone.
    pub fn per_provider(mut self, cap: u32) -> Self {
        self.per_provider = cap;
        self
    }

    /// Whether, while the newest result of a provider is a failure, one recovered job alone tries it out while the
    /// others wait. By default it does.
    pub fn canary(mut self, canary: bool) -> Self {
        self.canary = canary;
        self
    }

    /// How long a job may be claimable without being claimed before it is reported (J5). An hour by default.
    pub fn stuck_after(mut self, stuck: Duration) -> Self {
        self.stuck = stuck;
        self
    }

    /// The limit of failures.
    pub fn max_failures(&self) -> u32 {
        self.failures
    }

    /// The limit of ghosts.
    pub fn max_ghosts(&self) -> u32 {
        self.ghosts
    }

    /// How often is swept.
    pub fn sweep_interval(&self) -> Duration {
        self.sweep
    }

    /// How many successors one sweep enqueues, at most.
    pub fn sweep_cap(&self) -> u32 {
        self.per_sweep
    }

    /// How many of them for one provider, at most.
    pub fn provider_cap(&self) -> u32 {
        self.per_provider
    }

    /// Whether one recovered job alone tries a provider out.
    pub fn has_canary(&self) -> bool {
        self.canary
    }

    /// How long a canary that has not ended is waited for, and how long a job may be claimable: [`stuck_after`].
    ///
    /// [`stuck_after`]: Self::stuck_after
    pub fn stuck_limit(&self) -> Duration {
        self.stuck
    }

    /// How long after a failure its successor is due, jitter apart.
    pub fn interval(&self) -> Duration {
        self.every
    }

    /// By how much that wait is lengthened at random, at most.
    pub fn jitter_limit(&self) -> Duration {
        self.jitter
    }

    /// How long the successor of a target's `nth` ghost waits, with jitter: the first ones start within a sweep.
    pub(crate) fn ghost_delay(&self, nth: u32) -> Duration {
        let steps = 2_u32.saturating_pow(nth.saturating_sub(1)).saturating_sub(1);
        self.ghost_wait.saturating_mul(steps).saturating_add(random_up_to(self.spread()))
    }

    /// Within which time the successors of one sweep start, at random.
    pub(crate) fn spread(&self) -> Duration {
        self.sweep.min(MINUTE)
    }

    /// Whether these settings can be worked by.
    ///
    /// # Errors
    ///
    /// One that cannot: which, its value, and what it may be.
    pub fn check(&self) -> Result<(), Error> {
        let year = 365 * 24 * HOUR;
        let count = |name: &str, value: u32, most: u32| match value {
            0 => Err(Error::invalid(format!("Recovery::{name} is 0: it must be 1 to {most}"))),
            _ if value > most => Err(Error::invalid(format!("Recovery::{name} is {value}: it must be 1 to {most}"))),
            _ => Ok(()),
        };
        let time = |name: &str, value: Duration, least: Duration| {
            if value < least || value > year {
                return Err(Error::invalid(format!("Recovery::{name} is {value:?}: it must be {least:?} to a year")));
            }
            Ok(())
        };
        count("failures", self.failures, Self::MOST)?;
        count("ghosts", self.ghosts, Self::MOST)?;
        count("per_sweep", self.per_sweep, 10_000)?;
        count("per_provider", self.per_provider, 10_000)?;
        let tick = Duration::from_millis(1);
        time("every", self.every, tick)?;
        time("sweep_every", self.sweep, tick)?;
        time("jitter", self.jitter, Duration::ZERO)?;
        time("ghost_wait", self.ghost_wait, Duration::ZERO)?;
        time("stuck_after", self.stuck, tick)
    }

    /// How many requests one piece of work may cost, if all of them fail, where each run makes one call under this
    /// policy: attempts × failures, and what lost workers add. What else retries on the path is counted, where the
    /// policy declares it.
    ///
    /// More than 30 is warned about, once a call of this function.
    pub fn worst_case(&self, policy: &StandardPolicy) -> WorstCase {
        let worst = WorstCase { attempts: policy.worst_case_requests(), failures: self.failures, ghosts: self.ghosts };
        if worst.requests() > LARGE {
            tracing::warn!(target: "redial_jobs", requests = worst.requests(), "worst case of a target: {worst}");
        }
        worst
    }
}

/// What one piece of work may cost. `Display` shows how it comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// Attempts of one call, those of whatever else retries on its path included.
    pub attempts: u32,
    /// Failures of a target before it is DEAD.
    pub failures: u32,
    /// Ghosts of a target before it is DEAD.
    pub ghosts: u32,
}

impl WorstCase {
    /// Requests for one target, where each run makes one call.
    pub fn requests(&self) -> u32 {
        // The last run is either the last failure or the last ghost.
        self.attempts.saturating_mul(self.failures.saturating_add(self.ghosts).saturating_sub(1))
    }
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempts, failures, ghosts } = self;
        write!(
            f,
            "{attempts} attempts x {failures} failures = {} requests for each call of a job, and {} with {} lost workers",
            attempts.saturating_mul(*failures),
            self.requests(),
            ghosts.saturating_sub(1),
        )
    }
}

pub(crate) fn random_up_to(most: Duration) -> Duration {
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(rand::rng().random_range(0..=most))
}
