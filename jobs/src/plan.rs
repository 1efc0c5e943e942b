//! What a sweep does: one plan for ghosts and failures (J7).
//!
//! The plan is made of what a store tells, without touching it. So it can be shown without being carried out, and tested
//! without a database.

use std::{collections::HashMap, time::Duration};

use serde::Serialize;

use crate::{DeadReason, JobId, Recovery, recovery::random_up_to};

/// What a store knows that a sweep must judge.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Jobs whose lease has run out, the longest ago first.
    pub ghosts: Vec<Candidate>,
    /// FAILED jobs that are due, the longest due first.
    pub failures: Vec<Candidate>,
    /// How the providers do that these depend on.
    pub providers: Vec<Health>,
    /// Jobs that have been claimable for too long: reported, never failed (J5).
    pub stuck: Vec<Stuck>,
}

/// A job that a sweep must judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Its number.
    pub id: JobId,
    /// The fencing token under which it was seen.
    pub token: i64,
    /// Its type.
    pub job_type: String,
    /// What it is for.
    pub target: String,
    /// The provider that it depends on.
    pub provider: Option<String>,
    /// Whether no later job of its target exists.
    pub newest: bool,
    /// Failures of its target since the last COMPLETED, this one included, ghosts not counted.
    pub failures: u32,
    /// Ghosts of its target since the last COMPLETED, this one included.
    pub ghosts: u32,
}

/// How a provider does, as far as jobs tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Its name.
    pub provider: String,
    /// The newest result of any of its jobs is a failure that recovery repairs.
    pub failing: bool,
    /// A recovered job of it is active.
    pub canary_out: bool,
}

/// A job that has been claimable for too long: no worker takes its type, say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Its number.
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// What it is for.
    pub target: String,
    /// For how long it has been claimable.
    pub waited: Duration,
}

/// What a sweep does, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// One step for each candidate.
    pub steps: Vec<Step>,
    /// What is reported besides.
    pub stuck: Vec<Stuck>,
}

/// What a sweep does with one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// Enqueue a successor.
    Recover {
        /// In whose place.
        job: Candidate,
        /// Whether that is a ghost, which is closed as FAILED in the same transaction.
        ghost: bool,
        /// How long the successor waits before it starts.
        delay: Duration,
    },
    /// Give up: the job is DEAD.
    Bury(Burial),
    /// Nothing is to be done: a later job of the target exists. A ghost is closed as FAILED.
    Supersede {
        /// Which.
        job: Candidate,
        /// Whether that is a ghost.
        ghost: bool,
    },
    /// Not in this sweep.
    Wait {
        /// Which.
        job: Candidate,
        /// Why.
        reason: WaitReason,
    },
}

/// A job that is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Burial {
    /// Which.
    pub job: Candidate,
    /// Whether that is a ghost.
    pub ghost: bool,
    /// Why.
    pub reason: DeadReason,
}

/// Why a candidate waits for a later sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The sweep's cap is reached.
    SweepCap,
    /// The cap of its provider is reached.
    ProviderCap,
    /// Its provider has not been seen to work again: another job tries it out.
    Canary,
}

/// The plan for these candidates.
pub fn plan(candidates: Candidates, recovery: &Recovery) -> Plan {
    let mut caps = Caps::new(recovery, candidates.providers);
    let ghosts = candidates.ghosts.into_iter().map(|job| (job, true));
    let failures = candidates.failures.into_iter().map(|job| (job, false));
    let steps = ghosts.chain(failures).map(|(job, ghost)| step(job, ghost, recovery, &mut caps)).collect();
    Plan { steps, stuck: candidates.stuck }
}

fn step(job: Candidate, ghost: bool, recovery: &Recovery, caps: &mut Caps<'_>) -> Step {
    if !job.newest {
        return Step::Supersede { job, ghost };
    }
    // Each kind of end is counted against its own limit.
    if ghost && job.ghosts >= recovery.max_ghosts() {
        return Step::Bury(Burial { job, ghost, reason: DeadReason::Ghosts });
    }
    if !ghost && job.failures >= recovery.max_failures() {
        return Step::Bury(Burial { job, ghost, reason: DeadReason::Failures });
    }
    match caps.take(job.provider.as_deref()) {
        Ok(Start::Canary) => Step::Recover { job, ghost, delay: Duration::ZERO },
        Ok(Start::Spread) if ghost => Step::Recover { delay: recovery.ghost_delay(job.ghosts), job, ghost },
        Ok(Start::Spread) => Step::Recover { job, ghost, delay: random_up_to(recovery.spread()) },
        Err(reason) => Step::Wait { job, reason },
    }
}

/// When a successor starts.
enum Start {
    /// At once: others wait for it.
    Canary,
    /// At random within the spread.
    Spread,
}

/// What this sweep may still enqueue.
struct Caps<'a> {
    recovery: &'a Recovery,
    left: u32,
    taken: HashMap<String, u32>,
    health: HashMap<String, Health>,
}

impl<'a> Caps<'a> {
    fn new(recovery: &'a Recovery, health: Vec<Health>) -> Self {
        let health = health.into_iter().map(|health| (health.provider.clone(), health)).collect();
        Self { recovery, left: recovery.sweep_cap(), taken: HashMap::new(), health }
    }

    fn take(&mut self, provider: Option<&str>) -> Result<Start, WaitReason> {
        if self.left == 0 {
            return Err(WaitReason::SweepCap);
        }
        let start = match provider {
            None => Start::Spread,
            Some(provider) => self.take_of(provider)?,
        };
        self.left -= 1;
        Ok(start)
    }

    fn take_of(&mut self, provider: &str) -> Result<Start, WaitReason> {
        let taken = self.taken.get(provider).copied().unwrap_or(0);
        let health = self.health.get(provider).filter(|health| self.recovery.has_canary() && health.failing);
        let start = match health {
            Some(health) if health.canary_out || taken > 0 => return Err(WaitReason::Canary),
            Some(_) => Start::Canary,
            None if taken >= self.recovery.provider_cap() => return Err(WaitReason::ProviderCap),
            None => Start::Spread,
        };
        self.taken.insert(provider.to_owned(), taken + 1);
        Ok(start)
    }
}

#[cfg(test)]
mod tests;
