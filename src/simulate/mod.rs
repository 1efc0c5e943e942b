//! What a policy does to a provider in trouble: a model of many clients, on virtual time.
//!
//! Clients make calls at random (a Poisson process each), a server of limited capacity answers them, and for a while
//! something is wrong with it: see [`Scenario`]. The clients' side is no model: plan, verdict, backoff, budget, hold and
//! the decision to repeat are the code that a [`RetryLayer`](crate::RetryLayer) runs, with a budget and a hold of its own
//! for each client, as separate processes have. The server's side is simple on purpose, and stated here:
//!
//! - It works off one queue at its capacity. What finds all places of the queue taken is refused at once, and a refusal
//!   costs a share of what serving costs, paid in the same queue. So a server that is asked too much serves less: that is
//!   how retries make an outage worse.
//! - In a brown-out it works more slowly; the places stay the same, and whoever has one waits longer.
//! - A swamped server refuses for free: its queue grows to twice what it allows, and no further.
//! - An attempt that its client gave up is worked off all the same.
//!
//! The same seed gives the same first tries whatever the strategy, and the same figures every time.
//!
//! ```
//! use redial::{StandardPolicy, Timeouts, Transient, simulate::{Scenario, Strategy, run}};
//! use std::time::Duration;
//!
//! let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
//! let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
//! let request = http::Request::get("http://orders.example/42").body(())?;
//!
//! let outage = Scenario::preset("outage").ok_or("no such scenario")?.scaled_to(20);
//! let figures = run(&outage, &Strategy::policy("usual", policy, &request))?;
//! assert!(figures.load_factor < 1.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod clients;
mod document;
mod events;
mod figures;
mod others;
mod picture;
mod run;
mod scenario;
mod server;
mod strategy;

pub use document::ScenarioError;
pub use figures::{Figures, Moment};
pub use others::OtherBudget;
pub use picture::{PictureError, draw};
pub use run::{run, run_watched};
pub use scenario::{Scenario, Server, Trouble, TroubleKind};
pub use strategy::Strategy;
