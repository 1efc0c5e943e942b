//! What a call costs that succeeds at once, over reqwest alone.

use bytes::Bytes;
use http::StatusCode;
use reqwest::{Client, Request};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::runtime::Runtime;

use redial_benches::{
    callgrind::{self, collected},
    cpu,
    report::{Report, Table},
    rounds,
};

use crate::{
    loopback::{percent, requests, runtime, uri},
    peers::{Memory, WAIT, policy},
    scale::Scale,
    server::{FAST, SLOW, Server},
};

const NAMES: [&str; 4] = ["reqwest alone", "redial", "redial as a middleware", "reqwest-retry"];

pub fn report(report: &mut Report, scale: Scale, server: &Server) {
    let cpu = times(scale, server);
    let instructions = |place: usize| {
        let (place, port) = (place.to_string(), server.port.to_string());
        callgrind::instructions(&["reqwest", &place, &port], 100, scale.of(600))
    };
    let counted = callgrind::is_installed();
    let bare = counted.then(|| instructions(0));
    let mut table = Table::new(["", "instructions", "CPU"]);
    let alone = bare.map_or("-".into(), |bare| format!("{bare:.0}"));
    table.row([NAMES[0].into(), alone, cpu.map_or("-".into(), |cpu| format!("{:.1} µs", cpu[0] / 1000.0))]);
    for (place, name) in NAMES.iter().enumerate().skip(1) {
        let over = bare.map(|bare| instructions(place) / bare - 1.0);
        let cells = [(*name).into(), percent(over), percent(cpu.map(|cpu| cpu[place] / cpu[0] - 1.0))];
        match (place, over) {
            (1, Some(over)) => table.held(cells, "instructions +4 %", over <= 0.04),
            _ => table.row(cells),
        }
    }
    report.table(&table);
}

/// What callgrind counts.
pub fn counted(work: &[String], times: usize) {
    let [place, port] = work else { panic!("who, and where: {work:?}") };
    let requests = made(port.parse().expect("a port"), SLOW, times);
    run(&runtime(), place.parse().expect("a place"), Vec::new(), requests);
}

fn times(scale: Scale, server: &Server) -> Option<[f64; 4]> {
    cpu::of_this_thread()?;
    let calls = scale.of(1000);
    Some(rounds::medians(scale.of(21), |place| {
        let requests = |count| made(server.port, FAST, count);
        run(&runtime(), place, requests(50), requests(calls)) / calls as f64
    }))
}

fn made(port: u16, path: &str, count: usize) -> Vec<Request> {
    // The same bytes, as a body that reqwest can clone: its peer repeats no other.
    let in_memory = |request: http::Request<Memory>| request.map(|_| Bytes::from_static(&[1; 256]));
    let requests = requests(&uri(port, path), count).into_iter().map(in_memory);
    requests.map(|request| request.try_into().expect("a request")).collect()
}

/// The processor's nanoseconds for the second of these.
fn run(runtime: &Runtime, place: usize, warm: Vec<Request>, requests: Vec<Request>) -> f64 {
    let client =
        Client::builder().retry(reqwest::retry::never()).no_proxy().tcp_nodelay(true).build().expect("a client");
    macro_rules! through {
        ($client:expr) => {{
            let client = $client;
            runtime.block_on(one_by_one(async |request| client.execute(request).await.expect("an answer"), warm));
            let start = cpu::of_this_thread();
            let calls = one_by_one(async |request| client.execute(request).await.expect("an answer"), requests);
            collected(|| runtime.block_on(calls));
            cpu::of_this_thread().zip(start).map_or(0.0, |(now, start)| (now - start).as_nanos() as f64)
        }};
    }
    match place {
        0 => through!(client),
        1 => through!(redial::reqwest::client(client, policy())),
        2 => through!(
            ClientBuilder::new(client).with(redial::reqwest_middleware::RetryMiddleware::new(policy())).build()
        ),
        _ => {
            let backoff = ExponentialBackoff::builder().retry_bounds(WAIT, WAIT * 2).build_with_max_retries(2);
            through!(ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(backoff)).build())
        }
    }
}

async fn one_by_one(call: impl AsyncFn(Request) -> reqwest::Response, requests: Vec<Request>) {
    for request in requests {
        let answer = call(request).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.bytes().await.expect("its body");
    }
}
