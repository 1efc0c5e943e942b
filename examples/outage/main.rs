//! A bad day: one server's script, and three clients that live through it side by side.
//!
//! `cargo run --release --example outage` needs no argument and no fixed port. It takes about half a minute, then prints
//! a table and what it means, and draws `target/outage.svg`.

use std::{fs, path::Path, process::ExitCode, time::Duration};

use clap::Parser;
use tower::BoxError;

mod clients;
mod day;
mod picture;
mod run;
mod server;
mod table;

/// A bad day on screen: no retries, a naive loop, and redial, against the same failing server.
#[derive(Clone, Copy, Parser)]
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
}

const PICTURE: &str = "target/outage.svg";

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let options = Options::parse();
    let day = tokio::select! {
        day = run::run(options.seed, options.rate, Duration::from_secs(options.seconds.into())) => day?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            eprintln!("\ninterrupted: nothing was written");
            return Ok(ExitCode::from(130));
        }
    };
    if options.json {
        println!("{}", table::json(&day));
        return Ok(ExitCode::SUCCESS);
    }
    table::print(&day);
    if let Some(folder) = Path::new(PICTURE).parent() {
        fs::create_dir_all(folder)?;
    }
    picture::draw(&day, Path::new(PICTURE))?;
    println!("\nThe picture is in {PICTURE}.");
    Ok(ExitCode::SUCCESS)
}
