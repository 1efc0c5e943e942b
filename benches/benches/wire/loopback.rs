//! What a call costs that succeeds at once, over a client that does it alone.

use http::{Request, Response, StatusCode, Uri};
use http_body::Body;
use tokio::runtime::{Builder, Runtime};
use tower::{BoxError, Service};

use redial_benches::{
    callgrind::{self, collected},
    cpu, memory, options,
    progress::Progress,
    report::Report,
    rounds,
};

use crate::{
    few_or,
    overhead::Calls,
    peers::{Memory, Version, Who, call, with_service},
    server::{FAST, SLOW, Server},
};

/// Calls before those that are counted: the connection is made by the first.
pub const WARM: usize = 50;

/// Over one protocol.
pub fn report(report: &mut Report, server: &Server, version: Version) {
    let names = Who::ALL.map(Who::name);
    let progress = Progress::new(version.name(), names.len() + 1);
    progress.step("the processor's time");
    let cpu = times(server, version);
    let instructions = callgrind::is_installed().then(|| {
        let count = |who: Who| {
            progress.step(who.name());
            let words = [version as usize, place(who), server.port.into()].map(|number| number.to_string());
            callgrind::instructions(&["loopback", &words[0], &words[1], &words[2]], few_or(100), few_or(600))
        };
        Who::ALL.map(count).to_vec()
    });
    drop(progress);
    report.table(&Calls { names: &names, instructions, cpu: cpu.map(Vec::from) }.table(0.05));
}

fn place(who: Who) -> usize {
    Who::ALL.iter().position(|other| *other == who).expect("all of them")
}

/// What callgrind counts.
pub fn counted(work: &[String], times: usize) {
    let [version, who, port] = work else { panic!("which protocol, who, and where: {work:?}") };
    let version = if *version == (Version::Http1 as usize).to_string() { Version::Http1 } else { Version::Http2 };
    let who = Who::ALL[who.parse::<usize>().expect("a place")];
    let uri = uri(port.parse().expect("a port"), SLOW);
    let runtime = runtime();
    with_service!(who, version, |service| {
        let mut service = service;
        collected(|| runtime.block_on(one_by_one(&mut service, &uri, times)));
    });
}

/// The processor's nanoseconds for a call of each.
fn times(server: &Server, version: Version) -> Option<[f64; 5]> {
    cpu::of_this_thread()?;
    let (uri, calls) = (uri(server.port, FAST), few_or(1000));
    Some(rounds::medians(options::rounds(21), |place| {
        let runtime = runtime();
        with_service!(Who::ALL[place], version, |service| {
            let mut service = service;
            runtime.block_on(async {
                one_by_one(&mut service, &uri, WARM).await;
                let start = cpu::of_this_thread();
                one_by_one(&mut service, &uri, calls).await;
                let took = cpu::of_this_thread().zip(start).expect("it was known above");
                (took.0 - took.1).as_nanos() as f64 / calls as f64
            })
        })
    }))
}

/// All on one thread: the client's connection too.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub fn uri(port: u16, path: &str) -> Uri {
    format!("http://127.0.0.1:{port}{path}").parse().expect("a URI")
}

/// The request of every benchmark, to this URI.
pub fn request(uri: &Uri) -> Request<Memory> {
    let mut request = memory::request();
    *request.uri_mut() = uri.clone();
    request
}

/// To make the request is part of a call.
async fn one_by_one<S, RB>(service: &mut S, uri: &Uri, calls: usize)
where
    S: Service<Request<Memory>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Error: Into<BoxError>>,
{
    for _ in 0..calls {
        assert_eq!(call(service, request(uri)).await.expect("an answer"), StatusCode::OK);
    }
}
