//! The server: one queue, worked off at the capacity of the moment.

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};

use super::{
    events::Time,
    scenario::{Scenario, TroubleKind},
};

/// How the server meets a request, and when the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Served,
    /// Its queue is full.
    Refused,
    Status(u16),
    /// Over the limit: a 429.
    Limited,
    /// No connection.
    Unreachable,
    /// Never.
    Silence,
}

pub(super) struct Machine<'a> {
    scenario: &'a Scenario,
    from: Time,
    until: Time,
    latency: Time,
    /// Work in the queue, in requests.
    backlog: f64,
    worked_until: Time,
    dice: Xoshiro256PlusPlus,
    /// The second that the limit is counted in, and how many it has let in.
    second: u64,
    let_in: f64,
}

impl<'a> Machine<'a> {
    pub(super) fn new(scenario: &'a Scenario, dice: Xoshiro256PlusPlus) -> Self {
        Machine {
            scenario,
            from: nanos(scenario.trouble.from),
            until: nanos(scenario.trouble.until),
            latency: nanos(scenario.server.latency),
            backlog: 0.0,
            worked_until: 0,
            dice,
            second: 0,
            let_in: 0.0,
        }
    }

    /// A request arrives: what becomes of it, and how long until its client knows.
    pub(super) fn meet(&mut self, now: Time) -> (Reply, Time) {
        self.work_until(now);
        let reply = match self.trouble(now) {
            Some(TroubleKind::Outage { status }) => Reply::Status(status),
            Some(TroubleKind::Unreachable) => Reply::Unreachable,
            Some(TroubleKind::Silence) => return (Reply::Silence, Time::MAX),
            Some(TroubleKind::RateLimit { limit, .. }) if self.is_over(limit, now) => {
                self.refuse();
                Reply::Limited
            }
            Some(TroubleKind::Failures { share, status }) if self.roll() < share => {
                self.refuse();
                Reply::Status(status)
            }
            _ => return self.take_in(now),
        };
        (reply, self.latency)
    }

    fn take_in(&mut self, now: Time) -> (Reply, Time) {
        let (capacity, server) = (self.capacity(now), &self.scenario.server);
        // As many places as it has at full speed: a server that slows down keeps them, and the wait grows.
        if self.backlog > server.capacity * server.queue.as_secs_f64() {
            self.refuse();
            return (Reply::Refused, self.latency);
        }
        self.backlog += 1.0;
        (Reply::Served, self.latency + (self.backlog / capacity * 1e9) as Time)
    }

    fn refuse(&mut self) {
        let server = &self.scenario.server;
        let swamped = 2.0 * server.capacity * server.queue.as_secs_f64();
        if self.backlog < swamped {
            self.backlog += server.refusal;
        }
    }

    fn is_over(&mut self, limit: f64, now: Time) -> bool {
        let second = now / 1_000_000_000;
        if second != self.second {
            (self.second, self.let_in) = (second, 0.0);
        }
        let over = self.let_in + 1.0 > limit;
        if !over {
            self.let_in += 1.0;
        }
        over
    }

    fn trouble(&self, now: Time) -> Option<TroubleKind> {
        (self.from..self.until).contains(&now).then_some(self.scenario.trouble.kind)
    }

    fn capacity(&self, now: Time) -> f64 {
        let whole = self.scenario.server.capacity;
        match self.trouble(now) {
            Some(TroubleKind::BrownOut { capacity }) => whole * capacity,
            _ => whole,
        }
    }

    /// Works off the queue, by the capacity of each moment.
    fn work_until(&mut self, now: Time) {
        let (from, until) = (self.from, self.until);
        for end in [from.min(now), until.min(now), now] {
            if end > self.worked_until {
                let seconds = (end - self.worked_until) as f64 / 1e9;
                self.backlog = (self.backlog - seconds * self.capacity(self.worked_until)).max(0.0);
                self.worked_until = end;
            }
        }
    }

    fn roll(&mut self) -> f64 {
        unit(&mut self.dice)
    }
}

/// From 0 to below 1.
pub(super) fn unit(dice: &mut Xoshiro256PlusPlus) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Unrelated dice for each number under one seed.
pub(super) fn dice(seed: u64, number: u64) -> Xoshiro256PlusPlus {
    let start = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(start.wrapping_add(number))
}

pub(super) fn nanos(duration: std::time::Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}
