//! What a call costs that succeeds at once, over reqwest alone.

use bytes::Bytes;
use http::{StatusCode, Uri};
use redial::reqwest_middleware::RetryMiddleware;
use reqwest::{Client, Request, Response, Url};
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
    loopback::{WARM, percent, request, runtime, uri},
    peers::{WAIT, policy},
    scale::Scale,
    server::{FAST, SLOW, Server},
};

const NAMES: [&str; 4] = ["reqwest alone", "redial", "redial as a middleware", "reqwest-retry"];

pub fn report(report: &mut Report, scale: Scale, server: &Server) {
    let cpu = times(scale, server);
    let instructions = |place: usize| {
        let (place, port) = (place.to_string(), server.port.to_string());
        callgrind::instructions(&["reqwest", &place, &port], scale.of(100), scale.of(600))
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
    let uri = uri(port.parse().expect("a port"), SLOW);
    run(&runtime(), place.parse().expect("a place"), &uri, 0, times);
}

fn times(scale: Scale, server: &Server) -> Option<[f64; 4]> {
    cpu::of_this_thread()?;
    let (uri, calls) = (uri(server.port, FAST), scale.of(1000));
    Some(rounds::medians(scale.of(21), |place| run(&runtime(), place, &uri, WARM, calls) / calls as f64))
}

/// The processor's nanoseconds for these calls, after some to warm up.
fn run(runtime: &Runtime, place: usize, uri: &Uri, warm: usize, calls: usize) -> f64 {
    let client =
        Client::builder().retry(reqwest::retry::never()).no_proxy().tcp_nodelay(true).build().expect("a client");
    macro_rules! through {
        ($client:expr) => {{
            let client = $client;
            let call = async |request| client.execute(request).await.expect("an answer");
            runtime.block_on(one_by_one(call, uri, warm));
            let start = cpu::of_this_thread();
            collected(|| runtime.block_on(one_by_one(call, uri, calls)));
            cpu::of_this_thread().zip(start).map_or(0.0, |(now, start)| (now - start).as_nanos() as f64)
        }};
    }
    match place {
        0 => through!(client),
        1 => through!(redial::reqwest::client(client, policy())),
        2 => through!(ClientBuilder::new(client).with(RetryMiddleware::new(policy())).build()),
        _ => {
            let backoff = ExponentialBackoff::builder().retry_bounds(WAIT, WAIT * 2).build_with_max_retries(2);
            through!(ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(backoff)).build())
        }
    }
}

async fn one_by_one(call: impl AsyncFn(Request) -> Response, uri: &Uri, calls: usize) {
    let url = &uri.to_string();
    for _ in 0..calls {
        let head = request(uri).into_parts().0;
        let mut request = Request::new(head.method, Url::parse(url).expect("a URL"));
        *request.headers_mut() = head.headers;
        // The same bytes, as a body that reqwest can clone: its peer repeats no other.
        *request.body_mut() = Some(Bytes::from_static(&[1; 256]).into());
        let answer = call(request).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.bytes().await.expect("its body");
    }
}
