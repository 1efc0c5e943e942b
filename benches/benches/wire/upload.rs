//! A long upload, which streams through the replay tee and soon past what that keeps.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use redial::{Replay, RetryLayer, Timeouts};
use tower::Layer;

use redial_benches::{
    cpu, heap, options,
    progress::Progress,
    report::{Report, Table},
    rounds,
};

use crate::{
    few_or,
    loopback::{runtime, uri},
    overhead::{or_dash, percent},
    peers::{Version, call, hyper, policy},
    server::{FAST, Server},
};

const GIB: usize = 1 << 30;
const KIB: usize = 1 << 10;

/// What is kept of a body that is not in memory.
const CAP: usize = 64 * KIB;

/// As files are read, and as long as a frame of HTTP/2.
const CHUNK: usize = 16 * KIB;

const LONG: Duration = Duration::from_secs(600);

/// So much of it, each chunk an allocation of its own, as where a file is read.
struct Upload {
    left: usize,
}

impl Replay for Upload {}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let size = self.left.min(CHUNK);
        self.left -= size;
        Poll::Ready(Some(Ok(Frame::data(vec![1; size].into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

pub fn report(report: &mut Report, server: &Server) {
    let size = few_or(GIB);
    let progress = Progress::new("wire, upload", 2);
    progress.step("time");
    // The shortest by the wall, since whatever else the machine does makes it longer; and the median of the processor's.
    let mut times = [f64::INFINITY; 2];
    let mut cpu: [Vec<f64>; 2] = Default::default();
    for _ in 0..options::rounds(15) {
        for through in [0, 1] {
            let (start, busy) = (Instant::now(), cpu::of_this_thread());
            upload(through == 1, server.port, size);
            times[through] = times[through].min(start.elapsed().as_secs_f64());
            if let Some((now, before)) = cpu::of_this_thread().zip(busy) {
                cpu[through].push((now - before).as_secs_f64());
            }
        }
    }
    let cpu = cpu.map(|rounds| (!rounds.is_empty()).then(|| rounds::median(rounds)));
    progress.step("memory");
    let heap = heap::is_measured().then(|| [false, true].map(|through| peak(through, server)));
    drop(progress);
    let mut table = Table::new(["", "shortest time", "CPU", "most memory at once"]);
    let seconds = |time: f64| format!("{time:.2} s");
    let memory = |of: usize| or_dash(heap.map(|heap| format!("{:.1} KiB", heap[of] as f64 / KIB as f64)));
    table.row(["hyper alone".into(), seconds(times[0]), or_dash(cpu[0].map(seconds)), memory(0)]);
    let longer = times[1] / times[0];
    let busier = cpu[1].zip(cpu[0]).map(|(through, alone)| through / alone - 1.0);
    let more = heap.map(|[alone, through]| through.saturating_sub(alone));
    let cells = [
        "redial".into(),
        percent(Some(longer - 1.0)),
        percent(busier),
        or_dash(more.map(|more| format!("+{:.1} KiB", more as f64 / KIB as f64))),
    ];
    table.held(cells, "time +10 %, 64 KiB", longer <= 1.1 && more.is_none_or(|more| more <= CAP));
    report.table(&table);
}

/// The most that is on the heap at once, in a process of its own.
fn peak(through: bool, server: &Server) -> usize {
    let size = few_or(GIB / 8).to_string();
    heap::peak(&["upload", &u8::from(through).to_string(), &server.port.to_string()], &size)
}

/// What that process does.
pub fn measured(work: &[String], size: usize) {
    let [through, port] = work else { panic!("how, and where to: {work:?}") };
    upload(through == "1", port.parse().expect("a port"), size);
}

fn upload(through_redial: bool, port: u16, size: usize) {
    let request = Request::put(uri(port, FAST)).body(Upload { left: size }).expect("a request");
    runtime().block_on(async {
        let status = if through_redial {
            // Valgrind takes its time.
            let policy = policy(Timeouts { attempt: LONG / 2, total: LONG });
            call(&mut RetryLayer::new(policy).layer(hyper(Version::Http1)), request).await
        } else {
            call(&mut hyper(Version::Http1), request).await
        };
        assert_eq!(status.expect("an answer"), StatusCode::OK);
    });
}
