//! What a call costs the caller: `cargo bench --bench cost`.
//!
//! The same request (POST, 8 headers, 256 bytes) and the same rule (three attempts on 503, a timeout for each and for
//! all, a wait between) through `RetryLayer`, through tower's own layers, and through a loop written by hand, in one
//! run. Figures are over the bare service.
//!
//! - **time**: the median of rounds that take turns, so that a drifting machine moves all alike. Retries wait on a
//!   paused clock.
//! - **instructions**: by callgrind, where valgrind is installed: this very program, run again with more and fewer calls.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use redial::{Backoff, Budget, RetryLayer, StandardPolicy, Timeouts, Transient, policy::budget::BudgetSetting};
use tokio::runtime::{Builder, Runtime};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use redial_benches::{callgrind::{self, collected}, memory::{Memory, request}, towers::Towers};

type Body = Full<Bytes>;

const ATTEMPT: Duration = Duration::from_secs(1);
const TOTAL: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_millis(2);

/// How long the median's rounds take together, for each figure.
const ROUNDS: usize = 41;
const CALLS: usize = 1000;

#[derive(Clone, Copy, PartialEq)]
enum Who {
    Bare,
    Redial,
    Tower,
    Hand,
}

const PEERS: [(Who, &str); 3] =
    [(Who::Redial, "redial"), (Who::Tower, "tower retry + timeout"), (Who::Hand, "loop by hand")];

/// The service: how often it yields, and how often it fails first.
const CASES: [(&str, u32, u32); 3] = [("ready at once", 0, 0), ("yields once", 1, 0), ("two retries", 1, 2)];

fn main() {
    if let Some((work, times)) = callgrind::asked() {
        calls(work[0].parse().expect("a case"), work[1].parse().expect("a place"), times);
        return;
    }
    let callgrind = callgrind::is_installed();
    if !callgrind {
        println!("valgrind is not installed: no instructions are counted");
    }
    println!("\na call over the bare service, {CALLS} calls a round, median of {ROUNDS} rounds\n");
    println!("{:<15} {:<22} {:>9} {:>14}", "", "", "time", "instructions");
    for (index, (case, yields, fails)) in CASES.into_iter().enumerate() {
        let times = times(yields, fails);
        let bare_instructions = callgrind.then(|| instructions(index, 0));
        for (place, (who, name)) in PEERS.into_iter().enumerate() {
            let instructions = bare_instructions.map(|bare| format!("{:.0}", instructions(index, place + 1) - bare));
            println!(
                "{:<15} {name:<22} {:>6.0} ns {:>14}",
                if place == 0 { case } else { "" },
                times[place + 1] - times[0],
                instructions.as_deref().unwrap_or("-"),
            );
        }
    }
    println!("\nfuture, bytes: redial {}, tower {}, bare {}", size(redial(0, 0)), size(tower(0, 0)), size(bare(0, 0)));
}

fn size<S: Service<Request<Body>>>(_: S) -> usize {
    size_of::<S::Future>()
}

fn bare(yields: u32, fails: u32) -> Memory {
    Memory::new(fails, yields)
}

fn redial(yields: u32, fails: u32) -> redial::retry::Retry<Memory, StandardPolicy> {
    let timeouts = Timeouts { attempt: ATTEMPT, total: TOTAL };
    let backoff = Backoff::exponential(WAIT).max(WAIT * 2).floor(Duration::from_millis(1));
    // The usual budget would refuse to repeat for a service whose first tries all fail, and the refusals would be what is
    // measured. This one keeps the same accounts, and each first try pays for its own two repeats.
    let budget = match fails {
        0 => Budget::usual(),
        _ => Budget::custom(BudgetSetting::bucket(5.0).per_first_try(2.0).refund_on_success(true)).expect("a budget"),
    };
    let policy = StandardPolicy::builder("things", timeouts, Transient::usual())
        .backoff(backoff)
        .budget(budget)
        .idempotent("a repeat writes the same again")
        .build()
        .expect("a policy");
    ServiceBuilder::new().layer(RetryLayer::new(policy)).service(bare(yields, fails))
}

fn tower(
    yields: u32,
    fails: u32,
) -> tower::timeout::Timeout<tower::retry::Retry<Towers, tower::timeout::Timeout<Memory>>> {
    let service = bare(yields, fails);
    ServiceBuilder::new().timeout(TOTAL).retry(Towers { left: 2, wait: WAIT }).timeout(ATTEMPT).service(service)
}

/// As it is written everywhere, with the same rule.
async fn hand(service: &mut Memory, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let attempts = async {
        for _ in 1..=2 {
            let attempt =
                tokio::time::timeout(ATTEMPT, ServiceExt::<Request<Body>>::ready(service).await?.call(request.clone()));
            match attempt.await {
                Ok(Ok(response)) if response.status() != 503 => return Ok(response),
                _ => tokio::time::sleep(WAIT).await,
            }
        }
        tokio::time::timeout(ATTEMPT, ServiceExt::<Request<Body>>::ready(service).await?.call(request)).await?
    };
    tokio::time::timeout(TOTAL, attempts).await?
}

fn runtime() -> Runtime {
    // Paused: a wait costs its bookkeeping and no time.
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

/// Every call must end well: one that gave up early would be cheap.
fn answered<RB, E: std::fmt::Debug>(answer: Result<Response<RB>, E>) {
    assert_eq!(black_box(answer.expect("an answer")).status(), 200);
}

/// Calls of one kind, one after the other, with requests made beforehand.
fn round(runtime: &Runtime, who: Who, yields: u32, fails: u32, requests: Vec<Request<Body>>) -> Duration {
    macro_rules! through {
        ($service:expr) => {{
            let mut service = $service;
            collected(|| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for request in requests {
                        let ready = ServiceExt::<Request<Body>>::ready(&mut service).await.expect("ready");
                        answered(ready.call(request).await);
                    }
                    start.elapsed()
                })
            })
        }};
    }
    match who {
        // Alone it answers once: the difference is what the repeats cost, the service's own work in them included.
        Who::Bare => through!(bare(yields, 0)),
        Who::Tower => through!(tower(yields, fails)),
        Who::Redial => through!(redial(yields, fails)),
        Who::Hand => {
            let mut service = bare(yields, fails);
            collected(|| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for request in requests {
                        answered(hand(&mut service, request).await);
                    }
                    start.elapsed()
                })
            })
        }
    }
}

/// Nanoseconds a call: of the bare service, then of each peer.
fn times(yields: u32, fails: u32) -> [f64; 4] {
    let runtime = runtime();
    let everyone = [Who::Bare, Who::Redial, Who::Tower, Who::Hand];
    let mut rounds = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (who, rounds) in everyone.into_iter().zip(&mut rounds) {
            let requests = (0..CALLS).map(|_| request()).collect();
            rounds.push(round(&runtime, who, yields, fails, requests).as_nanos() as f64 / CALLS as f64);
        }
    }
    rounds.map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        rounds[ROUNDS / 2]
    })
}

/// What the program does under callgrind.
fn calls(case: usize, place: usize, calls: usize) {
    let (_, yields, fails) = CASES[case];
    let who = [Who::Bare, Who::Redial, Who::Tower, Who::Hand][place];
    let requests = (0..calls).map(|_| request()).collect();
    round(&runtime(), who, yields, fails, requests);
}

/// Instructions of one call.
fn instructions(case: usize, place: usize) -> f64 {
    callgrind::instructions(&[&case.to_string(), &place.to_string()], 100, 600)
}
