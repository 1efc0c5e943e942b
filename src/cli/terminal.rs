//! What is printed, and whether in colours.

use std::{
    cell::RefCell,
    io::{self, ErrorKind, IsTerminal, Write},
};

use clap::ValueEnum;

use crate::redact::moves_cursor;

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Where the command prints.
pub(crate) struct Terminal {
    colours: bool,
    /// Why not all could be printed.
    failed: RefCell<Option<io::Error>>,
}

impl Terminal {
    pub(super) fn new(color: Color) -> Self {
        let colours = match color {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org: any value that is not empty.
            Color::Auto => {
                io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Terminal { colours, failed: RefCell::default() }
    }

    pub(crate) fn colours(&self) -> bool {
        self.colours
    }

    /// Prints what was asked for. A reader that has gone (`| head`) ends it quietly; what else goes wrong,
    /// [`Terminal::failed`] says.
    pub(crate) fn out(&self, text: &str) {
        let mut out = io::stdout().lock();
        let written = out.write_all(shown(text, self.colours).as_bytes()).and_then(|()| out.flush());
        if let Err(error) = written {
            if error.kind() != ErrorKind::BrokenPipe {
                self.failed.replace(Some(error));
            }
        }
    }

    /// Prints what went wrong.
    pub(crate) fn err(&self, text: &str) {
        let _ = io::stderr().lock().write_all(shown(text, self.colours).as_bytes());
    }

    /// Why what was asked for could not be printed: a full disk, say.
    pub(super) fn failed(&self) -> Option<io::Error> {
        self.failed.take()
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.styled("2", text)
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.styled("32", text)
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.styled("31", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What may be printed: lines, tabs and, where colours are wanted, changes of colour. Whatever else moves the cursor, and
/// wherever it came from, is blank.
fn shown(text: &str, colours: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| moves_cursor(c) && !matches!(c, '\n' | '\t')) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let colour = colour(from).filter(|_| colours);
        out.push_str(colour.unwrap_or(" "));
        let length = colour.map_or_else(|| from.chars().next().map_or(0, char::len_utf8), str::len);
        rest = &from[length..];
    }
    out.push_str(rest);
    out
}

/// The change of colour that a text begins with.
fn colour(text: &str) -> Option<&str> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then(|| &text[..end + 3])
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn only_colours_pass() {
        let text = "\x1b[1mbold\x1b[0m\x1b[2J\x1b]0;title\x07\r\n\tend\u{202e}\x1b[";
        assert_eq!(shown(text, true), "\x1b[1mbold\x1b[0m [2J ]0;title  \n\tend  [");
        assert_eq!(shown(text, false), " [1mbold [0m [2J ]0;title  \n\tend  [");
    }
}
