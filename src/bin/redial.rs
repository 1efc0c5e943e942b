//! The command: see `redial --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    redial::cli::run(std::env::args_os())
}
