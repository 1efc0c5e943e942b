//! The command: see `redial-jobs --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    redial_jobs::cli::run(std::env::args_os())
}
