//! From the values of a TOML file to those of the model, gathering every problem on the way.

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    duration,
    place::{At, Level, Place},
    problem::Problem,
    scalar::Time,
    weight,
};
use crate::redact::{Redacted, moves_cursor};

/// What is known while a file is read.
pub(super) struct Reader<'a> {
    pub(super) file: u16,
    pub(super) level: Level,
    pub(super) problems: &'a mut Vec<Problem>,
}

/// A value of the model.
pub(super) trait Read: Sized {
    /// `None`: it was no such value, and the reader knows why.
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self>;

    /// This value over one that is less specific. Tables inherit key by key; all else replaces (D29).
    fn over(self, _below: Self) -> Self {
        self
    }

    /// What it holds weighs, where that may stand elsewhere in the file than it begins: a table's keys.
    fn weight(&self) -> u64 {
        0
    }
}

/// A table whose keys are known.
pub(super) trait Keys: Default {
    /// The keys.
    fn keys(known: &mut Vec<&'static str>);

    /// Reads the value of one key; `false`: there is no such key.
    fn key(&mut self, key: &str, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> bool;

    /// See [`Read::over`].
    fn over(self, below: Self) -> Self;

    /// See [`Read::weight`].
    fn weight(&self) -> u64;
}

impl Reader<'_> {
    pub(super) fn place<T>(&self, spanned: &Spanned<T>) -> Place {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = spanned.span();
        Place { file: self.file, start: offset(span.start), end: offset(span.end), level: self.level }
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// One value and its place.
    pub(super) fn at<T: Read>(&mut self, value: &Spanned<DeValue<'_>>) -> Option<At<T>> {
        let place = self.place(value);
        Some(At { value: T::read(value.get_ref(), place, self)?, place })
    }

    /// At another level.
    pub(super) fn within<T>(&mut self, level: Level, read: impl FnOnce(&mut Reader<'_>) -> T) -> T {
        read(&mut Reader { file: self.file, level, problems: self.problems })
    }

    pub(super) fn wrong_type(&mut self, place: Place, wanted: &str, found: &DeValue<'_>) {
        let found = match found.type_str() {
            article @ ("array" | "integer") => format!("an {article}"),
            other => format!("a {other}"),
        };
        self.problem(Problem::unreadable(place, format!("{wanted} is wanted here, not {found}")).label("not so"));
    }

    /// Every key of a table, in the order they are written; those that are not known are problems.
    pub(super) fn table<T: Keys>(&mut self, value: &DeValue<'_>, place: Place) -> Option<T> {
        let Some(table) = value.as_table() else {
            self.wrong_type(place, "a table", value);
            return None;
        };
        let mut out = T::default();
        for (key, value) in in_order(table) {
            let before = self.problems.len();
            if out.key(key.get_ref(), value, self) {
                for problem in &mut self.problems[before..] {
                    problem.spoils.push(key.get_ref().to_string());
                }
                continue;
            }
            let mut known = Vec::new();
            T::keys(&mut known);
            let place = self.place(key);
            self.unknown("key", key.get_ref(), place, known.iter().copied());
            // It may have been meant to be this one.
            if let (Some(problem), Some(nearest)) = (self.problems.last_mut(), nearest(key.get_ref(), &known)) {
                problem.spoils.push(nearest.to_owned());
            }
        }
        Some(out)
    }

    /// A name that is none of those known, with the nearest one.
    pub(super) fn unknown<'n>(&mut self, what: &str, name: &str, place: Place, known: impl Iterator<Item = &'n str>) {
        let known: Vec<&str> = known.collect();
        let help = match nearest(name, &known) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known are {}", listed(&known)),
        };
        let message = format!("the {what} `{}` is not known", Redacted(name));
        self.problem(Problem::unreadable(place, message).label(format!("no such {what}")).help(help));
    }
}

/// The entries of a table as they stand in the file.
pub(super) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> impl Iterator<Item = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

/// The known name that is spelled most like this one, if any is near.
fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    // A long text is no misspelt name.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let likeness = |known: &str| strsim::jaro_winkler(&lower, &known.to_ascii_lowercase());
    known
        .iter()
        .map(|known| (*known, likeness(known)))
        .filter(|(_, likeness)| *likeness > 0.8)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(known, _)| known)
}

pub(super) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Read for String {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(text) = value.as_str() else {
            reader.wrong_type(place, "a text", value);
            return None;
        };
        if text.trim().is_empty() {
            reader.problem(
                Problem::unreadable(place, "the text is empty")
                    .label("nothing is said here")
                    .help("say it in words, or leave the key out"),
            );
            return None;
        }
        readable(text, place, reader);
        Some(text.trim().to_owned())
    }
}

/// Texts and names go to terminals, logs and pages: what they could not show has no place in them. Texts may have lines.
fn readable(text: &str, place: Place, reader: &mut Reader<'_>) {
    let hidden = |c: char| moves_cursor(c) && !matches!(c, '\n' | '\t');
    let Some(found) = text.replace("\r\n", "\n").chars().find(|c| hidden(*c)) else { return };
    let message = format!("there is a character that nobody sees in it: U+{:04X}", u32::from(found));
    let problem = Problem::unreadable(place, message).label("hidden here");
    reader.problem(problem.help("leave it out: a terminal would obey it rather than show it"));
}

impl Read for bool {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let read = value.as_bool();
        if read.is_none() {
            reader.wrong_type(place, "`true` or `false`", value);
        }
        read
    }
}

impl Read for u32 {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(integer) = value.as_integer() else {
            reader.wrong_type(place, "a whole number", value);
            return None;
        };
        let read = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        if read.is_none() {
            let message = "the number is out of range: 0 to 4294967295";
            reader.problem(
                Problem::unreadable(place, message).label("out of range").help("write a whole number, such as 3"),
            );
        }
        read
    }
}

impl Read for f64 {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let read = match value {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            other => {
                reader.wrong_type(place, "a number", other);
                return None;
            }
        };
        let finite = read.filter(|read: &f64| read.is_finite());
        if finite.is_none() {
            reader.problem(
                Problem::unreadable(place, "the number is not finite")
                    .label("not a number to count with")
                    .help("write a plain number, such as 2.0"),
            );
        }
        finite
    }
}

impl Read for Time {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let text = match value {
            DeValue::String(text) => text,
            DeValue::Integer(number) => {
                let number = number.as_str();
                let help = format!("which unit? \"{number}s\" are seconds, \"{number}ms\" milliseconds");
                let problem = Problem::unreadable(place, "the duration has no unit").label("seconds? milliseconds?");
                reader.problem(problem.help(help));
                return None;
            }
            other => {
                reader.wrong_type(place, "a duration such as \"2s\"", other);
                return None;
            }
        };
        match duration::parse(text) {
            Ok(duration) => Some(Time(duration)),
            Err(no) => {
                reader.problem(Problem::unreadable(place, no.what).label("not a duration").help(no.help));
                None
            }
        }
    }
}

impl<T: Read> Read for Vec<At<T>> {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(array) = value.as_array() else {
            reader.wrong_type(place, "a list", value);
            return None;
        };
        Some(array.iter().filter_map(|value| reader.at(value)).collect())
    }

    fn weight(&self) -> u64 {
        self.iter().map(weight::entry).sum()
    }
}

/// A list that may be written without its brackets where it has one entry.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore<T>(pub(crate) Vec<At<T>>);

impl<T> OneOrMore<T> {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, At<T>> {
        self.0.iter()
    }
}

impl<T: Read> Read for OneOrMore<T> {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Array(_) => Vec::read(value, place, reader).map(OneOrMore),
            _ => T::read(value, place, reader).map(|value| OneOrMore(vec![At { value, place }])),
        }
    }

    fn weight(&self) -> u64 {
        self.0.weight()
    }
}

/// A table whose keys are names that the file gives.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(At<String>, At<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<T: Read> Read for Named<T> {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(table) = value.as_table() else {
            reader.wrong_type(place, "a table", value);
            return None;
        };
        let entries = in_order(table).filter_map(|(key, value)| {
            let name = At { value: key.get_ref().trim().to_owned(), place: reader.place(key) };
            if name.value.is_empty() {
                reader.problem(Problem::unreadable(name.place, "the name is empty").label("nothing is named here"));
            }
            readable(&name.value, name.place, reader);
            Some((name, reader.at(value)?))
        });
        Some(Named(entries.collect()))
    }

    fn weight(&self) -> u64 {
        self.0.iter().map(|(name, value)| name.value.len() as u64 + weight::entry(value)).sum()
    }
}
