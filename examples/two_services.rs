//! Two services in a row, three attempts each: what the one behind them is sent, by what they tell each other.

use std::time::Duration;

#[path = "support/chain.rs"]
mod chain;

use chain::{Manners, call};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    println!("{:<58} {:>6} {:>6}", "requests for one call of the front, which fails", "middle", "back");
    for (what, manners) in [
        ("they know nothing of each other", Manners { told: false, read: false, once: false }),
        ("InboundLayer, but nobody writes what it reads", Manners { told: false, read: true, once: true }),
        ("OutboundHeadersLayer and InboundLayer: the deadline", Manners { told: true, read: true, once: false }),
        ("the same, once_when_caller_retries", Manners { told: true, read: true, once: true }),
    ] {
        let outcome = call(manners, Duration::from_secs(5)).await?;
        println!("{what:<58} {:>6} {:>6}", outcome.middle, outcome.back);
    }
    Ok(())
}
