//! A run: event after event, until every call is over.

use tokio::time::Instant;

use super::{
    calls::{Call, Clients, Next},
    clients::Arrivals,
    document::ScenarioError,
    events::{Event, Events, Time},
    figures::{Figures, Recorder},
    scenario::Scenario,
    server::{Machine, dice, nanos},
    strategy::Strategy,
};

/// The most calls that may be under way at once: a few hundred bytes each.
const MOST_AT_ONCE: usize = 2_000_000;

/// Runs this scenario with clients of this strategy.
///
/// # Errors
///
/// [`ScenarioError`] where a value of the scenario is out of its bounds, or more than two million calls are under way at
/// once.
pub fn run(scenario: &Scenario, strategy: &Strategy) -> Result<Figures, ScenarioError> {
    run_watched(scenario, strategy, |_| {})
}

/// The same, and says now and then which share of it is done, from 0 to 1.
///
/// # Errors
///
/// As [`run`].
pub fn run_watched(
    scenario: &Scenario,
    strategy: &Strategy,
    mut done: impl FnMut(f64),
) -> Result<Figures, ScenarioError> {
    scenario.check()?;
    let mut run = Run {
        clients: Clients::new(scenario, &strategy.kind, Instant::now()),
        server: Machine::new(scenario, dice(scenario.seed, 0)),
        arrivals: Arrivals::new(scenario),
        events: Events::default(),
        recorder: Recorder::new(scenario),
        calls: Vec::new(),
        free: Vec::new(),
        end: nanos(scenario.length),
    };
    for client in 0..scenario.clients {
        run.call_later(client, 0);
    }
    let mut passed = 0;
    while let Some((now, event)) = run.events.next() {
        run.happen(now, event)?;
        passed += 1;
        if passed % 65_536 == 0 {
            done((now as f64 / run.end as f64).min(1.0));
        }
    }
    Ok(run.recorder.figures(strategy.name()))
}

struct Run<'a> {
    clients: Clients,
    server: Machine<'a>,
    arrivals: Arrivals,
    events: Events,
    recorder: Recorder,
    /// Places for calls, used again: no call allocates once the run is under way.
    calls: Vec<Option<Call>>,
    free: Vec<u32>,
    /// No call begins after this.
    end: Time,
}

impl Run<'_> {
    fn happen(&mut self, now: Time, event: Event) -> Result<(), ScenarioError> {
        match event {
            Event::Call { client } => {
                self.call_later(client, now);
                self.recorder.call(now);
                let (call, next) = self.clients.begin(client, now);
                let id = self.place(call)?;
                self.follow(id, next, now);
            }
            Event::Ended { call } => self.step(call, now, Clients::ended),
            Event::Resume { call } => self.step(call, now, Clients::resume),
        }
        Ok(())
    }

    fn call_later(&mut self, client: u32, now: Time) {
        let at = now.saturating_add(self.arrivals.gap(client));
        if at < self.end {
            self.events.plan(at, Event::Call { client });
        }
    }

    fn step(&mut self, id: u32, now: Time, step: impl FnOnce(&Clients, &mut Call, Time) -> Next) {
        if let Some(Some(call)) = self.calls.get_mut(id as usize) {
            let next = step(&self.clients, call, now);
            self.follow(id, next, now);
        }
    }

    fn follow(&mut self, id: u32, next: Next, now: Time) {
        let Some(place) = self.calls.get_mut(id as usize) else { return };
        let Some(call) = place else { return };
        match next {
            Next::WaitUntil(at) => self.events.plan(at, Event::Resume { call: id }),
            Next::Send => {
                self.recorder.attempt(call.began, now);
                let (reply, takes) = self.server.meet(now);
                let takes = self.clients.sent(call, reply, takes, now);
                self.events.plan(now.saturating_add(takes), Event::Ended { call: id });
            }
            Next::Succeeded | Next::Failed => {
                if next == Next::Succeeded {
                    self.recorder.succeeded(call.began, now);
                }
                *place = None;
                self.free.push(id);
            }
        }
    }

    fn place(&mut self, call: Call) -> Result<u32, ScenarioError> {
        if let Some(id) = self.free.pop() {
            if let Some(place) = self.calls.get_mut(id as usize) {
                *place = Some(call);
            }
            return Ok(id);
        }
        if self.calls.len() >= MOST_AT_ONCE {
            let problem =
                "more than two million calls are under way at once: lower `clients` or `rate`, or the timeouts";
            return Err(ScenarioError::of(vec![problem.to_owned()]));
        }
        self.calls.push(Some(call));
        Ok(self.calls.len() as u32 - 1)
    }
}
