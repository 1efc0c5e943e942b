//! The command `redial`: contracts checked, explained and drawn up. Everything that decides is the library's.

mod arguments;
mod check;
mod coverage;
mod deps;
mod diff;
mod doc;
mod explain;
mod github;
mod index;
mod init;
mod input;
mod lines;
mod matrix;
mod sample;
mod sarif;
mod schema;
mod simulate;
mod spark;
mod terminal;
mod words;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};

use crate::contract::{ContractError, problem::Kind};

/// How a command ends: 0, 1 where rules are broken, 2 where something cannot be read, or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Kept,
    Broken,
    Unreadable,
}

impl End {
    /// For a contract that does not load.
    fn of(error: &ContractError) -> Self {
        let missing = error.findings().iter().any(|finding| finding.problem().kind == Kind::NoFile);
        if missing { End::Unreadable } else { End::Broken }
    }
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Kept => ExitCode::SUCCESS,
            End::Broken => ExitCode::from(1),
            End::Unreadable => ExitCode::from(2),
        }
    }
}

/// Runs the command with these arguments, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout and is no failure.
            let _ = error.print();
            return if error.use_stderr() { End::Unreadable.into() } else { End::Kept.into() };
        }
    };
    let terminal = terminal::Terminal::new(arguments.color);
    let ended = match arguments.command {
        Command::Check(command) => check::run(&command, &terminal),
        Command::Explain(command) => explain::run(&command, &terminal),
        Command::Matrix(command) => matrix::run(&command, &terminal),
        Command::Doc(command) => doc::run(&command, &terminal),
        Command::Deps(command) => deps::run(&command, &terminal),
        Command::Diff(command) => diff::run(&command, &terminal),
        Command::Coverage(command) => coverage::run(&command, &terminal),
        Command::Simulate(command) => simulate::run(&command, &terminal),
        Command::Schema => schema::run(&terminal),
        Command::Init(command) => init::run(&command, &terminal),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "redial", &mut script);
            terminal.out(&String::from_utf8_lossy(&script));
            End::Kept
        }
    };
    match terminal.failed() {
        Some(error) => {
            terminal.err(&format!("redial: the output cannot be written: {error}\n"));
            End::Unreadable.into()
        }
        None => ended.into(),
    }
}
