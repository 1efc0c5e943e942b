//! Where a value stands in its file.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use super::mask;
use crate::redact::plain;

/// The files of a contract, in the order they were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    files: Vec<Source>,
    /// Of all that was added.
    hasher: DefaultHasher,
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The path as it was given, or a name such as `preset github`.
    pub(crate) name: String,
    /// What may be shown of it: of the same length as the file, byte for byte, without secrets.
    pub(crate) shown: Arc<str>,
    /// Where each line begins.
    lines: Vec<usize>,
}

/// A piece of a file, and at which level of the contract it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: u16,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) level: Level,
}

/// Whose word a value is; the more specific ones override those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The file as a whole.
    File,
    /// `[defaults]`
    Defaults,
    /// `[provider.NAME]`
    Provider,
    /// `[[provider.NAME.operation]]`
    Operation,
    /// `[env.NAME…]`, chosen by the program.
    Env,
}

#[cfg(feature = "cli")]
impl Level {
    /// As `explain` names it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Level::File => "file",
            Level::Defaults => "defaults",
            Level::Provider => "provider",
            Level::Operation => "operation",
            Level::Env => "env",
        }
    }
}

/// A value and its place. For an entry of a table, the place is its value's; the key's is beside it where it matters.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

#[cfg(feature = "cli")]
impl<T> At<T> {
    pub(crate) fn map<U>(&self, map: impl FnOnce(&T) -> U) -> At<U> {
        At { value: map(&self.value), place: self.place }
    }
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineColumn {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Sources {
    /// Adds a file, and says by which number its places name it.
    pub(crate) fn add(&mut self, name: String, text: &str) -> u16 {
        let shown = mask::masked(text).into();
        let name = plain(&name).into_owned();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        (&name, text).hash(&mut self.hasher);
        self.files.push(Source { name, shown, lines });
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn get(&self, file: u16) -> Option<&Source> {
        self.files.get(usize::from(file))
    }

    /// Stands for the names and texts of all of them, in this process.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.hasher.finish()
    }

    /// The name of a place's file.
    pub(crate) fn name(&self, place: Place) -> &str {
        self.get(place.file).map_or("", |source| &source.name)
    }

    /// Where a place begins.
    pub(crate) fn begin(&self, place: Place) -> LineColumn {
        self.get(place.file)
            .map_or(LineColumn { line: 1, column: 1 }, |source| source.line_column(place.start as usize))
    }

    /// Where a place ends.
    #[cfg(feature = "cli")]
    pub(crate) fn end(&self, place: Place) -> LineColumn {
        self.get(place.file).map_or(LineColumn { line: 1, column: 1 }, |source| source.line_column(place.end as usize))
    }

    /// `file:line`, as an editor opens it.
    #[cfg(feature = "cli")]
    pub(crate) fn line(&self, place: Place) -> String {
        format!("{}:{}", self.name(place), self.begin(place).line)
    }
}

impl Source {
    /// The number of the line of this byte, from 0.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Where this line begins, counted from 0; past the last one, where the file ends.
    pub(super) fn line_start(&self, line: usize) -> usize {
        self.lines.get(line).copied().unwrap_or(self.shown.len())
    }

    pub(super) fn line_column(&self, offset: usize) -> LineColumn {
        let line = self.line_of(offset);
        let start = self.line_start(line);
        let before = self.shown.get(start..self.within(offset)).unwrap_or_default();
        // An editor's mark of UTF-8 is no character of the line.
        let marked = usize::from(before.starts_with(mask::MARK));
        LineColumn { line: line + 1, column: before.chars().count() - marked + 1 }
    }
}
