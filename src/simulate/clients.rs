//! The clients: when each makes its next call, and the plan that it makes it by.

use std::sync::Arc;

use rand::rngs::Xoshiro256PlusPlus;
use tokio::time::Instant;

use super::{
    events::Time,
    scenario::Scenario,
    server::{dice, unit},
};
use crate::policy::{Budget, Clock, Hold, Plan, operation::Operation};

/// When a client calls.
pub(super) struct Arrivals {
    clients: Vec<Xoshiro256PlusPlus>,
    per_nano: f64,
}

impl Arrivals {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let clients = (0..scenario.clients).map(|client| dice(scenario.seed, u64::from(client) + 1)).collect();
        Arrivals { clients, per_nano: scenario.rate / 1e9 }
    }

    /// From one call of this client to its next: exponential, so that the calls are a Poisson process.
    pub(super) fn gap(&mut self, client: u32) -> Time {
        match self.clients.get_mut(client as usize) {
            Some(dice) => (-(1.0 - unit(dice)).ln() / self.per_nano) as Time,
            None => Time::MAX,
        }
    }
}

/// The same plan for another process: its budget and hold are its own, its dice follow from the seed.
pub(super) fn plan_of(plan: &Plan, client: u32, seed: u64, start: Instant) -> Plan {
    let mut operation = Operation::clone(&plan.operation);
    operation.budget = fresh(&operation.budget, start);
    operation.hold = Hold::new();
    operation.clock = Clock::fixed(std::time::UNIX_EPOCH);
    operation.seed = Some(seed.wrapping_add(u64::from(client)));
    operation.waits = Arc::default();
    Plan { operation: Arc::new(operation), ..plan.clone() }
}

fn fresh(budget: &Budget, start: Instant) -> Budget {
    match budget.setting() {
        // What was built once can be built again.
        Some(setting) => Budget::custom_at(*setting, start).unwrap_or_else(|_| budget.clone()),
        None => budget.clone(),
    }
}
