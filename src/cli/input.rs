//! From the paths of the command line to the texts of a contract.

use std::io::Read;

use super::arguments::Input;
use crate::contract::{Contract, ContractBuilder};

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
