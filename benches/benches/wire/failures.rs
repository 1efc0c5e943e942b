//! What becomes of the connection under answers that are repeated.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use redial::testing::{self, Reply, Script};
use tokio::runtime::Builder;
use tower::{BoxError, Service};

use redial_benches::{
    memory,
    progress::Progress,
    report::{Report, Table},
};

use crate::{
    few_or,
    loopback::runtime,
    peers::{Memory, Version, Who, call, with_service},
};

/// New connections, where 64 KiB come with each 503 over HTTP/1.1.
const CALLERS: usize = 3;

/// Successes, where 1 MiB comes with each 503 over HTTP/2.
const STREAMS: usize = 16;

/// One row of each kind for all that repeat.
pub fn report(report: &mut Report) {
    let calls = few_or(1000);
    let progress = Progress::new("wire, failures", Who::ALL.len() - 1);
    let mut table = Table::new(["", "new connections", "success over HTTP/2"]);
    for who in &Who::ALL[1..] {
        progress.step(who.name());
        let connections = run(*who, Version::Http1, calls, CALLERS, 64 * 1024).connections;
        let streams = run(*who, Version::Http2, calls, STREAMS, 1024 * 1024);
        let success = streams.answered as f64 / calls as f64;
        let cells = [who.name().into(), connections.to_string(), format!("{:.1} %", success * 100.0)];
        match who {
            Who::Redial => {
                table.held(cells, &format!("{CALLERS}, 100 %"), connections <= CALLERS && streams.answered == calls)
            }
            _ => table.row(cells),
        }
    }
    drop(progress);
    report.table(&table);
}

struct Found {
    answered: usize,
    connections: usize,
}

/// Each call is answered 503 twice, with a body of this size, and then 200.
fn run(who: Who, version: Version, calls: usize, at_once: usize, size: usize) -> Found {
    let runtime = match version {
        // One thread: a connection is then back in the pool when the next call looks there, unless it was given up.
        Version::Http1 => runtime(),
        // Several: the server is still sending when an answer is dropped, as every server is.
        Version::Http2 => Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"),
    };
    runtime.block_on(async {
        let body = Bytes::from(vec![1; size]);
        let failed = || Reply::status(503).body(body.clone());
        let script = (0..calls).fold(Script::new([Reply::status(404)]), |script, call| {
            script.route(&format!("/{call}"), [failed(), failed(), Reply::ok("done")])
        });
        let server = match version {
            Version::Http1 => testing::Server::http1(script),
            Version::Http2 => testing::Server::http2(script),
        };
        let answered = with_service!(who, version, |service| {
            concurrently(service, calls, at_once, |call| server.url(&call.to_string())).await
        });
        Found { answered, connections: server.stop().await.connections }
    })
}

/// How many of the calls were answered well.
async fn concurrently<S, RB>(service: S, calls: usize, at_once: usize, url: impl Fn(usize) -> String) -> usize
where
    S: Service<Request<Memory>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError> + Send,
    RB: Body<Data: Send, Error: Into<BoxError> + Send> + Send + 'static,
{
    let requests: Vec<Request<Memory>> = (0..calls)
        .map(|call| {
            let mut request = memory::request();
            *request.uri_mut() = url(call).parse().expect("a URI");
            request
        })
        .collect();
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..at_once)
        .map(|_| {
            let (mut service, requests, next) = (service.clone(), Arc::clone(&requests), Arc::clone(&next));
            tokio::spawn(async move {
                let mut answered = 0;
                while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let status = call(&mut service, request.clone()).await;
                    answered += usize::from(status.is_ok_and(|status| status == StatusCode::OK));
                }
                answered
            })
        })
        .collect();
    let mut answered = 0;
    for caller in callers {
        answered += caller.await.expect("a caller ends");
    }
    answered
}
