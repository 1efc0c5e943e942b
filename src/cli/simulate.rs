//! `redial simulate`

use std::{
    path::Path,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue, Method, Request};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    End,
    arguments::{Shape, Simulate},
    input,
    spark::spark,
    terminal::Terminal,
};
use crate::{
    Policy, RequestHead,
    contract::{
        Loaded,
        duration::shown,
        resolve::{Operation, Provider},
        routing::Matcher,
    },
    redact::Redacted,
    simulate::{Figures, Scenario, Strategy, TroubleKind, draw, run_watched},
};

/// The largest scenario file.
const LARGEST: u64 = 64 * 1024;
/// A bar is shown for what takes longer.
const LONG: Duration = Duration::from_millis(500);

pub(super) fn run(command: &Simulate, terminal: &Terminal) -> End {
    let ended = input::loaded(&command.contract, terminal)
        .and_then(|loaded| simulated(command, &loaded, terminal).map_err(|why| input::unreadable(&why, terminal)));
    ended.err().unwrap_or(End::Kept)
}

fn simulated(command: &Simulate, loaded: &Loaded, terminal: &Terminal) -> Result<(), String> {
    let scenarios = scenarios(command)?;
    if command.svg.is_some() && scenarios.len() != 1 {
        return Err("--svg draws one scenario: name it with --scenario".to_owned());
    }
    let (strategy, note) = contract(command, loaded)?;
    let strategies = [Strategy::no_retry(), Strategy::at_once(3), strategy];
    let mut progress = Progress::new(scenarios.len() * strategies.len());
    let mut json = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let mut runs = Vec::new();
        for strategy in &strategies {
            progress.begin(&scenario.name);
            let figures = run_watched(scenario, strategy, |done| progress.at(done));
            runs.push(figures.map_err(|error| error.to_string())?);
        }
        if let Some(path) = &command.svg {
            draw(scenario, &runs, path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        }
        match command.format {
            Shape::Human => {
                let gap = if number > 0 { "\n" } else { "" };
                progress.aside(|| terminal.out(&format!("{gap}{}", table(scenario, &runs, terminal))));
            }
            Shape::Json => json.push(value(scenario, &runs)),
        }
    }
    progress.end();
    match (command.format, note) {
        (Shape::Json, _) => terminal.out(&format!("{:#}\n", serde_json::Value::Array(json))),
        (Shape::Human, Some(note)) => terminal.out(&format!("{note}\n")),
        (Shape::Human, None) => {}
    }
    Ok(())
}

fn scenarios(command: &Simulate) -> Result<Vec<Scenario>, String> {
    let found = if command.scenario.is_empty() {
        Scenario::names().filter_map(Scenario::preset).collect()
    } else {
        command.scenario.iter().map(|name| scenario(name)).collect::<Result<Vec<_>, _>>()?
    };
    let asked = |mut scenario: Scenario| {
        scenario.seed = command.seed.unwrap_or(scenario.seed);
        let scenario = match command.clients {
            Some(clients) => scenario.scaled_to(clients),
            None => scenario,
        };
        scenario.check().map_err(|error| error.to_string())?;
        Ok(scenario)
    };
    found.into_iter().map(asked).collect()
}

/// One that ships, else a file.
fn scenario(name: &str) -> Result<Scenario, String> {
    if let Some(preset) = Scenario::preset(name) {
        return Ok(preset);
    }
    let names = Scenario::names().collect::<Vec<_>>().join(", ");
    let text = input::text(Path::new(name), LARGEST).map_err(|why| format!("{why}; those that ship are {names}"))?;
    Scenario::parse(&text).map_err(|error| format!("`{name}`: {error}"))
}

/// The clients that follow the contract, and why they may look as those do that never repeat.
fn contract(command: &Simulate, loaded: &Loaded) -> Result<(Strategy, Option<String>), String> {
    let providers = &loaded.resolved.providers;
    let names = || providers.iter().map(|provider| provider.name.value.as_str()).collect::<Vec<_>>().join(", ");
    let at = match &command.provider {
        Some(name) => providers
            .iter()
            .position(|provider| provider.name.value == *name)
            .ok_or_else(|| format!("there is no provider `{}`: there is {}", Redacted(name), names()))?,
        None if providers.len() == 1 => 0,
        None => return Err(format!("say which provider is in trouble, with --provider: {}", names())),
    };
    let provider = &providers[at];
    let number = operation(command, provider)?;
    let chosen = &provider.operations[number];
    let policy = loaded.policy(at, number).ok_or("the contract has no policy for this operation")?;
    let request = request(command, provider, chosen)?;
    let called = if chosen.is_rest { request.method().as_str() } else { &chosen.name.value };
    let name = format!("{}'s contract, {called}", provider.name.value);
    let plan = policy.plan(&RequestHead::of(&request));
    let note = if plan.max_attempts() == 1 {
        Some(format!("{called} is never repeated"))
    } else if plan.evidence().is_none() {
        Some(format!(
            "nothing says that a repeat of this {} is safe: it is repeated only where it was provably not processed. \
             With --header it can have a key",
            request.method()
        ))
    } else {
        None
    };
    Ok((Strategy::policy(name, policy.clone(), &request), note))
}

fn operation(command: &Simulate, provider: &Provider) -> Result<usize, String> {
    let operations = &provider.operations;
    let found = match &command.operation {
        Some(name) => operations.iter().position(|operation| operation.name.value == *name),
        None => operations.iter().position(|operation| operation.is_rest).or((!operations.is_empty()).then_some(0)),
    };
    found.ok_or_else(|| {
        let names = operations.iter().map(|operation| operation.name.value.as_str()).collect::<Vec<_>>();
        format!("`{}` has no such operation: it has {}", provider.name.value, names.join(", "))
    })
}

/// What each call of the operation sends.
fn request(command: &Simulate, provider: &Provider, operation: &Operation) -> Result<Request<()>, String> {
    let method = operation.matches.iter().find_map(|text| Matcher::parse(text).ok()?.method).unwrap_or(Method::GET);
    let host = provider.hosts.first().map_or("host.example", |host| host.value.trim_start_matches("*."));
    let mut headers = HeaderMap::<HeaderValue>::new();
    headers.extend(command.headers.iter().map(|(name, value)| (Some(name.clone()), value.clone())));
    let mut request = Request::builder().method(method).uri(format!("http://{host}/")).body(());
    if let Ok(request) = &mut request {
        *request.headers_mut() = headers;
    }
    request.map_err(|_| format!("`{}` is no host", Redacted(host)))
}

fn table(scenario: &Scenario, runs: &[Figures], terminal: &Terminal) -> String {
    let heading = format!("{}: {}", scenario.name, in_words(scenario));
    let width = runs.iter().map(|figures| figures.name.chars().count()).max().unwrap_or(0);
    let mut out = format!("{}\n", terminal.bold(&heading));
    let names =
        format!("{:width$}  {:>5} {:>9} {:>9} {:>9} {:>10}", "", "load", "peak/s", "success", "goodput", "99 % after");
    out.push_str(&format!("{}\n", terminal.dim(&names)));
    for figures in runs {
        let Figures { name, load_factor, peak, success, goodput, recovery, .. } = figures;
        let recovery = recovery.map_or("never".to_owned(), shown);
        let (success, goodput) = (percent(*success), percent(*goodput));
        out.push_str(&format!(
            "{name:width$}  {load_factor:>5.2} {peak:>9.0} {success:>9} {goodput:>9} {recovery:>10}\n"
        ));
    }
    let most = runs.iter().flat_map(rates).fold(0.0, f64::max);
    let caption = format!("requests that reach the server, up to {most:.0} a second, over {}", shown(scenario.length));
    out.push_str(&format!("{}\n", terminal.dim(&caption)));
    for figures in runs {
        out.push_str(&format!("{:width$}  {}\n", figures.name, spark(rates(figures), most)));
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn rates(figures: &Figures) -> impl Iterator<Item = f64> {
    let step = figures.step.as_secs_f64();
    figures.moments.iter().map(move |moment| moment.arrivals as f64 / step)
}

/// Who calls, and what goes wrong.
fn in_words(scenario: &Scenario) -> String {
    let Scenario { clients, rate, server, trouble, .. } = scenario;
    let what = match trouble.kind {
        TroubleKind::Outage { status } => format!("every request is answered with {status}"),
        TroubleKind::Unreachable => "no connection is made".to_owned(),
        TroubleKind::Silence => "no request is answered".to_owned(),
        TroubleKind::BrownOut { capacity } => format!("{:.0} % of the capacity is left", 100.0 * capacity),
        TroubleKind::Failures { share, status } => {
            format!("{:.0} % of the requests fail with {status}", 100.0 * share)
        }
        TroubleKind::RateLimit { limit, retry_after } => {
            let told = retry_after.map_or(String::new(), |wait| format!(" and Retry-After: {}", wait.as_secs()));
            format!("beyond {limit:.0} requests a second, 429{told}")
        }
    };
    format!(
        "{clients} clients, {rate} calls a second each, capacity {:.0} a second\nfrom {} to {}, {what}",
        server.capacity,
        shown(trouble.from),
        shown(trouble.until)
    )
}

fn value(scenario: &Scenario, runs: &[Figures]) -> serde_json::Value {
    let runs = runs.iter().map(|figures| {
        serde_json::json!({
            "strategy": figures.name,
            "load_factor": figures.load_factor,
            "peak": figures.peak,
            "success": figures.success,
            "goodput": figures.goodput,
            "recovery_seconds": figures.recovery.map(|recovery| recovery.as_secs_f64()),
            "step_seconds": figures.step.as_secs_f64(),
            "arrivals": figures.moments.iter().map(|moment| moment.arrivals).collect::<Vec<_>>(),
        })
    });
    serde_json::json!({
        "scenario": scenario.name,
        "seed": scenario.seed,
        "clients": scenario.clients,
        "runs": runs.collect::<Vec<_>>(),
    })
}

/// How far it is, on a terminal (stderr), where it takes long.
struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// Runs that are begun.
    runs: u64,
}

/// The parts of a run that the bar tells apart.
const PARTS: f64 = 1000.0;

impl Progress {
    fn new(runs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64 * PARTS as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg:>16} [{bar:40}] {percent} %, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar, began: Instant::now(), runs: 0 }
    }

    fn begin(&mut self, name: &str) {
        self.runs += 1;
        self.bar.set_message(name.to_owned());
    }

    fn at(&self, done: f64) {
        // It draws nothing where stderr is no terminal.
        if self.bar.is_hidden() && self.began.elapsed() > LONG {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position((self.runs - 1) * PARTS as u64 + (done * PARTS) as u64);
    }

    /// Prints while the bar is away.
    fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
