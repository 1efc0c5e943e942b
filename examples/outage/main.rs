//! A bad day: one server's script, and three clients that live through it side by side.
//!
//! `cargo run --release --example outage` needs no argument and no fixed port. It takes about half a minute, then prints
//! a table and what it means, and draws `target/outage.svg`. With `--features metrics`, `-- --metrics` shows what redial
//! counts.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use tower::BoxError;

mod clients;
mod day;
#[cfg(feature = "metrics")]
#[path = "../support/page.rs"]
mod page;
mod picture;
mod run;
mod server;
mod table;

/// A bad day on screen: no retries, a naive loop, and redial, against the same failing server.
#[derive(Parser)]
struct Options {
    /// What happens to which call; the same seed is the same day.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Calls a second, of each client.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=2000))]
    rate: u32,
    /// How long the day is.
    #[arg(long, default_value_t = 28, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Print the figures as one JSON object, and nothing else.
    #[arg(long)]
    json: bool,
    /// Where the picture goes.
    #[arg(long, default_value = "target/outage.svg")]
    svg: PathBuf,
    /// Serve what redial counts while the day lasts, as Prometheus reads it, and print it at the end.
    #[cfg(feature = "metrics")]
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match live(Options::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn live(options: Options) -> Result<ExitCode, BoxError> {
    #[cfg(feature = "metrics")]
    let metrics = if options.metrics { Some(page::install()?) } else { None };
    #[cfg(feature = "metrics")]
    if let Some(metrics) = &metrics {
        eprintln!("metrics: {}", page::serve(metrics.clone()).await?);
    }
    let day = tokio::select! {
        day = run::run(options.seed, options.rate, Duration::from_secs(options.seconds.into())) => day?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            eprintln!("\ninterrupted: nothing was written");
            return Ok(ExitCode::from(130));
        }
    };
    if options.json {
        print(&format!("{}\n", table::json(&day)))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&table::text(&day)?)?;
    let file = options.svg.display();
    save(&day, &options.svg).map_err(|error| format!("{file} cannot be written: {error}"))?;
    #[cfg(feature = "metrics")]
    if let Some(metrics) = &metrics {
        print(&format!("\n{}", metrics.render()))?;
    }
    print(&format!("\nThe picture is in {file}.\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn save(day: &run::Day, path: &Path) -> Result<(), BoxError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    picture::draw(day, path)
}

/// A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
