//! The model of clients and a provider in trouble.

use std::time::Duration;

use redial::{
    StandardPolicy, Timeouts, Transient,
    policy::{Backoff, StandardPolicyBuilder, budget::Budget},
    simulate::{Figures, Scenario, Strategy, run},
};

mod model;
mod scenarios;
mod storm;
#[path = "../../common/tower_budget.rs"]
mod tower_budget;

/// As many clients as show the shares to a percent.
const CLIENTS: u32 = 100;

fn builder() -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let backoff = Backoff::exponential(Duration::from_millis(100)).max(Duration::from_secs(10));
    StandardPolicy::builder("orders", timeouts, Transient::usual()).backoff(backoff)
}

fn strategy(name: &str, policy: StandardPolicyBuilder) -> Strategy {
    let request = http::Request::get("http://orders.example/42").body(()).unwrap();
    Strategy::policy(name, policy.build().unwrap(), &request)
}

fn with_budget(name: &str, budget: Budget) -> Strategy {
    strategy(name, builder().budget(budget))
}

/// A scenario that ships, with fewer clients and without its long beginning: budgets begin full.
fn scenario(name: &str) -> Scenario {
    let mut scenario = Scenario::preset(name).unwrap().scaled_to(CLIENTS);
    let seconds = Duration::from_secs;
    scenario.length = seconds(32);
    (scenario.trouble.from, scenario.trouble.until) = (seconds(5), seconds(25));
    scenario
}

fn figures(scenario: &Scenario, strategy: &Strategy) -> Figures {
    run(scenario, strategy).unwrap()
}
