//! Lives through the day.

use std::{io::IsTerminal, sync::PoisonError, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower::BoxError;

use crate::{
    clients::{Caller, Ended, NAMES},
    day::{PHASES, Phase, index},
    server::Server,
};

/// What one client lived through.
pub struct Client {
    pub name: &'static str,
    pub duplicate_writes: u64,
    pub phases: Vec<PhaseFigures>,
    /// Share of calls that ended well and requests a second, by when a call was due and a request was sent.
    pub series: Vec<Moment>,
}

#[derive(Clone, Default)]
pub struct PhaseFigures {
    pub calls: u64,
    pub sent: u64,
    pub ok: u64,
    pub millis: Vec<f64>,
    pub stops: std::collections::BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Default)]
pub struct Moment {
    pub calls: u64,
    pub ok: u64,
    pub sent: u64,
}

pub struct Day {
    pub clients: Vec<Client>,
    pub length: Duration,
    /// The length of a [`Moment`].
    pub step: Duration,
}

/// How many moments the picture has.
const MOMENTS: u32 = 70;

struct Record {
    client: usize,
    call: u64,
    took: Duration,
    ended: Ended,
}

pub async fn run(seed: u64, rate: u32, length: Duration) -> Result<Day, BoxError> {
    let start = Instant::now();
    let servers = [
        Server::start(seed, start, length).await?,
        Server::start(seed, start, length).await?,
        Server::start(seed, start, length).await?,
    ];
    let callers = Caller::all(&servers)?;
    let calls = (length.as_secs_f64() * f64::from(rate)) as u64;
    let bar = progress(calls);
    let mut running = JoinSet::new();
    let mut records = Vec::with_capacity(calls as usize * callers.len());
    for call in 0..calls {
        sleep_until(start + Duration::from_secs_f64(call as f64 / f64::from(rate))).await;
        for (client, caller) in callers.iter().enumerate() {
            let caller = caller.clone();
            running.spawn(async move {
                let began = Instant::now();
                let ended = caller.call(call).await;
                Record { client, call, took: began.elapsed(), ended }
            });
        }
        bar.set_message(Phase::at(start.elapsed(), length).name());
        bar.inc(1);
        while let Some(record) = running.try_join_next() {
            records.push(record?);
        }
    }
    while let Some(record) = running.join_next().await {
        records.push(record?);
    }
    bar.finish_and_clear();

    let step = length / MOMENTS;
    let mut clients: Vec<Client> = (NAMES.iter().zip(&servers))
        .map(|(name, server)| Client {
            name,
            duplicate_writes: server.duplicate_writes(),
            phases: vec![PhaseFigures::default(); PHASES.len()],
            series: vec![Moment::default(); MOMENTS as usize],
        })
        .collect();
    let moment = |time: Duration| ((time.as_secs_f64() / step.as_secs_f64()) as usize).min(MOMENTS as usize - 1);
    // A call counts for the time that it was due, and so do its requests where they are counted by phase.
    let due = |call: u64| Duration::from_secs_f64(call as f64 / f64::from(rate));
    for record in &records {
        let client = &mut clients[record.client];
        let phase = &mut client.phases[index(due(record.call), length)];
        let moment = &mut client.series[moment(due(record.call))];
        phase.calls += 1;
        moment.calls += 1;
        phase.millis.push(record.took.as_secs_f64() * 1000.0);
        match record.ended {
            Ended::Well => {
                phase.ok += 1;
                moment.ok += 1;
            }
            Ended::Badly(stop) => *phase.stops.entry(stop).or_default() += 1,
        }
    }
    for (client, caller) in clients.iter_mut().zip(&callers) {
        for (at, call) in caller.sent.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            client.phases[index(due(*call), length)].sent += 1;
            // The picture shows load when it arrives.
            client.series[moment(*at - start)].sent += 1;
        }
        for phase in &mut client.phases {
            phase.millis.sort_by(f64::total_cmp);
        }
    }
    Ok(Day { clients, length, step })
}

/// On a terminal; a pipe gets none.
fn progress(calls: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent:>3}%  {msg:<9} {eta} left");
    ProgressBar::new(calls).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
