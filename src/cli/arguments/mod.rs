//! The arguments.

mod tools;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(super) use tools::{Coverage, Deps, Diff, Doc, Simulate};

use super::terminal::Color;
use crate::contract::duration;

/// Provider contracts: checked, explained and drawn up.
#[derive(Debug, Parser)]
#[command(name = "redial", version, about, after_help = EXAMPLES, propagate_version = true)]
pub(super) struct Arguments {
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "Examples:
  redial init > contracts/shop.toml
  redial check contracts/
  redial explain contracts/github.toml GET https://api.github.com/user --status 429 --answer-header 'retry-after: 30'
  redial matrix contracts/github.toml
  redial simulate contracts/github.toml --scenario brown-out

Exit codes: 0 kept, 1 rules are broken, 2 something cannot be read.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Holds contracts against every rule, and answers the eight questions of the checklist for each operation.
    Check(Check),
    /// Says what would happen after one attempt, step by step, and which line decides.
    Explain(Explain),
    /// Prints, for each operation, what is repeated after each status and fault.
    Matrix(Matrix),
    /// Writes the page for a wiki: what is repeated, what never, how long and how often at worst, and by which source.
    Doc(Doc),
    /// Says which crates of a Cargo.lock retry by themselves, and whether a contract declares them.
    Deps(Deps),
    /// Says what changes in meaning between two versions of a contract, and what became less safe.
    Diff(Diff),
    /// Says which operations of an OpenAPI document have no contract, and which of the contract are not in the document.
    Coverage(Coverage),
    /// Tries a contract out on a provider in trouble: a model of many clients, by the engine's own code.
    Simulate(Simulate),
    /// Prints the JSON Schema of the format, for editors.
    Schema,
    /// Prints a commented contract to begin with.
    Init(Init),
    /// Prints completions for a shell.
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
pub(crate) struct Input {
    /// Files, folders, patterns such as 'contracts/*.toml', or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Which [env.NAME] overrides hold.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Option<String>,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Human,
    Json,
    Sarif,
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Deny {
    Warnings,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial check contracts/ --deny warnings
  redial check 'contracts/*.toml' --format sarif > redial.sarif
  redial check contracts/ --write-baseline debts.json && redial check contracts/ --baseline debts.json")]
pub(super) struct Check {
    #[command(flatten)]
    pub(super) input: Input,
    #[arg(long, default_value = "human")]
    pub(super) format: Format,
    /// Makes warnings count as broken rules.
    #[arg(long, value_name = "WHAT")]
    pub(super) deny: Option<Deny>,
    /// The day by which reviews and waivers are judged. Default: today, in UTC.
    #[arg(long, value_name = "DATE")]
    pub(super) as_of: Option<jiff::civil::Date>,
    /// How old a review may be, in whole days.
    #[arg(long, value_name = "DURATION", default_value = "365d", value_parser = days)]
    pub(super) max_age: i32,
    /// Findings that are known already and not reported; see --write-baseline.
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    pub(super) baseline: Option<PathBuf>,
    /// Writes what is found now to a file, and ends well: the debts that a system starts with.
    #[arg(long, value_name = "FILE")]
    pub(super) write_baseline: Option<PathBuf>,
    /// Leaves the checklist out.
    #[arg(long)]
    pub(super) quiet: bool,
}

/// One contract.
#[derive(Debug, Args)]
pub(crate) struct Whole {
    /// The contract: a file, a folder, a pattern, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Which [env.NAME] overrides hold.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial explain shop.toml POST https://api.shop.example/orders --header 'idempotency-key: 1' --status 503
  redial explain shop.toml GET https://api.shop.example/orders/7 --fault timeout --attempt 2 --elapsed 4s")]
pub(super) struct Explain {
    #[command(flatten)]
    pub(super) contract: Whole,
    pub(super) method: http::Method,
    pub(super) url: http::Uri,
    /// A header of the request, 'name: value'.
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub(super) headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The answer's status. A call of gRPC is one by --header 'content-type: application/grpc'; its answer is a 200 with
    /// --answer-header 'grpc-status: 14'.
    #[arg(long, value_name = "STATUS", value_parser = status, required_unless_present = "fault", conflicts_with = "fault")]
    pub(super) status: Option<http::StatusCode>,
    /// What went wrong instead of an answer: connect, dns, tls, reset, closed, timeout, body, protocol, refused-stream,
    /// goaway, unclassified.
    #[arg(long, value_name = "FAULT")]
    pub(super) fault: Option<crate::FaultKind>,
    /// The request provably never reached the provider (always so for connect, dns, refused-stream and goaway).
    #[arg(long, requires = "fault")]
    pub(super) unsent: bool,
    /// A header of the answer, 'name: value'.
    #[arg(long = "answer-header", short = 'A', value_name = "HEADER", value_parser = header)]
    pub(super) answer_headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The beginning of the answer's body.
    #[arg(long, value_name = "TEXT")]
    pub(super) answer_body: Option<String>,
    /// Which attempt this was; the first is 1.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=9))]
    pub(super) attempt: u32,
    /// An earlier attempt of this call may have taken effect.
    #[arg(long)]
    pub(super) after_unknown: bool,
    /// How long the call has taken so far.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = time)]
    pub(super) elapsed: std::time::Duration,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial matrix shop.toml
  redial matrix contracts/shop.toml --format json")]
pub(super) struct Matrix {
    #[command(flatten)]
    pub(super) input: Input,
    #[arg(long, default_value = "human")]
    pub(super) format: Shape,
}

/// For people or for machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Shape {
    #[default]
    Human,
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial init bank --host api.bank.example")]
pub(super) struct Init {
    /// The provider's name.
    #[arg(default_value = "shop")]
    pub(super) provider: String,
    /// Its host.
    #[arg(long, default_value = "api.shop.example")]
    pub(super) host: String,
}

fn time(text: &str) -> Result<std::time::Duration, String> {
    duration::parse(text).map_err(|no| format!("{}: {}", no.what, no.help))
}

fn days(text: &str) -> Result<i32, String> {
    const DAY: u64 = 24 * 60 * 60;
    let time = time(text)?;
    // Half a day would be none at all.
    if time.subsec_nanos() > 0 || time.as_secs() % DAY > 0 {
        return Err("reviews have a day, and no time of it: write whole days, such as 365d".to_owned());
    }
    i32::try_from(time.as_secs() / DAY).map_err(|_| "too long".to_owned())
}

fn status(text: &str) -> Result<http::StatusCode, String> {
    text.parse().map_err(|_| "no status of HTTP: 100 to 999".to_owned())
}

fn header(text: &str) -> Result<(http::HeaderName, http::HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write 'name: value'")?;
    let name = name.trim().parse().map_err(|_| "not the name of a header")?;
    let value = value.trim().parse().map_err(|_| "not the value of a header")?;
    Ok((name, value))
}
