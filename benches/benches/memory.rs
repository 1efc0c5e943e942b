//! What a call costs in memory: `cargo bench --bench memory`.
//!
//! Allocations and their bytes, counted by an allocator that counts; it costs instructions, so this is a program of its
//! own. Figures are over the bare service; what is held while a call waits is all that there is of the call, its own
//! future included.

use std::{
    future::Future,
    hint::black_box,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use allocation_counter::measure;
use futures_util::FutureExt;
use http::Request;
use redial_benches::{
    contenders::{Body, Caller, Case, Size, Who, Work},
    memory::request,
    options,
    progress::Progress,
    report::{Report, Table},
};
/// Allocations and bytes of one call.
#[derive(Clone, Copy)]
struct Counted {
    count: f64,
    bytes: f64,
}

fn main() {
    let mut report = Report::new("memory", "What a call costs in memory");
    report.say(
        "Allocations and their bytes, over the bare service, of the same calls as above. The extensions are one `String` of \
         the caller's: bar is the head, and what it costs to clone them once.\n",
    );
    allocations(&mut report);
    waiting(&mut report);
    report.write();
}

fn with_extension() -> Request<Body> {
    let mut request = request();
    request.extensions_mut().insert(String::from("the caller's own"));
    request
}

fn allocations(report: &mut Report) {
    let clone = {
        let request = with_extension();
        measure(|| drop(black_box(request.extensions().clone()))).count_total as f64
    };
    type Row<'a> = (&'static str, &'a dyn Fn(Who) -> Counted, f64);
    let rows: [Row<'_>; 4] = [
        ("first attempt succeeds", &|who| who.work(Case::YIELDS, One(request)), 3.0),
        ("the same, 1000 in flight", &|who| who.work(Case::YIELDS, InFlight(1000)), 3.0),
        ("the same, with extensions", &|who| who.work(Case::YIELDS, One(with_extension)), 1.0 + clone),
        ("two retries", &|who| who.work(Case::RETRIES, One(request)), 18.0),
    ];
    let progress = Progress::new("memory, allocations", rows.len());
    let mut table = table("allocations (bytes)");
    for (name, of, bar) in rows {
        progress.step(name);
        let bare = of(Who::Bare);
        let figures = Who::OVER.map(|who| {
            let Counted { count, bytes } = of(who);
            Counted { count: count - bare.count, bytes: bytes - bare.bytes }
        });
        let cells = figures.map(|Counted { count, bytes }| format!("{count:.0} ({bytes:.0})"));
        table.held(row(name, cells), &format!("at most {bar}"), figures[0].count <= bar);
    }
    drop(progress);
    report.table(&table);
}

fn waiting(report: &mut Report) {
    report.say(
        "Bytes held by each call that waits for its second attempt: its future, its timers, and the request that it keeps. The \
         bar is 2600 over a service whose future has 528 bytes, and lower by what this one's has less.\n",
    );
    let bar = 2600.0 - (528.0 - Who::Bare.work(Case::READY, Size));
    let most = if options::quick() { 10_000 } else { 100_000 };
    let amounts = [1, 1000, most];
    let progress = Progress::new("memory, calls that wait", amounts.len());
    let mut table = table("bytes held");
    for calls in amounts {
        progress.step(&format!("{calls} calls"));
        let figures = Who::OVER.map(|who| who.work(Case::OUTAGE, Waiting(calls)));
        let cells = figures.map(|bytes| format!("{bytes:.0}"));
        let name = format!("{calls} waiting");
        table.held(row(&name, cells), &format!("at most {bar}"), figures[0] <= bar);
    }
    drop(progress);
    report.table(&table);
}

fn table(unit: &str) -> Table {
    let [a, b, c, d, e] = Who::NAMES;
    Table::new([unit, a, b, c, d, e])
}

fn row(name: &str, [a, b, c, d, e]: [String; 5]) -> [String; 6] {
    [name.to_string(), a, b, c, d, e]
}

/// One call with such a request, the second of its kind: the first also pays for what is made once a thread.
struct One(fn() -> Request<Body>);

impl Work for One {
    type Found = Counted;

    fn with(self, mut caller: impl Caller) -> Counted {
        let runtime = Case::RETRIES.runtime();
        let mut call = |request| {
            let counted = measure(|| {
                // Within: tower's layers make their timers when they are called.
                let answer = runtime.block_on(async { caller.call(request).await });
                assert_eq!(answer.expect("an answer").status(), 200);
            });
            Counted { count: counted.count_total as f64, bytes: counted.bytes_total as f64 }
        };
        call((self.0)());
        call((self.0)())
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// A call, boxed and polled once.
fn begun(caller: &mut impl Caller, request: Request<Body>) -> Boxed {
    // Not an `async` block, which would keep a second place for it.
    let mut call: Boxed = Box::pin(caller.call(request).map(drop));
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "it is in flight, or it waits");
    call
}

/// The mean of so many calls at once. The boxes that hold them here are not theirs.
struct InFlight(usize);

impl Work for InFlight {
    type Found = Counted;

    fn with(self, mut caller: impl Caller) -> Counted {
        let runtime = Case::RETRIES.runtime();
        let _inside = runtime.enter();
        drop(begun(&mut caller, request()));
        let requests: Vec<_> = (0..self.0).map(|_| request()).collect();
        let mut calls = Vec::with_capacity(self.0);
        let mut boxes = 0;
        let counted = measure(|| {
            for request in requests {
                let call = begun(&mut caller, request);
                boxes += size_of_val(&*call);
                calls.push(call);
            }
        });
        let each = |total: u64, boxes: usize| (total as f64 - boxes as f64) / self.0 as f64;
        Counted { count: each(counted.count_total, self.0), bytes: each(counted.bytes_total, boxes) }
    }
}

/// The mean of what each of so many calls holds, its box included: a call that waits has to be somewhere.
struct Waiting(usize);

impl Work for Waiting {
    type Found = f64;

    fn with(self, mut caller: impl Caller) -> f64 {
        let runtime = Case::RETRIES.runtime();
        let _inside = runtime.enter();
        drop(begun(&mut caller, request()));
        let mut calls = Vec::with_capacity(self.0);
        // Requests are made within, so that what is let go of them counts too.
        let counted = measure(|| {
            for _ in 0..self.0 {
                calls.push(begun(&mut caller, request()));
            }
        });
        counted.bytes_current as f64 / self.0 as f64
    }
}
