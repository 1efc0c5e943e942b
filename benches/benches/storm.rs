//! What a budget costs a provider in trouble, and what jitter spares it: `cargo bench --bench storm`.
//!
//! On the model of `redial simulate`: 1000 clients, each a process with a budget of its own, make 10 calls a second each,
//! at random. The provider has capacity for 12 000 requests a second and refuses what is beyond, at a quarter of the cost of
//! serving. It is in trouble from the 30th to the 50th second. Figures are the mean of three seeds. `-- --quick` is a smoke,
//! with few clients, that writes nothing.

use std::{env, fmt, thread, time::Duration};

use redial::{
    Backoff, Budget, StandardPolicy, Timeouts, Transient,
    policy::{Jitter, budget::BudgetSetting},
    simulate::{Figures, Scenario, Strategy, draw, run},
};
use redial_benches::{
    contention,
    report::{Report, Table, root},
    tower_budget::{self, TowerBudget},
};

const SEEDS: [u64; 3] = [7, 8, 9];

fn main() {
    let quick = env::args().any(|argument| argument == "--quick");
    let mut report = Report::new("storm", "The provider's side");
    let brown_outs = storm(&mut report, quick);
    beginnings(&mut report, quick);
    jitter(&mut report, if quick { 2 } else { 100 });
    if quick {
        println!("a smoke: nothing is written");
        return;
    }
    let path = root().join("docs/storm.svg");
    draw(&scenario("brown-out", false), &brown_outs, &path).expect("the picture is written");
    report.write();
}

/// Those of the table, and whether they are in the picture.
fn strategies() -> Vec<(&'static str, Strategy, bool)> {
    let setting = |setting: BudgetSetting| Budget::custom(setting).expect("a setting that can be built");
    let hundred = BudgetSetting::bucket(100.0).cost(10.0).throttled_cost(10.0).per_first_success(1.0);
    let (name, strategy, drawn) =
        budget("default of tower and of reqwest", Budget::unlimited("tower's is asked beside it"), true);
    let towers = (name, strategy.budgeted(|_| TowerBudget::default()), drawn);
    let window = Budget::finagle(Duration::from_secs(10), 10, 0.2).expect("tower's own numbers");
    vec![
        ("no retry", Strategy::no_retry(), true),
        budget("3 attempts, no budget", Budget::unlimited("measured"), true),
        towers,
        budget("the same numbers, our window", window, false),
        budget("AWS retry 2.1", Budget::aws(), false),
        budget("100, cost 10, +1", setting(hundred), false),
        budget("100, cost 10, +1, cost back", setting(hundred.refund_on_success(true)), false),
        budget("gRPC 10 / 0.1", Budget::grpc(10.0, 0.1).expect("gRPC's example"), false),
        budget(OURS, Budget::usual(), true),
    ]
}

const OURS: &str = "default of redial";

/// The policy that everybody gets who states nothing but timeouts, with this budget.
fn budget(name: &'static str, budget: Budget, drawn: bool) -> (&'static str, Strategy, bool) {
    let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let policy = StandardPolicy::builder("orders", timeouts, Transient::usual()).budget(budget).build();
    let request = http::Request::get("http://orders.example/42").body(()).expect("a request");
    (name, Strategy::policy(name, policy.expect("a policy"), &request), drawn)
}

/// A scenario that ships, without most of its end: what has not recovered by then is seen by then.
fn scenario(name: &str, quick: bool) -> Scenario {
    let mut scenario = Scenario::preset(name).expect("it ships");
    scenario.length = Duration::from_secs(60);
    // With this one, those who do not retry come out as they were measured on another model of this description.
    scenario.server.queue = Duration::from_millis(120);
    if quick { scenario.scaled_to(20) } else { scenario }
}

/// One run for each seed, at the same time.
fn runs(scenario: &Scenario, strategy: &Strategy) -> Vec<Figures> {
    let seeded = |seed| {
        let clock = tower_budget::clock();
        let _clock = clock.enter();
        let mut scenario = scenario.clone();
        scenario.seed = seed;
        run(&scenario, strategy).expect("a scenario that can be run")
    };
    thread::scope(|scope| {
        let threads = SEEDS.map(|seed| scope.spawn(move || seeded(seed)));
        threads.into_iter().map(|thread| thread.join().expect("a run")).collect()
    })
}

fn mean(runs: &[Figures], figure: impl Fn(&Figures) -> f64) -> f64 {
    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
}

/// The longest of all; `None` where one never recovers.
fn recovery(runs: &[Figures]) -> Option<Duration> {
    runs.iter().map(|figures| figures.recovery).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// A load factor, to a thousandth.
struct Load(f64);

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or("never".to_string(), |time| format!("{:.1} s", time.as_secs_f64()))
}

/// The table of budgets; gives the runs of the picture.
fn storm(report: &mut Report, quick: bool) -> Vec<Figures> {
    report.say(ABOUT);
    let mut table = Table::new(["budget", "brown-out", "failures", "outage", "recovery"]);
    let [brown_out, failures, outage] = ["brown-out", "random-failures", "outage"].map(|name| scenario(name, quick));
    let mut drawn = Vec::new();
    for (name, strategy, is_drawn) in strategies() {
        let [browned, failed, out] = [&brown_out, &failures, &outage].map(|scenario| runs(scenario, &strategy));
        let goodput = mean(&browned, |figures| figures.success);
        let success = mean(&failed, |figures| figures.success);
        let load = mean(&out, |figures| figures.load_factor);
        let all: Vec<Figures> = [&browned[..], &failed, &out].concat();
        let recovery = recovery(&all);
        let cells = [percent(goodput), percent(success), Load(load).to_string(), seconds(recovery)];
        if name == OURS {
            let held = [goodput >= 0.468, success >= 0.991, load <= 1.03, recovery == Some(Duration::ZERO)];
            let mut marked = cells.into_iter().zip(held).map(|(cell, held)| format!("{cell} {}", mark(held)));
            let cells = std::array::from_fn(|at| if at == 0 { name.into() } else { marked.next().unwrap_or_default() });
            table.held::<5>(cells, "46.8 %, 99.1 %, 1.03, 0 s", held == [true; 4]);
        } else {
            let [goodput, success, load, recovery] = cells;
            table.row([name.to_string(), goodput, success, load, recovery]);
        }
        if is_drawn {
            drawn.extend(browned.into_iter().next());
        }
    }
    report.table(&table);
    report.say(MISSED);
    drawn
}

fn mark(held: bool) -> &'static str {
    if held { "✓" } else { "✗" }
}

const ABOUT: &str = "\
    1000 clients with a budget each, 10 calls a second each; capacity 12 000 a second, a refusal costs a quarter of \
    a served request; the queue is 120 ms, with which \"no retry\" comes out as the bars' own model has it (47.6 %); \
    three attempts, full jitter; mean of three seeds. *brown-out*: half of the capacity is left for 20 s, share of \
    the calls begun then that succeed. *failures*: a fifth of the requests fail at random, share of the calls that \
    succeed. *outage*: nothing is served, requests for each call. *recovery*: until 99 % of the calls succeed again, \
    the longest of all runs. tower's budget, which is reqwest's too, is its own code: of what it grants in 10 s by \
    its numbers (10 a second and 20 %), it forgets the half early, since each second it may clear two of its ten \
    slots. Our window grants what they say.\n";

const MISSED: &str = "\
    What the default misses, it spends in the first second: five failures in a row are the fewest that are no chance \
    (with four, a fifth of failures at random closes the budget too often for 99.1 %), and until a process has heard \
    them, it has made four retries, each a third of a call less. Tried beside it: a moving share of failed first \
    tries (0.7 points less), hysteresis, dearer second retries, dearer failed retries, tokens taken in advance, and \
    200 other settings of this rule (the best one, 0.45 for a first try and 1.5 for a retry, has 0.03 more): none \
    reaches 46.8 % at 99.1 %. To ask the budget again at the end of each wait would bring 0.15 points, and take the \
    provider's answer from callers who have waited.\n";

/// What a rule that looks back can get wrong: there is nothing to look back to yet, or it is long ago.
fn beginnings(report: &mut Report, quick: bool) {
    report.say(
        "The same budgets of processes that have only begun (the trouble starts with them), and of clients that make a \
         call in ten seconds (the trouble lasts 2000 s).\n",
    );
    let seconds = Duration::from_secs;
    let cold = |name: &str| {
        let mut scenario = scenario(name, quick);
        (scenario.trouble.from, scenario.trouble.until, scenario.length) = (seconds(0), seconds(20), seconds(30));
        scenario
    };
    let slow = |name: &str| {
        let mut scenario = scenario(name, quick);
        scenario.rate /= 100.0;
        (scenario.trouble.from, scenario.trouble.until, scenario.length) = (seconds(30), seconds(2030), seconds(2060));
        scenario
    };
    let mut table = Table::new(["budget", "cold: failures", "outage", "recovery", "low-rate: failures", "outage"]);
    for (name, strategy, _) in strategies() {
        let [failed, out] = ["random-failures", "outage"].map(|name| runs(&cold(name), &strategy));
        let [failed_slow, out_slow] = ["random-failures", "outage"].map(|name| runs(&slow(name), &strategy));
        let success = [&failed, &failed_slow].map(|runs| mean(runs, |figures| figures.success));
        let load = [&out, &out_slow].map(|runs| mean(runs, |figures| figures.load_factor));
        let recovery = recovery(&out);
        let cells = [
            name.to_string(),
            percent(success[0]),
            Load(load[0]).to_string(),
            self::seconds(recovery),
            percent(success[1]),
            Load(load[1]).to_string(),
        ];
        if name == OURS {
            let held = success[0] >= 0.99 && success[1] >= 0.99 && load.iter().all(|load| *load <= 1.03);
            table.held(cells, "99 %, 1.03, 0 s", held && recovery == Some(Duration::ZERO));
        } else {
            table.row(cells);
        }
    }
    report.table(&table);
}

/// The AWS Architecture Blog's figures, with our backoff: a band of 5 % is what chance leaves of a mean of 100 runs.
fn jitter(report: &mut Report, runs: u64) {
    report.say(
        "100 clients write one row, each under the version that it has read (the model of the AWS Architecture Blog's \
         \"Exponential Backoff And Jitter\"); mean of 100 runs. The waits are ours, the bar is what the blog's simulator takes.\n",
    );
    let exponential =
        || Backoff::exponential(Duration::from_millis(10)).max(Duration::from_secs(2)).floor(Duration::from_millis(1));
    let decorrelated =
        Backoff::exponential(Duration::from_millis(5)).max(Duration::from_secs(2)).floor(Duration::from_millis(1));
    let rows = [
        ("full jitter", exponential(), 796.0, 4.9),
        ("decorrelated jitter", decorrelated.jitter(Jitter::Decorrelated), 1002.0, 4.6),
        ("no jitter", exponential().unjittered("what jitter is measured by"), 1857.0, 63.5),
    ];
    let mut table = Table::new(["backoff", "calls", "time"]);
    for (name, backoff, calls, time) in rows {
        let cost = contention::mean(100, &backoff, runs);
        let within = |got: f64, expected: f64| (got / expected - 1.0).abs() <= 0.05;
        let cells = [name.to_string(), format!("{:.0}", cost.calls), format!("{:.1} s", cost.time)];
        let held = within(cost.calls, calls) && within(cost.time, time);
        table.held(cells, &format!("{calls:.0}, {time:.1} s ± 5 %"), held);
    }
    report.table(&table);
}
