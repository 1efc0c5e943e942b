//! How long and how often a runner does what.

use std::time::{Duration, SystemTime};

use crate::{Claimed, Error};

/// No job is put off for less: one that asks for no wait would else run as fast as the table can be written.
pub(super) const SHORTEST_SNOOZE: Duration = Duration::from_millis(100);

/// See the methods of [`Runner`](crate::Runner).
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) batch: Option<u32>,
    pub(super) lease: Duration,
    pub(super) poll: Duration,
    pub(super) grace: Duration,
    pub(super) max_snoozes: Option<u32>,
    pub(super) max_snooze_age: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch: None,
            lease: Duration::from_secs(30),
            poll: Duration::from_millis(500),
            // Kubernetes kills after 30 s.
            grace: Duration::from_secs(25),
            max_snoozes: None,
            max_snooze_age: None,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> Result<(), Error> {
        let day = Duration::from_secs(24 * 60 * 60);
        if self.batch.is_some_and(|batch| !(1..=1000).contains(&batch)) {
            let batch = self.batch.unwrap_or_default();
            return Err(Error::invalid(format!("Runner::batch is {batch}: it must be 1 to 1000")));
        }
        if self.lease < Duration::from_secs(1) || self.lease > day {
            return Err(Error::invalid(format!("Runner::lease is {:?}: it must be 1s to a day", self.lease)));
        }
        if self.poll < Duration::from_millis(1) || self.poll > day {
            return Err(Error::invalid(format!("Runner::poll_every is {:?}: it must be 1ms to a day", self.poll)));
        }
        Ok(())
    }

    /// Why this job may not be put off once more.
    pub(super) fn put_off(&self, job: &Claimed) -> Option<String> {
        if let Some(most) = self.max_snoozes.filter(|most| job.snoozes >= *most) {
            return Some(format!("put off {most} times already, which is as often as it may be"));
        }
        let age = SystemTime::now().duration_since(job.created_at).unwrap_or_default();
        let longest = self.max_snooze_age.filter(|longest| age >= *longest)?;
        Some(format!("put off for {}s already, and may be for {}s", age.as_secs(), longest.as_secs()))
    }
}
