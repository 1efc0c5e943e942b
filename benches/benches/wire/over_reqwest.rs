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
    cpu, options,
    progress::Progress,
    report::Report,
    rounds,
};

use crate::{
    few_or,
    loopback::{WARM, request, runtime, uri},
    overhead::Calls,
    peers::{TIMEOUTS, WAIT, policy},
    server::{FAST, SLOW, Server},
};

const NAMES: [&str; 4] = ["reqwest alone", "redial", "redial as a middleware", "reqwest-retry"];

pub fn report(report: &mut Report, server: &Server) {
    let progress = Progress::new("wire, reqwest", NAMES.len() + 1);
    progress.step("the processor's time");
    let cpu = times(server);
    let instructions = callgrind::is_installed().then(|| {
        let count = |place: usize| {
            progress.step(NAMES[place]);
            callgrind::instructions(
                &["reqwest", &place.to_string(), &server.port.to_string()],
                few_or(100),
                few_or(600),
            )
        };
        (0..NAMES.len()).map(count).collect()
    });
    drop(progress);
    report.table(&Calls { names: &NAMES, instructions, cpu: cpu.map(Vec::from) }.table(0.04));
}

/// What callgrind counts.
pub fn counted(work: &[String], times: usize) {
    let [place, port] = work else { panic!("who, and where: {work:?}") };
    let uri = uri(port.parse().expect("a port"), SLOW);
    run(&runtime(), place.parse().expect("a place"), &uri, 0, times);
}

fn times(server: &Server) -> Option<[f64; 4]> {
    cpu::of_this_thread()?;
    let (uri, calls) = (uri(server.port, FAST), few_or(1000));
    Some(rounds::medians(options::rounds(21), |place| run(&runtime(), place, &uri, WARM, calls) / calls as f64))
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
        1 => through!(redial::reqwest::client(client, policy(TIMEOUTS))),
        2 => through!(ClientBuilder::new(client).with(RetryMiddleware::new(policy(TIMEOUTS))).build()),
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
