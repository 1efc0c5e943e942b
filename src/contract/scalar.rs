//! Values of a contract that are more than a text or a number.

use std::time::Duration;

use http::HeaderName;
use toml::de::DeValue;

use super::{
    names::CodeName,
    place::{At, Place},
    problem::Problem,
    read::{Keys, Read, Reader},
    table::table,
};
use crate::{Transient, redact::Redacted};

/// A duration, written as `"1m30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Duration);

/// A day of the calendar, written as TOML's own `2026-11-30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(pub(crate) jiff::civil::Date);

/// A status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Status(pub(crate) u16);

/// The name of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) HeaderName);

/// What a header must say: a text, or `true` for whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema), schemars(untagged))]
pub(crate) enum HeaderTest {
    Text(String),
    Present(bool),
}

/// A text, a number or a boolean, as JSON writes it but for a text's quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar(pub(crate) String);

table! {
    /// More attempts than three, and why.
    AttemptsTable {
        /// Attempts in all, the first included: 1 to 9.
        max: u32,
        /// Why more than 3 are needed (S12).
        reason: String,
    }
}

/// How many attempts: a number, or a table with a reason.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema), schemars(untagged))]
pub(crate) enum Attempts {
    Number(u32),
    Table(AttemptsTable),
}

impl Attempts {
    /// How many, where that is said.
    pub(crate) fn max(&self) -> Option<u32> {
        match self {
            Attempts::Number(max) => Some(*max),
            Attempts::Table(table) => table.max.as_deref().copied(),
        }
    }

    /// Why more than three.
    pub(crate) fn reason(&self) -> Option<&At<String>> {
        match self {
            Attempts::Number(_) => None,
            Attempts::Table(table) => table.reason.as_ref(),
        }
    }
}

impl Read for Attempts {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        if !value.is_table() {
            return u32::read(value, place, reader).map(Attempts::Number);
        }
        let table: AttemptsTable = reader.table(value, place)?;
        if table.max.is_none() {
            let problem = Problem::broken("S12", place, "it is not said how many attempts").label("`max` is missing");
            reader.problem(problem.help("write `attempts = { max = 4, reason = \"…\" }`, or a number alone"));
            return None;
        }
        Some(Attempts::Table(table))
    }

    fn weight(&self) -> u64 {
        match self {
            Attempts::Number(_) => 0,
            Attempts::Table(table) => Keys::weight(table),
        }
    }
}

table! {
    /// A gRPC code, and why it passes.
    CodeTable {
        /// Its name.
        code: CodeName,
        /// Why it passes by itself, where codes of its kind do not (S5).
        because: String,
        /// Where the provider documents that it means "not processed": a repeat needs no evidence then (S7).
        rejected: String,
    }
}

/// A gRPC code: its name, or a table with a reason.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema), schemars(untagged))]
pub(crate) enum Code {
    Name(CodeName),
    Table(CodeTable),
}

impl Code {
    pub(crate) fn name(&self) -> CodeName {
        match self {
            Code::Name(name) => *name,
            // One without a name is not read.
            Code::Table(table) => table.code.as_deref().copied().unwrap_or(CodeName::Unknown),
        }
    }

    /// Lists it as what passes.
    pub(crate) fn list(&self, transient: Transient) -> Transient {
        let code = self.name().code();
        let Code::Table(CodeTable { because, rejected, .. }) = self else { return transient.code(code) };
        match (rejected, because) {
            (Some(documented), _) => transient.rejected_code(code, documented.value.clone()),
            (None, Some(because)) => transient.code_because(code, because.value.clone()),
            (None, None) => transient.code(code),
        }
    }
}

impl Read for Code {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        if !value.is_table() {
            return CodeName::read(value, place, reader).map(Code::Name);
        }
        let table: CodeTable = reader.table(value, place)?;
        if table.code.is_none() {
            let problem = Problem::unreadable(place, "it is not said which code").label("`code` is missing");
            let help = "write `{ code = \"UNAVAILABLE\", rejected = \"where it is documented\" }`, or the name alone";
            reader.problem(problem.help(help).missing(["code"]));
            return None;
        }
        Some(Code::Table(table))
    }

    fn weight(&self) -> u64 {
        match self {
            Code::Name(_) => 0,
            Code::Table(table) => Keys::weight(table),
        }
    }
}

impl Read for Day {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let help = "write it without quotes: 2026-11-30";
        let Some(date) = value.as_datetime().filter(|found| found.time.is_none()).and_then(|found| found.date) else {
            let problem = Problem::unreadable(place, format!("a date is wanted here, not a {}", value.type_str()));
            reader.problem(problem.label("not a date").help(help));
            return None;
        };
        let part = |value: u8| i8::try_from(value).unwrap_or_default();
        let year = i16::try_from(date.year).unwrap_or_default();
        match jiff::civil::Date::new(year, part(date.month), part(date.day)) {
            Ok(date) => Some(Day(date)),
            Err(_) => {
                reader.problem(Problem::unreadable(place, "no such day").label("not in the calendar"));
                None
            }
        }
    }
}

impl Read for Status {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let code = u32::read(value, place, reader)?;
        let status = u16::try_from(code).ok().filter(|code| (100..=611).contains(code));
        if status.is_none() {
            let problem = Problem::broken("S5", place, format!("{code} is no status of HTTP"));
            reader.problem(problem.label("no such status").help("100 to 599, or a vendor's own up to 611"));
        }
        status.map(Status)
    }
}

impl Read for Header {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, place, reader)?;
        header_name(&text, place, reader).map(Header)
    }
}

pub(super) fn header_name(text: &str, place: Place, reader: &mut Reader<'_>) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    if name.is_none() {
        let message = format!("`{}` is not the name of a header", Redacted(text));
        let help = "letters, digits and `-`, as in \"retry-after\"";
        reader.problem(Problem::unreadable(place, message).label("not a header").help(help));
    }
    name
}

impl Read for HeaderTest {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::Boolean(true) => Some(HeaderTest::Present(true)),
            DeValue::String(text) => Some(HeaderTest::Text(text.trim().to_owned())),
            other => {
                reader.wrong_type(place, "a text, or `true` for whatever it says,", other);
                None
            }
        }
    }
}

impl Read for Scalar {
    fn read(value: &DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
        match value {
            DeValue::String(text) => Some(Scalar(text.to_string())),
            DeValue::Boolean(value) => Some(Scalar(value.to_string())),
            DeValue::Integer(number) if number.radix() == 10 => Some(Scalar(number.as_str().to_owned())),
            DeValue::Float(number) => Some(Scalar(number.as_str().to_owned())),
            other => {
                reader.wrong_type(place, "a text, a number or a boolean", other);
                None
            }
        }
    }
}
