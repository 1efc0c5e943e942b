//! Where a contract comes from: files, folders, texts, presets.

use std::{
    collections::HashSet,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use toml::de::DeTable;

use super::{
    Contract, ContractError, Loaded,
    budgets::Groups,
    check, lower,
    model::{Document, FORMAT},
    place::{Level, Place, Sources},
    problem::Problem,
    read::Reader,
    resolve,
};

/// The largest file that is read: a contract of ten thousand operations has about one.
const LARGEST: u64 = 4 * 1024 * 1024;
/// The most files of one contract.
const FILES: usize = 1_000;

/// Gathers what a [`Contract`] is made of.
///
/// ```no_run
/// use redial::contract::Contract;
///
/// let contract = Contract::builder().path("contracts").env("staging").load()?;
/// # Ok::<(), redial::contract::ContractError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `load` is called"]
pub struct ContractBuilder {
    origins: Vec<Origin>,
    env: Option<String>,
}

#[derive(Clone, Debug)]
enum Origin {
    Path(PathBuf),
    Text { name: String, text: String },
}

impl ContractBuilder {
    /// A file, or a folder: of that, every `*.toml` in it, by name, and none of what lies deeper. What is no regular file, a
    /// pipe say, is read to its end, however long that takes to come.
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.origins.push(Origin::Path(path.into()));
        self
    }

    /// A text, such as one from `include_str!`, and the name that errors give it.
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.origins.push(Origin::Text { name: name.into(), text: text.into() });
        self
    }

    /// Which `[env.NAME]` overrides hold. Default: none. One that no file has is an error.
    pub fn env(mut self, name: impl Into<String>) -> Self {
        self.env = Some(name.into());
        self
    }

    /// Reads it all, checks every rule that does not depend on the day, and builds the policies.
    ///
    /// # Errors
    ///
    /// [`ContractError`], with every problem of every file: what cannot be read, is not known, or breaks a rule.
    pub fn load(self) -> Result<Contract, ContractError> {
        let loaded = self.load_with(Groups::default())?;
        Ok(Contract::of(loaded, self))
    }

    /// Stands for what would be read now.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut sources = Sources::default();
        for (name, text) in self.texts(&mut sources, &mut Vec::new()) {
            sources.add(name, &text);
        }
        sources.fingerprint()
    }

    /// What is in force once it is loaded; or, as the error, what stands against it.
    pub(crate) fn load_with(&self, groups: Groups) -> Result<Loaded, ContractError> {
        let examined = self.examine(groups);
        match examined.loaded {
            Some(loaded) if !examined.problems.iter().any(Problem::is_error) => Ok(loaded),
            _ => Err(ContractError::new(examined.problems, &examined.sources)),
        }
    }

    /// Everything that can be said of it, whether it loads or not.
    pub(crate) fn examine(&self, groups: Groups) -> Examined {
        let mut sources = Sources::default();
        let mut problems = Vec::new();
        let mut documents = Vec::new();
        for (name, text) in self.texts(&mut sources, &mut problems) {
            let file = sources.add(name, &text);
            documents.extend(parse(file, &text, &mut problems));
        }
        if sources.len() == 0 {
            let file = sources.add("contract".to_owned(), "");
            problems.push(Problem::no_file(whole(file, 0), "there is no file to read"));
        }
        let resolved = resolve::resolve(documents, self.env.as_deref(), &mut problems);
        check::rules(&resolved, &mut problems);
        let lowered = lower::lower(&resolved, groups, &mut problems);
        check::warnings(&resolved, lowered.as_ref(), &mut problems);
        check::waive(&resolved, &mut problems);
        without_consequences(&mut problems);
        sort(&mut problems);
        let sources = Arc::new(sources);
        let loaded = lowered.map(|lowered| Loaded::new(&sources, resolved.clone(), lowered, &problems));
        Examined { sources, resolved, problems, loaded }
    }

    /// The texts, read; what cannot be read is a problem of a file without text.
    fn texts(&self, sources: &mut Sources, problems: &mut Vec<Problem>) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        let mut failed = |name: &Path, message: String| {
            let file = sources.add(name.display().to_string(), "");
            problems.push(Problem::no_file(whole(file, 0), message));
        };
        for origin in &self.origins {
            match origin {
                Origin::Text { name, text } if text.len() as u64 > LARGEST => {
                    failed(Path::new(name), format!("`{name}` {}", too_large(text.len() as u64)));
                }
                Origin::Text { name, text } => texts.push((name.clone(), text.clone())),
                Origin::Path(path) => match files(path) {
                    Err(error) => failed(path, format!("`{}` cannot be read: {error}", path.display())),
                    Ok(files) if files.is_empty() => {
                        failed(path, format!("the folder `{}` has no `*.toml` in it", path.display()));
                    }
                    Ok(files) if files.len() > FILES => {
                        failed(path, format!("the folder `{}` has more than {FILES} files", path.display()));
                    }
                    Ok(files) => {
                        for file in files {
                            match read(&file) {
                                Ok(text) => texts.push((file.display().to_string(), text)),
                                Err(message) => failed(&file, format!("`{}` {message}", file.display())),
                            }
                        }
                    }
                },
            }
        }
        texts
    }
}

/// What was found in a contract, in the order of its files.
pub(crate) struct Examined {
    pub(crate) sources: Arc<Sources>,
    #[cfg_attr(not(feature = "cli"), allow(dead_code))] // for the command
    pub(crate) resolved: resolve::Resolved,
    pub(crate) problems: Vec<Problem>,
    /// `None`: it does not load.
    pub(crate) loaded: Option<Loaded>,
}

fn whole(file: u16, end: usize) -> Place {
    Place { file, start: 0, end: u32::try_from(end).unwrap_or(u32::MAX), level: Level::File }
}

fn too_large(bytes: u64) -> String {
    format!("is too large for a contract: {bytes} bytes, of at most {LARGEST}")
}

/// A file itself, or a folder's `*.toml`, sorted.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)?.take(10 * FILES) {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// No more than is allowed is read, whatever the file says of its length.
fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let length = bytes.len() as u64;
    if length > LARGEST {
        // What is no file, a device say, has no length to tell.
        let told = fs::metadata(path).map_or(0, |metadata| metadata.len());
        return Err(too_large(told.max(length)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("is not UTF-8: the first byte that is none is on line {line}")
    })
}

/// One document; `None` where there is nothing in it to go on with.
fn parse(file: u16, text: &str, problems: &mut Vec<Problem>) -> Option<(Place, Document)> {
    // An editor's mark of UTF-8 would be a key; its three bytes are blanks to TOML then, and places stay true.
    let unmarked = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
    let text = unmarked.as_deref().unwrap_or(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    let place = whole(file, 0);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let offset = |at: usize| u32::try_from(at.min(text.len())).unwrap_or(u32::MAX);
        let place = Place { start: offset(span.start), end: offset(span.end), ..place };
        let problem = Problem::unreadable(place, format!("this is not TOML: {}", error.message()));
        problems.push(problem.label("here").help("see https://toml.io/en/v1.0.0"));
    }
    // What could not be read would be missed everywhere: only what stands in it is looked at.
    let mut ignored = Vec::new();
    let problems = if errors.is_empty() { problems } else { &mut ignored };
    let mut reader = Reader { file, level: Level::File, problems };
    let value = toml::de::DeValue::Table(root.into_inner());
    let document: Document = reader.table(&value, place)?;
    match &document.format {
        Some(format) if format.value == FORMAT => {}
        Some(format) => {
            let message = format!("the format {} is not known to this version", format.value);
            let problem = Problem::unreadable(format.place, message).label("from the future?");
            problems.push(problem.help("write `format = 1`, or use a newer redial"));
        }
        None => {
            let problem = Problem::unreadable(place, "the file does not say which format it has");
            problems.push(problem.help("begin it with `format = 1`"));
        }
    }
    errors.is_empty().then_some((place, document))
}

/// What is said to be missing although it is there, unreadable or misspelt, is no problem of its own.
fn without_consequences(problems: &mut Vec<Problem>) {
    let spoilt = problems.iter().flat_map(|problem| problem.spoils.iter().map(|key| (problem.place.file, key.clone())));
    let spoilt: HashSet<(u16, String)> = spoilt.collect();
    problems
        .retain(|problem| !problem.missing.iter().any(|key| spoilt.contains(&(problem.place.file, (*key).to_owned()))));
}

/// In the order of the files; what was said of one place twice is said once: a provider's slip is one, however many
/// operations inherit it.
fn sort(problems: &mut Vec<Problem>) {
    problems.sort_by_key(|problem| (problem.place.file, problem.place.start, problem.severity));
    let mut seen = HashSet::new();
    problems.retain(|problem| {
        seen.insert((problem.rule, problem.place.file, problem.place.start, problem.message.clone()))
    });
}
