//! What is wrong with a contract: located, and with how to mend it.

use std::{error::Error as StdError, fmt, sync::Arc};

use miette::{Diagnostic, LabeledSpan, Severity as Shown, SourceCode};

use super::place::{Place, Source, Sources};
use crate::redact::plain;

/// How much a problem weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The contract does not load.
    Error,
    /// Allowed, but probably not meant.
    Warning,
}

/// One thing that is wrong, before it is joined to the text of its file.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    /// The rule's number in the standard; `None`: the file itself cannot be read.
    pub(crate) rule: Option<&'static str>,
    pub(crate) message: String,
    pub(crate) place: Place,
    /// What stands under the underlined text.
    pub(crate) label: String,
    pub(crate) help: Option<String>,
    /// Another place that it has to do with.
    pub(crate) other: Option<(Place, String)>,
    /// Whose it is, for waivers and baselines.
    pub(crate) about: About,
    pub(crate) kind: Kind,
    /// The keys whose values could not be read for it.
    pub(crate) spoils: Vec<String>,
    /// The keys that are said to be missing.
    pub(crate) missing: Vec<&'static str>,
}

/// What a problem stands in the way of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The file cannot be had: it is not there, not a text, too large.
    NoFile,
    /// No policy can be built: nothing waives that.
    NoPolicy,
    /// A policy could be built, so that it can be waived for a time.
    Owed,
}

/// The provider and the operation that a problem is about; empty where it is about none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) provider: String,
    pub(crate) operation: String,
}

impl Problem {
    /// A file that cannot be had.
    pub(crate) fn no_file(place: Place, message: impl Into<String>) -> Self {
        Problem { kind: Kind::NoFile, ..Self::unreadable(place, message) }
    }

    /// What cannot be read in a file.
    pub(crate) fn unreadable(place: Place, message: impl Into<String>) -> Self {
        Problem {
            severity: Severity::Error,
            rule: None,
            message: message.into(),
            place,
            label: String::new(),
            help: None,
            other: None,
            about: About::default(),
            kind: Kind::NoPolicy,
            spoils: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// A rule of the standard, broken.
    pub(crate) fn broken(rule: &'static str, place: Place, message: impl Into<String>) -> Self {
        Problem { rule: Some(rule), ..Self::unreadable(place, message) }
    }

    /// A rule that a policy could be built against, so that it can be waived for a time.
    pub(crate) fn owed(rule: &'static str, place: Place, message: impl Into<String>) -> Self {
        Problem { kind: Kind::Owed, ..Self::broken(rule, place, message) }
    }

    pub(crate) fn warning(rule: &'static str, place: Place, message: impl Into<String>) -> Self {
        Problem { severity: Severity::Warning, ..Self::owed(rule, place, message) }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// It is about keys that are not there.
    pub(crate) fn missing(mut self, keys: impl IntoIterator<Item = &'static str>) -> Self {
        self.missing.extend(keys);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn other(mut self, place: Place, label: impl Into<String>) -> Self {
        self.other = Some((place, label.into()));
        self
    }

    pub(crate) fn about(mut self, provider: &str, operation: &str) -> Self {
        self.about = About { provider: provider.to_owned(), operation: operation.to_owned() };
        self
    }
}

/// One problem of a contract, with the text that it is about.
#[derive(Clone)]
pub struct Finding {
    problem: Problem,
    sources: Arc<Sources>,
}

impl Finding {
    /// Names and values that a file gives may hold what moves a cursor: here it is taken out of the words, once for all
    /// that print them.
    pub(crate) fn new(mut problem: Problem, sources: &Arc<Sources>) -> Self {
        let About { provider, operation } = &mut problem.about;
        let other = problem.other.iter_mut().map(|(_, label)| label);
        let texts = [&mut problem.message, &mut problem.label, provider, operation];
        for text in texts.into_iter().chain(&mut problem.help).chain(other) {
            if text.contains(crate::redact::moves_cursor) {
                *text = plain(text).into_owned();
            }
        }
        Finding { problem, sources: Arc::clone(sources) }
    }

    fn source(&self) -> Option<&Source> {
        self.sources.get(self.problem.place.file)
    }

    #[cfg(feature = "cli")]
    pub(crate) fn problem(&self) -> &Problem {
        &self.problem
    }

    #[cfg(feature = "cli")]
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        self.problem.severity
    }

    /// The broken rule's number in the standard, `S8`; `None` where the file cannot be read.
    pub fn rule(&self) -> Option<&'static str> {
        self.problem.rule
    }

    /// The file, as it was named when it was loaded.
    pub fn file(&self) -> &str {
        self.sources.name(self.problem.place)
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.sources.begin(self.problem.place).line
    }

    /// The column, from 1, in characters.
    pub fn column(&self) -> usize {
        self.sources.begin(self.problem.place).column
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.problem.message
    }

    /// How to mend it.
    pub fn mend(&self) -> Option<&str> {
        self.problem.help.as_deref()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem.rule {
            Some(rule) => write!(f, "{rule}: {}", self.problem.message),
            None => f.write_str(&self.problem.message),
        }
    }
}

impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {self}", self.file(), self.line(), self.column())
    }
}

impl StdError for Finding {}

impl Diagnostic for Finding {
    fn severity(&self) -> Option<Shown> {
        Some(match self.problem.severity {
            Severity::Error => Shown::Error,
            Severity::Warning => Shown::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let source = self.source()?;
        let span = |place: Place, label: &str, primary: bool| {
            let label = (!label.is_empty()).then(|| label.to_owned());
            let range = source.underlined(place);
            if primary {
                LabeledSpan::new_primary_with_span(label, range)
            } else {
                LabeledSpan::new_with_span(label, range)
            }
        };
        let problem = &self.problem;
        // A place in another file cannot be underlined in this one: its line is in the help.
        let other = problem.other.iter().filter(|(place, _)| source.shows_both(*place, problem.place));
        let labels = other.map(move |(place, label)| span(*place, label, false));
        Some(Box::new(std::iter::once(span(problem.place, &problem.label, true)).chain(labels)))
    }
}
