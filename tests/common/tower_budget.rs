//! tower's own budget on the model's time.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};

use redial::simulate::OtherBudget;
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};
use tower::retry::budget::{Budget, TpsBudget};

/// tower's default, which is reqwest's as well. It reads tokio's clock: run the model within a [`clock`].
#[derive(Default)]
pub struct TowerBudget(TpsBudget);

/// A runtime to enter, whose clock stands still until it is moved.
pub fn clock() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

impl TowerBudget {
    fn at(&self, now: Instant) -> &TpsBudget {
        let passed = now.saturating_duration_since(Instant::now());
        if !passed.is_zero() {
            // Moved at its first poll; what it waits for afterwards is that others run.
            let _ = pin!(tokio::time::advance(passed)).poll(&mut Context::from_waker(Waker::noop()));
        }
        assert_eq!(Instant::now(), now, "the clock is where the model is");
        &self.0
    }
}

impl OtherBudget for TowerBudget {
    fn succeeded(&mut self, now: Instant) {
        self.at(now).deposit();
    }

    fn withdraw(&mut self, now: Instant) -> bool {
        self.at(now).withdraw()
    }
}
