//! How many jobs a second pass through a store with all its semantics on (claimed, leased, fenced, completed), and through
//! a runner with all that it does for each (a task of its own, a lease that is renewed, a span, a deadline).
//!
//! 10 000 jobs that do nothing, 8 at once, in batches of 1, 10 and 100; on an empty table, on one with 200 000 finished jobs,
//! and with a backlog of 100 000. And how long an idle worker takes to have a job that is enqueued in its process. SQLite
//! always; PostgreSQL where `REDIAL_TEST_POSTGRES` is the URL of a server.
//!
//! `cargo bench -p redial-jobs --all-features` prints the table; each figure is the median of five rounds. An argument, such
//! as `-- sqlite`, asks for one store, and `-- idle` for how long an idle worker takes alone. What apalis' own storages do with the same work: `compare/`, beside this folder.

mod figures;
mod place;
mod runner;
mod store;

use std::time::Duration;

use figures::Bars;
use place::Place;
use store::Before;

const JOBS: usize = 10_000;
const WORKERS: usize = 8;
const ROUNDS: usize = 5;
/// Between enqueueing and working: what the one leaves to the disk is not the other's.
const PAUSE: Duration = Duration::from_millis(500);

/// Where it runs, what of it must be reached, and how it is called.
struct Engine {
    name: &'static str,
    bars: Bars,
    server: Option<String>,
}

impl Engine {
    async fn place(&self) -> (Place, redial_jobs::SqlStore) {
        match &self.server {
            None => Place::sqlite().await,
            Some(url) => Place::postgres(url).await,
        }
    }
}

async fn throughput(engines: &[Engine]) {
    figures::header();
    for engine in engines {
        let mut bars = engine.bars;
        for (what, before) in Before::ALL {
            let reached = store::measure(engine.name, what, before, bars, engine.place().await).await;
            if matches!(before, Before::Nothing) {
                // What is in the table costs a fifth at most.
                bars = Bars(reached.map(|rate| rate * 0.8));
            }
        }
        runner::measure(&format!("{}, runner", engine.name), engine.bars, engine.place().await).await;
    }
    println!();
}

async fn pick_up(engines: &[Engine]) {
    figures::pick_up_header();
    for engine in engines {
        store::pick_up(engine.name, engine.place().await).await;
        runner::pick_up(&format!("{}, runner", engine.name), engine.place().await).await;
    }
}

fn main() {
    let mut asked: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let idle_only = asked.iter().any(|asked| asked == "idle");
    asked.retain(|asked| asked != "idle");
    let wanted =
        |engine: &Engine| asked.is_empty() || asked.iter().any(|asked| asked.eq_ignore_ascii_case(engine.name));
    let mut engines = vec![Engine { name: "SQLite", bars: figures::SQLITE, server: None }];
    match std::env::var("REDIAL_TEST_POSTGRES") {
        Ok(url) => engines.push(Engine { name: "PostgreSQL", bars: figures::POSTGRES, server: Some(url) }),
        Err(_) => println!("PostgreSQL is left out: REDIAL_TEST_POSTGRES names no server\n"),
    }
    engines.retain(wanted);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if !idle_only {
        println!("{JOBS} jobs at a time (in batches of 1: {}), {WORKERS} at once\n", JOBS / 5);
        runtime.block_on(throughput(&engines));
    }
    runtime.block_on(pick_up(&engines));
    println!("\n{}", figures::LEGEND);
}
