//! Clients that contend for one row: the model of the AWS Architecture Blog's "Exponential Backoff And Jitter", told anew
//! from the description there and the parameters of its simulator (github.com/aws-samples/aws-arch-backoff-simulator).
//!
//! All clients start at once. Each reads the row's version and writes under that version; where another wrote meanwhile,
//! the write fails, and the client waits and reads again. Each way over the network takes about 10 ms: a normal
//! distribution, with a deviation of 2 ms.

use std::{cmp::Reverse, collections::BinaryHeap, f64::consts::TAU, time::Duration};

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use redial::Backoff;

/// What it took until all had written.
pub struct Cost {
    /// Writes, those that failed included.
    pub calls: f64,
    /// Seconds.
    pub time: f64,
}

/// The mean of so many runs.
pub fn mean(clients: usize, backoff: &Backoff, runs: u64) -> Cost {
    let mut sum = Cost { calls: 0.0, time: 0.0 };
    for seed in 0..runs {
        let run = Run::new(clients, backoff, seed).until_all_have_written();
        sum.calls += run.calls / runs as f64;
        sum.time += run.time / runs as f64;
    }
    sum
}

/// What reaches whom; numbers are versions of the row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Read,
    Version(u64),
    Write(u64),
    Refused,
}

#[derive(Clone, Copy, Default)]
struct Client {
    retries: u32,
    waited: Option<Duration>,
}

struct Run<'a> {
    backoff: &'a Backoff,
    dice: Xoshiro256PlusPlus,
    clients: Vec<Client>,
    /// By nanoseconds, then by client: two messages of one client are never under way at once.
    under_way: BinaryHeap<Reverse<(u64, usize, Message)>>,
}

impl<'a> Run<'a> {
    fn new(clients: usize, backoff: &'a Backoff, seed: u64) -> Self {
        let dice = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut run = Run { backoff, dice, clients: vec![Client::default(); clients], under_way: BinaryHeap::new() };
        for client in 0..clients {
            run.send(0, client, Message::Read);
        }
        run
    }

    fn until_all_have_written(mut self) -> Cost {
        let (mut version, mut calls, mut end) = (0, 0, 0);
        while let Some(Reverse((now, client, message))) = self.under_way.pop() {
            match message {
                Message::Read => self.send(now, client, Message::Version(version)),
                Message::Version(read) => self.send(now, client, Message::Write(read)),
                Message::Write(read) => {
                    calls += 1;
                    if read == version {
                        version += 1;
                        end = now + self.way();
                    } else {
                        self.send(now, client, Message::Refused);
                    }
                }
                Message::Refused => {
                    let wait = self.wait(client);
                    self.send(now + wait.as_nanos() as u64, client, Message::Read);
                }
            }
        }
        Cost { calls: f64::from(calls), time: end as f64 / 1e9 }
    }

    fn wait(&mut self, client: usize) -> Duration {
        let roll = self.dice.next_u64();
        let client = &mut self.clients[client];
        let wait = self.backoff.wait_at(client.retries, client.waited, roll);
        client.retries += 1;
        client.waited = Some(wait);
        wait
    }

    fn send(&mut self, now: u64, client: usize, message: Message) {
        let at = now + self.way();
        self.under_way.push(Reverse((at, client, message)));
    }

    /// One way over the network, in nanoseconds.
    fn way(&mut self) -> u64 {
        let (mean, deviation) = (10e6, 2e6);
        // Box and Muller's.
        let normal = (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (TAU * self.unit()).cos();
        (mean + deviation * normal).abs() as u64
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
