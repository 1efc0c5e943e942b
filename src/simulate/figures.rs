//! What a run shows.

use std::time::Duration;

use super::{events::Time, scenario::Scenario, server::nanos};

/// How finely a run is recorded.
const STEP: Duration = Duration::from_millis(500);

/// What a run shows. "The window" is the time of the trouble.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The strategy.
    pub name: String,
    /// Attempts for each call that began in the window: 1 is no extra load.
    pub load_factor: f64,
    /// The most requests a second that reached the server, at any time.
    pub peak: f64,
    /// Of the calls that began in the window, the share that succeeded.
    pub success: f64,
    /// Calls that succeeded within the window, as a share of those that began in it.
    pub goodput: f64,
    /// From the end of the window until 99 % of the calls that begin succeed again, and go on so. `None`: never within the run.
    pub recovery: Option<Duration>,
    /// The run, step by step.
    pub moments: Vec<Moment>,
    /// How long a moment is.
    pub step: Duration,
}

/// What happened in one step of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moment {
    /// Requests that reached the server, retries included.
    pub arrivals: u64,
    /// Calls that began.
    pub calls: u64,
    /// How many of those calls succeeded, whenever that was.
    pub succeeded: u64,
}

/// Counts while a run lasts.
pub(super) struct Recorder {
    from: Time,
    until: Time,
    calls: u64,
    attempts: u64,
    succeeded: u64,
    answered_within: u64,
    moments: Vec<Moment>,
}

impl Recorder {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let steps = scenario.length.as_nanos().div_ceil(STEP.as_nanos());
        Recorder {
            from: nanos(scenario.trouble.from),
            until: nanos(scenario.trouble.until),
            calls: 0,
            attempts: 0,
            succeeded: 0,
            answered_within: 0,
            moments: vec![Moment::default(); usize::try_from(steps).unwrap_or(0)],
        }
    }

    pub(super) fn call(&mut self, now: Time) {
        self.calls += u64::from(self.within(now));
        self.moment(now, |moment| moment.calls += 1);
    }

    pub(super) fn attempt(&mut self, began: Time, now: Time) {
        self.attempts += u64::from(self.within(began));
        self.moment(now, |moment| moment.arrivals += 1);
    }

    pub(super) fn succeeded(&mut self, began: Time, now: Time) {
        self.succeeded += u64::from(self.within(began));
        self.answered_within += u64::from(self.within(now));
        self.moment(began, |moment| moment.succeeded += 1);
    }

    fn within(&self, at: Time) -> bool {
        (self.from..self.until).contains(&at)
    }

    fn moment(&mut self, at: Time, note: impl FnOnce(&mut Moment)) {
        let step = usize::try_from(at / nanos(STEP)).unwrap_or(usize::MAX);
        // What happens after the last call has begun is no longer recorded.
        if let Some(moment) = self.moments.get_mut(step) {
            note(moment);
        }
    }

    pub(super) fn figures(self, name: &str) -> Figures {
        let share = |part: u64| part as f64 / self.calls.max(1) as f64;
        let most = self.moments.iter().map(|moment| moment.arrivals).max().unwrap_or(0);
        Figures {
            name: name.to_owned(),
            load_factor: share(self.attempts),
            peak: most as f64 / STEP.as_secs_f64(),
            success: share(self.succeeded),
            goodput: share(self.answered_within),
            recovery: self.recovery(),
            moments: self.moments,
            step: STEP,
        }
    }

    fn recovery(&self) -> Option<Duration> {
        let first = usize::try_from(self.until.div_ceil(nanos(STEP))).ok()?;
        let after = self.moments.get(first..)?;
        let bad = |moment: &Moment| moment.succeeded * 100 < moment.calls * 99;
        let recovered = after.iter().rposition(bad).map_or(0, |last| last + 1);
        (recovered < after.len()).then(|| STEP * u32::try_from(recovered).unwrap_or(u32::MAX))
    }
}
