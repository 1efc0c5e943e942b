//! How the cost of a call grows: `cargo bench --bench growth`.
//!
//! With the number of headers, of calls that wait, of routes, and of threads.

use std::{
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use http::{HeaderName, HeaderValue, Request, Uri};
use redial::{RetryLayer, Routes, StandardPolicy, Timeouts, Transient, policy::RoutesBuilder};
use redial_benches::{
    callgrind,
    contenders::{self, Body, Caller, Case, Layered, Who, Work, calls},
    memory::{Memory, request},
    options,
    progress::Progress,
    report::{Report, Table},
    rounds::{median, medians},
};
use tower::{Layer, Service};

fn main() {
    if let Some((words, times)) = callgrind::asked() {
        let amount = words[1].parse().expect("an amount");
        match &*words[0] {
            "headers" => Who::of(&words[2]).work(Case::READY, Round { headers: amount, calls: times }),
            "paths" => routed(routes(amount, one_host), one_host(amount - 1), times),
            "hosts" => routed(routes(amount, many_hosts), many_hosts(amount - 1), times),
            other => panic!("nothing is called {other}"),
        };
        return;
    }
    let mut report = Report::new("growth", "How it grows");
    if !callgrind::is_installed() {
        report.without_valgrind();
    }
    headers(&mut report);
    routes_table(&mut report);
    threads(&mut report);
    // Last: it pauses clocks.
    waiting(&mut report);
    report.write();
}

fn contenders_table(what: &str) -> Table {
    let [a, b, c, d, e] = Who::NAMES;
    Table::new([what, a, b, c, d, e])
}

fn row(name: &str, figures: [f64; 5]) -> [String; 6] {
    let [a, b, c, d, e] = figures.map(|figure| format!("{figure:.0}"));
    [name.to_string(), a, b, c, d, e]
}

/// What a call costs: instructions, or nanoseconds where none are counted.
fn cost(words: [&str; 3], time: impl Fn(usize) -> f64) -> f64 {
    const CALLS: usize = 500;
    if callgrind::is_installed() {
        return callgrind::instructions(&words, 20, 120);
    }
    median((0..options::rounds(21)).map(|_| time(CALLS)).collect())
}

fn unit() -> &'static str {
    if callgrind::is_installed() { "instructions" } else { "nanoseconds" }
}

/// This many headers of the same kind: a value of its own behind each, and a name that no table knows.
fn with_headers(headers: usize) -> Request<Body> {
    let mut request = request();
    request.headers_mut().clear();
    for header in 0..headers {
        let name = HeaderName::from_bytes(format!("x-header-{header}").as_bytes()).expect("a name");
        request.headers_mut().insert(name, HeaderValue::try_from(format!("{header:032}")).expect("a value"));
    }
    request
}

/// Calls with as many headers: nanoseconds of each.
struct Round {
    headers: usize,
    calls: usize,
}

impl Work for Round {
    type Found = f64;

    fn with(self, caller: impl Caller) -> f64 {
        calls(&Case::READY.runtime(), caller, self.calls, || with_headers(self.headers))
    }
}

fn headers(report: &mut Report) {
    let amounts = [1, 10, 100];
    let progress = Progress::new("growth, headers", amounts.len());
    let mut table = contenders_table(unit());
    for amount in amounts {
        progress.step(&format!("{amount} headers"));
        let of = |who: Who| {
            let words = ["headers", &amount.to_string(), &who.word()];
            cost(words, |calls| who.work(Case::READY, Round { headers: amount, calls }))
        };
        let bare = of(Who::Bare);
        let name = format!("{amount} header{}", if amount == 1 { "" } else { "s" });
        table.row(row(&name, Who::OVER.map(|who| of(who) - bare)));
    }
    drop(progress);
    report.say("A call that is answered at once, over the bare service, by the number of its headers.\n");
    report.table(&table);
}

fn one_host(route: usize) -> String {
    format!("http://api.example/v1/things-{route}/7")
}

fn many_hosts(route: usize) -> String {
    format!("http://api-{route}.example/v1/things/7")
}

/// As many routes, one for the pattern of each of these addresses.
fn routes(amount: usize, address: fn(usize) -> String) -> Routes {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("things", timeouts, Transient::usual()).idempotent("it reads").build();
    let policy = policy.expect("a policy");
    let default = StandardPolicy::unretried("other", Duration::from_secs(1)).expect("a policy");
    let pattern = |route| address(route).replace("http://", "").replacen('/', " POST /", 1).replace("/7", "/{id}");
    let with = |routes: RoutesBuilder, route| routes.route(pattern(route), policy.clone());
    (0..amount).fold(Routes::builder(default), with).build().expect("routes")
}

/// Calls to this address through these routes: nanoseconds of each.
fn routed(routes: Routes, address: String, count: usize) -> f64 {
    let address: Uri = address.parse().expect("an address");
    let make = || {
        let mut request = request();
        *request.uri_mut() = address.clone();
        request
    };
    let service = RetryLayer::new(routes.clone()).layer(Memory::new(0, 0));
    let each = calls(&Case::READY.runtime(), Layered(service), count, make);
    assert_eq!(routes.unmatched(), 0, "each call takes a route");
    each
}

fn routes_table(report: &mut Report) {
    let amounts: &[usize] = if options::quick() { &[1, 100] } else { &[1, 10, 100, 1000, 10_000] };
    let progress = Progress::new("growth, routes", amounts.len());
    let mut table = Table::new([unit(), "on one host", "each on its own host"]);
    let mut first = [0.0; 2];
    for &amount in amounts {
        progress.step(&format!("{amount} routes"));
        let found = [("paths", one_host as fn(usize) -> String), ("hosts", many_hosts)].map(|(word, address)| {
            let last = address(amount - 1);
            let built = (!callgrind::is_installed()).then(|| routes(amount, address));
            cost([word, &amount.to_string(), ""], |calls| routed(built.clone().expect("built"), last.clone(), calls))
        });
        let name = format!("{amount} route{}", if amount == 1 { "" } else { "s" });
        let cells = [name, format!("{:.0}", found[0]), format!("{:.0}", found[1])];
        if amount == 1 {
            first = found;
            table.row(cells);
        } else {
            let held = found.iter().zip(first).all(|(figure, first)| *figure <= 1.5 * first);
            table.held(cells, "at most 1.5 x one route's", held);
        }
    }
    drop(progress);
    report.say("A whole call that is answered at once, to the last of so many routes: a look-up is not linear.\n");
    report.table(&table);
}

/// So many calls at once, each of which fails, waits, fails, waits, and fails: nanoseconds of each.
struct Outage(usize);

impl Work for Outage {
    type Found = f64;

    fn with(self, mut caller: impl Caller) -> f64 {
        let requests: Vec<_> = (0..self.0).map(|_| request()).collect();
        let spent = Case::OUTAGE.runtime().block_on(async {
            let start = Instant::now();
            let calls: Vec<_> = requests.into_iter().map(|request| tokio::spawn(caller.call(request))).collect();
            for call in calls {
                assert_eq!(call.await.expect("a task").expect("an answer").status(), 503);
            }
            start.elapsed()
        });
        spent.as_nanos() as f64 / self.0 as f64
    }
}

fn waiting(report: &mut Report) {
    let amounts: &[usize] = if options::quick() { &[1, 100] } else { &[1, 10, 100, 1000, 10_000, 100_000] };
    let progress = Progress::new("growth, calls that wait", amounts.len());
    let mut table = contenders_table("nanoseconds");
    for &amount in amounts {
        progress.step(&format!("{amount} calls"));
        // As many calls for each median, but not too few rounds.
        let rounds = options::rounds((20_000 / amount).clamp(5, 101));
        let figures = medians(rounds, |place| Who::OVER[place].work(Case::OUTAGE, Outage(amount)));
        table.row(row(&format!("{amount} waiting"), figures));
    }
    drop(progress);
    report.say(
        "A whole call in an outage, one of so many tasks at once: three attempts, all answered 503, and two waits, on a paused \
         clock.\n",
    );
    report.table(&table);
}

fn threads(report: &mut Report) {
    const CALLS: usize = 2000;
    let all = [1, 2, 4];
    let progress = Progress::new("growth, threads", all.len());
    let mut table = Table::new(["nanoseconds", "bare", "redial"]);
    for threads in all {
        progress.step(&format!("{threads} threads"));
        let calls = CALLS / if options::quick() { 20 } else { 1 };
        let [bare, ours]: [f64; 2] = medians(options::rounds(101), |place| together(threads, calls, place == 1));
        let name = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
        table.row([name, format!("{bare:.0}"), format!("{ours:.0}")]);
    }
    drop(progress);
    let cores = thread::available_parallelism().map_or(0, usize::from);
    report.say(&format!(
        "A call that is answered at once, as each of so many threads sees it; all share one policy and so one budget. On \
         {cores} cores.\n"
    ));
    report.table(&table);
}

/// Nanoseconds of a call, by as many threads at once, each with a service and a runtime of its own.
fn together(threads: usize, calls: usize, ours: bool) -> f64 {
    let layer = contenders::layer(Case::READY);
    let together = Barrier::new(threads);
    let one = || {
        let runtime = Case::READY.runtime();
        let (mut bare, mut service) = (Memory::new(0, 0), layer.layer(Memory::new(0, 0)));
        together.wait();
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..calls {
                match ours {
                    true => drop(black_box(service.call(request()).await.expect("an answer"))),
                    false => drop(black_box(bare.call(request()).await.expect("an answer"))),
                }
            }
            start.elapsed()
        })
    };
    let spent: Duration = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    spent.as_nanos() as f64 / (threads * calls) as f64
}
