//! Endurance: random faults, 500 calls at once, random cancellations; and at the end nothing is missing.
//!
//! `cargo run --release --example soak -- --minutes 2`

use std::{
    convert::Infallible,
    fs, io,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use clap::Parser;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use indicatif::{ProgressBar, ProgressStyle};
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use redial::{
    Backoff, Budget, RetryLayer, StandardPolicy, TimeoutLayer, Timeouts, Transient, attempt_number,
    policy::budget::BudgetSetting,
};
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, limit::GlobalConcurrencyLimitLayer};

#[derive(Parser)]
struct Options {
    /// How long.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

const AT_ONCE: usize = 500;
/// How many calls may be in flight below the retry layer.
const PERMITS: usize = 300;
/// More than are ever spent: what is missing at the end was lost.
const TOKENS: f64 = 1_000_000.0;
/// Made at once, so that memory stays flat: how often each unsafe request had its effect. More calls than that are not
/// made.
const EFFECTS: usize = 1 << 24;

struct World {
    effects: Vec<AtomicU8>,
    connections: AtomicI64,
    requests: AtomicU64,
    dice: AtomicU64,
    calls: AtomicU64,
    well: AtomicU64,
    cancelled: AtomicU64,
    /// Attempts after the first that were sent.
    retries: AtomicU64,
    /// Requests whose body arrived as a whole one and was not.
    mangled: AtomicU64,
}

type Body =
    Either<Full<Bytes>, StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>>;
type Answer =
    Either<Full<Bytes>, StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, io::Error>>>>>;

impl World {
    fn dice(&self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.dice.fetch_add(1, Relaxed))
    }

    /// One request at the server: its effect, and a random fate.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Answer>, io::Error> {
        self.requests.fetch_add(1, Relaxed);
        let mut dice = self.dice();
        let id = request.headers().get("x-id").and_then(|id| id.to_str().ok()?.parse::<usize>().ok());
        if dice.random_bool(0.05) {
            // Before the request is read.
            return Err(io::Error::other("reset"));
        }
        let length = request.headers().get("x-length").and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        if length != Some(body.len()) || body.iter().any(|byte| *byte != 1) {
            self.mangled.fetch_add(1, Relaxed);
        }
        let status = |code: u16| Response::builder().status(code);
        let full = |text: &'static str| Either::Left(Full::new(Bytes::from_static(text.as_bytes())));
        let fate = dice.random_range(0..100);
        if (72..78).contains(&fate) {
            // Refused before any work, as the policy was told.
            return status(429).header("retry-after", "0.02").body(full("later")).map_err(io::Error::other);
        }
        if let Some(times) = id.and_then(|id| self.effects.get(id)) {
            times.fetch_add(1, Relaxed);
        }
        match fate {
            0..60 => status(200).body(full("well")),
            60..72 => status(503).body(Either::Left(Full::new(Bytes::from(vec![7; dice.random_range(0..100_000)])))),
            78..84 => {
                sleep(Duration::from_millis(dice.random_range(50..400))).await;
                status(200).body(full("slow"))
            }
            84..90 => return Err(io::Error::other("reset after the work")),
            90..95 => status(404).body(full("nothing here")),
            _ => {
                let broken = vec![Ok(Frame::data(Bytes::from_static(b"half"))), Err(io::Error::other("broken"))];
                status(200).body(Either::Right(StreamBody::new(futures_util::stream::iter(broken))))
            }
        }
        .map_err(io::Error::other)
    }
}

async fn serve(world: Arc<World>, listener: TcpListener) {
    struct Open(Arc<World>);

    impl Drop for Open {
        fn drop(&mut self) {
            self.0.connections.fetch_sub(1, Relaxed);
        }
    }

    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = (stream.set_nodelay(true), stream.set_zero_linger());
        world.connections.fetch_add(1, Relaxed);
        let open = Open(Arc::clone(&world));
        connections.spawn(async move {
            let world = Arc::clone(&open.0);
            let service = service_fn(move |request| {
                let world = Arc::clone(&world);
                async move { world.answer(request).await }
            });
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            drop(open);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A request of some kind: safe, with a key, or unsafe and counted; its body in memory or streamed.
fn request(url: &str, id: u64, dice: &mut impl rand::Rng) -> Request<Body> {
    let kind = dice.random_range(0..4);
    let text = Bytes::from(vec![1; dice.random_range(0..2000)]);
    let (length, body) = if kind == 0 {
        // A GET: hyper leaves a body of unknown length out of it.
        (0, Either::Left(Full::default()))
    } else if dice.random_bool(0.5) {
        (text.len(), Either::Left(Full::new(text)))
    } else {
        let frames = (0..dice.random_range(0..6)).map(|_| Ok(Frame::data(text.clone()))).collect::<Vec<_>>();
        (text.len() * frames.len(), Either::Right(StreamBody::new(futures_util::stream::iter(frames))))
    };
    let mut request = Request::new(body);
    request.headers_mut().insert("x-length", length.into());
    *request.uri_mut() = url.parse().unwrap_or_default();
    match kind {
        0 => *request.method_mut() = Method::GET,
        1 => *request.method_mut() = Method::PUT,
        2 => {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert("idempotency-key", id.into());
        }
        _ => {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert("x-id", id.into());
        }
    }
    request
}

/// Resident memory in MiB, where the system tells.
fn memory() -> Option<f64> {
    let pages: f64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096.0 / 1024.0 / 1024.0)
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let options = Options::parse();
    let world = Arc::new(World {
        effects: (0..EFFECTS).map(|_| AtomicU8::new(0)).collect(),
        connections: AtomicI64::new(0),
        requests: AtomicU64::new(0),
        dice: AtomicU64::new(options.seed << 32),
        calls: AtomicU64::new(0),
        well: AtomicU64::new(0),
        cancelled: AtomicU64::new(0),
        retries: AtomicU64::new(0),
        mangled: AtomicU64::new(0),
    });
    let tasks_before = Handle::current().metrics().num_alive_tasks();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let server = tokio::spawn(serve(Arc::clone(&world), listener));

    let permits = Arc::new(Semaphore::new(PERMITS));
    let budget = Budget::custom(BudgetSetting::bucket(TOKENS))?;
    let timeouts = Timeouts { attempt: Duration::from_millis(200), total: Duration::from_secs(2) };
    let transient = Transient::usual().rejected(429, "this server refuses before any work: it says so itself");
    let policy = StandardPolicy::builder("soak", timeouts, transient)
        .backoff(
            Backoff::exponential(Duration::from_millis(10))
                .max(Duration::from_millis(100))
                .floor(Duration::from_millis(2)),
        )
        .budget(budget.clone())
        .build()?;

    let start = Instant::now();
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    let bar = ProgressBar::new(length.as_secs().max(1));
    bar.set_style(ProgressStyle::with_template("{bar:40} {percent:>3}%  {msg}")?);
    let mut early_memory = None;
    {
        let counts = Arc::clone(&world);
        let client = |http2: bool| {
            let counts = Arc::clone(&counts);
            ServiceBuilder::new()
                .layer(TimeoutLayer::new().total(Duration::from_secs(4)).body_idle(Duration::from_secs(1)))
                .layer(RetryLayer::new(policy.clone()))
                .layer(GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&permits)))
                .map_request(move |request: Request<redial::AttemptBody<Body>>| {
                    let again = attempt_number(request.extensions()).is_some_and(|number| number > 1);
                    counts.retries.fetch_add(u64::from(again), Relaxed);
                    request
                })
                .service(Client::builder(TokioExecutor::new()).http2_only(http2).build_http())
        };
        let clients = [client(false), client(true)];
        let mut running = JoinSet::new();
        while start.elapsed() < length && world.calls.load(Relaxed) < EFFECTS as u64 {
            while running.len() < AT_ONCE {
                let id = world.calls.fetch_add(1, Relaxed);
                let mut dice = world.dice();
                let mut client = clients[(id % 2) as usize].clone();
                let (world, request) = (Arc::clone(&world), request(&url, id, &mut dice));
                let patience =
                    Duration::from_millis(if dice.random_bool(0.1) { dice.random_range(0..300) } else { 60_000 });
                running.spawn(async move {
                    let call = async {
                        let response = client.ready().await?.call(request).await?;
                        let status = response.status();
                        let _ = response.into_body().collect().await;
                        Ok::<_, redial::Error>(status)
                    };
                    match timeout(patience, call).await {
                        Err(_) => drop(world.cancelled.fetch_add(1, Relaxed)),
                        Ok(Ok(StatusCode::OK)) => drop(world.well.fetch_add(1, Relaxed)),
                        Ok(_) => {}
                    }
                });
            }
            running.join_next().await;
            while running.try_join_next().is_some() {}
            if early_memory.is_none() && start.elapsed() > length / 4 {
                early_memory = memory();
            }
            bar.set_position(start.elapsed().as_secs());
            bar.set_message(format!("{} calls", world.calls.load(Relaxed)));
        }
        while running.join_next().await.is_some() {}
    }
    bar.finish_and_clear();

    // With the clients gone, their connections close and their tasks end.
    let patience = Instant::now() + Duration::from_secs(10);
    while world.connections.load(Relaxed) > 0 && Instant::now() < patience {
        sleep(Duration::from_millis(20)).await;
    }
    let connections = world.connections.load(Relaxed);
    server.abort();
    let _ = server.await;
    while Handle::current().metrics().num_alive_tasks() > tasks_before && Instant::now() < patience {
        sleep(Duration::from_millis(20)).await;
    }

    let load = |count: &AtomicU64| count.load(Relaxed);
    let took_effect = |more_than: u8| world.effects.iter().filter(|times| times.load(Relaxed) > more_than).count();
    let (once, twice) = (took_effect(0), took_effect(1));
    // Each repeat that was sent cost one at the most: what was never sent came back.
    let tokens = TOKENS - load(&world.retries) as f64 - budget.level();
    let permits = PERMITS - permits.available_permits();
    let tasks = Handle::current().metrics().num_alive_tasks() - tasks_before;
    let (early, late) = (early_memory.unwrap_or_default(), memory().unwrap_or_default());
    println!("calls {}, well {}, cancelled {}", load(&world.calls), load(&world.well), load(&world.cancelled));
    println!("requests {}, of which repeats {}", load(&world.requests), load(&world.retries));
    println!(
        "tokens missing {:.0}, permits missing {permits}, tasks left {tasks}, connections left {connections}",
        tokens.max(0.0)
    );
    println!("memory {early:.0} MiB after a quarter, {late:.0} MiB at the end");
    println!("unsafe requests that took effect twice: {twice} of {once}");
    let flat = late <= early * 1.2 + 16.0;
    let mangled = load(&world.mangled);
    println!("bodies that arrived as whole ones and were not: {mangled}");
    let sound = once > 0
        && mangled == 0
        && tokens <= 0.0
        && permits == 0
        && tasks == 0
        && connections == 0
        && twice == 0
        && flat;
    println!("{}", if sound { "nothing is missing" } else { "SOMETHING IS WRONG" });
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
