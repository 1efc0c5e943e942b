//! The arguments.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::terminal::Color;
use crate::{Recovery, Scope, State};

/// A table of jobs: what is in it, what became of it, and what to do about it.
#[derive(Debug, Parser)]
#[command(name = "redial-jobs", version, after_help = EXAMPLES, propagate_version = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) table: Table,
    /// How it is printed; json is one object a line.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human")]
    pub(super) format: Format,
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "Examples:
  redial-jobs --url sqlite:jobs.db list --state dead
  redial-jobs --url postgres://app@db/app show 4711
  REDIAL_JOBS_URL=sqlite:jobs.db redial-jobs sweep --dry-run
  redial-jobs --url sqlite:jobs.db list --state dead --format json | jq .error

Exit codes: 0 done, 1 what was asked for is not there (stats: a person must look at DEAD jobs), 2 the table cannot be asked, or the\nanswer not printed.";

/// Where the table is.
#[derive(Debug, Args)]
pub(super) struct Table {
    /// The database: sqlite:FILE, or postgres://USER@HOST/NAME.
    #[arg(long, global = true, value_name = "URL", env = "REDIAL_JOBS_URL", hide_env_values = true)]
    pub(super) url: Option<String>,
    /// The table's name, where it is not redial_jobs.
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) table: Option<String>,
    /// The schema that it lies in (PostgreSQL).
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) schema: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists jobs, the newest first.
    List(List),
    /// Shows the chain that a job belongs to, with the attempts of each.
    Show(Show),
    /// Enqueues a successor of a DEAD job, and counts its failures anew.
    Revive {
        /// Jobs that are DEAD and the newest of their target.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<i64>,
    },
    /// Sweeps once: enqueues successors of ghosts and failures, and gives up what is spent.
    Sweep(SweepCommand),
    /// Counts jobs by type and state; of DEAD jobs, those that are the newest of their target. Exits with 1 where there are
    /// such.
    Stats,
    /// Brings in failures of an older system, so that recovery repairs them. Targets that have a job are left out.
    Import(Import),
    /// Claims no more jobs of a type or provider.
    Pause(Pause),
    /// Ends a pause.
    Resume(Resume),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only of this state.
    #[arg(long, value_parser = state)]
    pub(super) state: Option<State>,
    /// Only of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) job_type: Option<String>,
    /// Only for this target.
    #[arg(long)]
    pub(super) target: Option<String>,
    /// Only older than this job: the next page.
    #[arg(long, value_name = "ID")]
    pub(super) before: Option<i64>,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) limit: u32,
    /// Payloads too (json). They may be personal.
    #[arg(long)]
    pub(super) payload: bool,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// Any job of the chain.
    pub(super) id: i64,
    /// Its payload too. It may be personal.
    #[arg(long)]
    pub(super) payload: bool,
}

#[derive(Debug, Args)]
pub(super) struct SweepCommand {
    /// Shows the plan, and does nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How many failures make a target DEAD: what your workers' Recovery::failures says. Without it, the most that it can
    /// say, so that nothing is given up that they would repair.
    #[arg(long, default_value_t = Recovery::MOST)]
    pub(super) failures: u32,
    /// How many ghosts make a target DEAD: what your workers' Recovery::ghosts says. Without it, as above.
    #[arg(long, default_value_t = Recovery::MOST)]
    pub(super) ghosts: u32,
    /// How many successors are enqueued at most.
    #[arg(long, default_value_t = 100)]
    pub(super) per_sweep: u32,
    /// How many of them for one provider.
    #[arg(long, default_value_t = 20)]
    pub(super) per_provider: u32,
    /// Does not try a failing provider out with one job first.
    #[arg(long)]
    pub(super) no_canary: bool,
}

#[derive(Debug, Args)]
#[command(after_help = r#"Each line is one failure, as a JSON object:
  {"type":"mail","target":"user 7","payload":{"user":7},"failed_at":"2026-11-30T22:15:00Z"}
and, by choice, "provider", "class" (exhausted by default; business is brought in as DEAD) and "reason".
Where it fails half way, what came in stays: run it again."#)]
pub(super) struct Import {
    /// A file, or - for standard input.
    pub(super) file: PathBuf,
    /// Only those that failed at this time or later, such as 2026-11-30T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<Timestamp>,
    /// Within which time they fall due, evenly.
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = time)]
    pub(super) spread: Duration,
    /// Only counts them.
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[group(id = "paused", required = true, multiple = false)]
pub(super) struct Which {
    /// Jobs of this type.
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Jobs that depend on this provider.
    #[arg(long)]
    provider: Option<String>,
}

impl Which {
    fn scope(&self) -> Scope {
        match (&self.job_type, &self.provider) {
            (Some(job_type), _) => Scope::Type(job_type.clone()),
            // The group asks for one of them.
            (None, provider) => Scope::Provider(provider.clone().unwrap_or_default()),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    #[command(flatten)]
    which: Which,
    /// For how long, such as 2h or 90s. Without it, until it is resumed.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,
}

impl Pause {
    pub(super) fn scope(&self) -> Scope {
        self.which.scope()
    }
}

#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    which: Which,
}

impl Resume {
    pub(super) fn scope(&self) -> Scope {
        self.which.scope()
    }
}

fn state(name: &str) -> Result<State, String> {
    State::parse(name).ok_or_else(|| "it must be pending, processing, completed, failed or dead".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(time).map_err(|_| "it must not be negative".to_owned())
}
