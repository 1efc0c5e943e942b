//! The arguments of the commands that stand on contracts: pages, comparisons, trials.

use std::path::PathBuf;

use clap::Args;

use super::{Shape, Whole, header};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial doc contracts/ > docs/retries.md
  redial doc --check contracts/ docs/retries.md")]
pub(in crate::cli) struct Doc {
    #[command(flatten)]
    pub(in crate::cli) contract: Whole,
    /// With --check: the page that may be stale.
    #[arg(value_name = "PAGE", requires = "check")]
    pub(in crate::cli) page: Option<PathBuf>,
    /// Compares with a page instead, says what differs, and ends with 1 where anything does.
    #[arg(long, requires = "page")]
    pub(in crate::cli) check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial diff old/shop.toml shop.toml
  git show main:contracts/shop.toml | redial diff - contracts/shop.toml

Less safe is what may be sent more often, sooner, or on weaker grounds; then it ends with 1.")]
pub(in crate::cli) struct Diff {
    /// The contract as it was: a file, a folder, a pattern, or - for standard input.
    pub(in crate::cli) old: String,
    /// The contract as it is.
    pub(in crate::cli) new: String,
    /// Which [env.NAME] overrides hold, in both. Default: compares without, and in each that either contract has.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) env: Option<String>,
    #[arg(long, default_value = "human")]
    pub(in crate::cli) format: Shape,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial coverage shop.toml --openapi openapi.yaml
  redial coverage contracts/ --provider shop --openapi openapi.json --allow-rest

OpenAPI 3 and Swagger 2, in YAML or JSON, in one file. Ends with 1 where either side lacks something.")]
pub(in crate::cli) struct Coverage {
    #[command(flatten)]
    pub(in crate::cli) contract: Whole,
    /// The document.
    #[arg(long, value_name = "SPEC")]
    pub(in crate::cli) openapi: PathBuf,
    /// Whose document it is. Default: by its servers, or the only one.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) provider: Option<String>,
    /// A provider's own settings, for what none of its operations matches, are contract enough.
    #[arg(long)]
    pub(in crate::cli) allow_rest: bool,
    #[arg(long, default_value = "human")]
    pub(in crate::cli) format: Shape,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial deps Cargo.lock
  redial deps Cargo.lock --contract contracts/ --except kube-client

Two retries on one path multiply requests. A contract declares what else retries, or that it is switched off:
  elsewhere = [{ where = \"sdk\", by = \"octocrab\", attempts = 1 }]
One provider's declaration is enough. A lock file names what only tests and other targets build, too.")]
pub(in crate::cli) struct Deps {
    /// The lock file.
    #[arg(value_name = "LOCK", default_value = "Cargo.lock")]
    pub(in crate::cli) lock: PathBuf,
    /// Contracts to hold it against; ends with 1 where one of the crates is declared by none.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(in crate::cli) contract: Vec<String>,
    /// Which [env.NAME] overrides hold.
    #[arg(long, value_name = "NAME", requires = "contract")]
    pub(in crate::cli) env: Option<String>,
    /// A crate that calls none of the contracts' providers.
    #[arg(long, value_name = "CRATE")]
    pub(in crate::cli) except: Vec<String>,
    #[arg(long, default_value = "human")]
    pub(in crate::cli) format: Shape,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redial simulate shop.toml
  redial simulate shop.toml --provider shop --scenario brown-out --svg brown-out.svg
  redial simulate shop.toml --operation orders.create --header 'idempotency-key: 1' --seed 8
  redial simulate shop.toml --scenario my-outage.toml --format json

A scenario file:
  name = \"a lunch break\"
  clients = 200          # processes, each with a budget of its own (1000)
  rate = 5               # calls a second of each (10)
  length = \"2m\"          # (80s)
  [server]
  capacity = 1200        # requests a second (12000)
  refusal = 0.25         # what a refusal costs, as a share of a served request
  [trouble]
  kind = \"brown-out\"     # the keys of each kind:
                         #   brown-out: capacity, the share that is left
                         #   failures: share, status; outage: status
                         #   rate-limit: limit (requests a second), retry_after
                         #   unreachable, silence: none
  from = \"30s\"
  until = \"60s\"
  capacity = 0.5")]
pub(in crate::cli) struct Simulate {
    #[command(flatten)]
    pub(in crate::cli) contract: Whole,
    /// The provider that is in trouble. Needed where the contract has several.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) provider: Option<String>,
    /// The operation that all call. Default: what no operation matches, else the first.
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) operation: Option<String>,
    /// A header of the request, 'name: value': an idempotency key, say.
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub(in crate::cli) headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// A file, or one that ships: brown-out, outage, random-failures, rate-limit. Default: all of these.
    #[arg(long, value_name = "NAME|FILE")]
    pub(in crate::cli) scenario: Vec<String>,
    /// Whatever is random follows from it. Default: the scenario's.
    #[arg(long, value_name = "N")]
    pub(in crate::cli) seed: Option<u64>,
    /// How many clients, with server and limits in proportion. Default: the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::cli) clients: Option<u32>,
    /// Draws a picture of the only scenario.
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) svg: Option<PathBuf>,
    #[arg(long, default_value = "human")]
    pub(in crate::cli) format: Shape,
}
