//! The command `redial-jobs`: what a person asks of a table of jobs. Everything that decides is the library's.

mod arguments;
mod connect;
mod human;
mod import;
mod json;
mod terminal;

use std::{ffi::OsString, process::ExitCode, time::SystemTime};

use clap::Parser;

use crate::{Error, Filter, ImportOptions, JobId, JobStore, Jobs, Recovery, Scope, SqlStore, State, Sweeper};
use arguments::{Arguments, Command, Format, SweepCommand};
use terminal::Terminal;

/// Runs the command with these arguments, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to stdout and is no failure.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let terminal = Terminal::new(arguments.color);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match &runtime {
        Ok(runtime) => runtime.block_on(dispatch(&arguments, &terminal)),
        Err(error) => Err(Error::store("start", error.to_string())),
    };
    if let Some(failure) = terminal.failure() {
        terminal.err(&format!("error: what was asked for cannot be printed: {failure}\n"));
        return ExitCode::from(2);
    }
    match ended {
        Ok(code) => code,
        Err(error) => {
            terminal.err(&format!("error: {}\n", terminal::plain(&error.to_string())));
            // What was asked for is not there, or the table cannot be asked.
            ExitCode::from(if error.is_store() || error.is_invalid() { 2 } else { 1 })
        }
    }
}

async fn dispatch(arguments: &Arguments, terminal: &Terminal) -> Result<ExitCode, Error> {
    let jobs = connect::open(&arguments.table).await?;
    let json = arguments.format == Format::Json;
    match &arguments.command {
        Command::List(asked) => {
            let filter = Filter {
                state: asked.state,
                job_type: asked.job_type.clone(),
                target: asked.target.clone(),
                before: asked.before.map(JobId),
                limit: Some(asked.limit),
            };
            let rows = jobs.store().list(&filter).await?;
            match json {
                true => rows.iter().for_each(|row| terminal.out(&json::row(row, asked.payload))),
                false => terminal.out(&human::list(&rows, asked.limit, terminal)),
            }
        }
        Command::Show(asked) => {
            let chain = jobs.store().chain(JobId(asked.id)).await?;
            if chain.is_empty() {
                return Err(Error::missing(JobId(asked.id)));
            }
            match json {
                true => chain.iter().for_each(|row| terminal.out(&json::row(row, asked.payload))),
                false => terminal.out(&human::chain(&chain, JobId(asked.id), asked.payload, terminal)),
            }
        }
        Command::Revive { ids } => return revive(&jobs, ids, json, terminal).await,
        Command::Sweep(asked) => sweep(jobs, asked, json, terminal).await?,
        Command::Stats => {
            let (stats, pauses) = (jobs.store().stats().await?, jobs.store().pauses().await?);
            match json {
                true => terminal.out(&json::stats(&stats, &pauses)),
                false => terminal.out(&human::stats(&stats, &pauses, terminal)),
            }
            // For a check in a script: somebody must look.
            return Ok(ExitCode::from(u8::from(stats.count(State::Dead) > 0)));
        }
        Command::Import(asked) => {
            let since = asked.since.map(SystemTime::from);
            let options = ImportOptions { since, spread: asked.spread, dry_run: asked.dry_run };
            let imported = jobs.store().import(&import::read(&asked.file)?, &options).await?;
            match (json, asked.dry_run) {
                (true, dry_run) => terminal.out(&json::imported(imported, dry_run)),
                (false, dry_run) => terminal.out(&human::imported(imported, dry_run)),
            }
        }
        Command::Pause(asked) => {
            let scope: Scope = asked.scope();
            jobs.store().pause(&scope, asked.time).await?;
            match json {
                true => terminal.out(&json::paused(&scope)),
                false => terminal.out(&format!("paused: {}\n", human::scope(&scope))),
            }
            hint(&jobs, &scope, terminal).await?;
        }
        Command::Resume(asked) => {
            let scope: Scope = asked.scope();
            let resumed = jobs.store().resume(&scope).await?;
            let was = if resumed { "resumed" } else { "was not paused" };
            match json {
                true => terminal.out(&json::resumed(&scope, resumed)),
                false => terminal.out(&format!("{was}: {}\n", human::scope(&scope))),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A mistyped name pauses nothing.
async fn hint(jobs: &Jobs<SqlStore>, scope: &Scope, terminal: &Terminal) -> Result<(), Error> {
    let Scope::Type(name) = scope else { return Ok(()) };
    let filter = Filter { job_type: Some(name.clone()), limit: Some(1), ..Filter::default() };
    if jobs.store().list(&filter).await?.is_empty() {
        terminal.err(&format!("note: the table holds no job of the type {}\n", terminal::plain(name)));
    }
    Ok(())
}

async fn revive(jobs: &Jobs<SqlStore>, ids: &[i64], json: bool, terminal: &Terminal) -> Result<ExitCode, Error> {
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        match jobs.store().revive(JobId(*id)).await {
            Ok(successor) if json => terminal.out(&json::revived(JobId(*id), successor)),
            Ok(successor) => terminal.out(&format!("job {id} is revived as job {successor}\n")),
            Err(error) if error.is_missing() || error.is_state() => {
                terminal.err(&format!("error: {error}\n"));
                code = ExitCode::from(1);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(code)
}

async fn sweep(jobs: Jobs<SqlStore>, asked: &SweepCommand, json: bool, terminal: &Terminal) -> Result<(), Error> {
    let recovery = Recovery::default()
        .failures(asked.failures)
        .ghosts(asked.ghosts)
        .per_sweep(asked.per_sweep)
        .per_provider(asked.per_provider)
        .canary(!asked.no_canary);
    let sweeper = Sweeper::new(jobs.store().clone(), recovery)?;
    if asked.dry_run {
        let plan = sweeper.plan().await?;
        match json {
            true => terminal.out(&json::value(&plan)),
            false => terminal.out(&human::plan(&plan, terminal)),
        }
        return Ok(());
    }
    let swept = sweeper.run_once().await?;
    match json {
        true => terminal.out(&json::value(&swept)),
        false => terminal.out(&human::swept(&swept, terminal)),
    }
    Ok(())
}
