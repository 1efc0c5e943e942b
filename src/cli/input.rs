//! From the paths of the command line to the texts of a contract.

use std::{fs::File, io::Read, path::Path};

use super::{
    End,
    arguments::{Input, Whole},
    terminal::Terminal,
};
use crate::contract::{Contract, ContractBuilder, Groups, Loaded};

/// What is read from standard input, at the most: what is longer is refused as any file is.
const LARGEST: u64 = 8 * 1024 * 1024;

/// The contract that these paths make.
pub(super) fn builder(input: &Input) -> Result<ContractBuilder, String> {
    let mut builder = Contract::builder();
    for path in &input.paths {
        builder = add(builder, path)?;
    }
    Ok(match &input.env {
        Some(env) => builder.env(env),
        None => builder,
    })
}

/// The contract of one path. What stands in its way has been said.
pub(super) fn loaded(whole: &Whole, terminal: &Terminal) -> Result<Loaded, End> {
    let builder = add(Contract::builder(), &whole.file).map_err(|message| unreadable(&message, terminal))?;
    in_env(&builder, whole.env.as_deref(), terminal)
}

/// The same texts, as an environment has them. What stands in its way has been said.
pub(super) fn in_env(builder: &ContractBuilder, env: Option<&str>, terminal: &Terminal) -> Result<Loaded, End> {
    let builder = match env {
        Some(env) => builder.clone().env(env),
        None => builder.clone(),
    };
    builder.load_with(Groups::default()).map_err(|error| {
        terminal.err(&format!("{error}\n"));
        End::of(&error)
    })
}

/// Says why nothing can be read.
pub(super) fn unreadable(message: &str, terminal: &Terminal) -> End {
    terminal.err(&format!("redial: {message}\n"));
    End::Unreadable
}

/// A file that is no contract, of so many bytes at the most.
pub(super) fn text(path: &Path, most: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
    if bytes.len() as u64 > most {
        return Err(format!("`{}` is too large: more than {most} bytes", path.display()));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{}` is not UTF-8", path.display()))
}

/// One more file, folder, pattern or `-`.
pub(super) fn add(mut builder: ContractBuilder, path: &str) -> Result<ContractBuilder, String> {
    if path == "-" {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(LARGEST).read_to_end(&mut text);
        read.map_err(|error| format!("standard input cannot be read: {error}"))?;
        let text = String::from_utf8(text).map_err(|_| "standard input is not UTF-8".to_owned())?;
        return Ok(builder.text("<stdin>", text));
    }
    // A file whose name looks like a pattern is a file.
    if !path.contains(['*', '?', '[']) || std::path::Path::new(path).exists() {
        return Ok(builder.path(path));
    }
    let found = glob::glob(path).map_err(|error| format!("`{path}` is no pattern: {error}"))?;
    let mut any = false;
    for found in found {
        builder = builder.path(found.map_err(|error| error.to_string())?);
        any = true;
    }
    if any { Ok(builder) } else { Err(format!("nothing matches `{path}`")) }
}
