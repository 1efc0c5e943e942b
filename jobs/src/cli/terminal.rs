//! What is printed, and whether in colours.

use std::{
    cell::RefCell,
    io::{self, IsTerminal, Write},
};

use clap::ValueEnum;

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
pub(super) struct Terminal {
    colours: bool,
    /// Why what was asked for could not be printed: the first time.
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

    /// Prints what was asked for.
    pub(super) fn out(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    /// Why what was asked for was not printed: a full disk, say. A reader that has gone (`| head`) has read enough.
    pub(super) fn failure(&self) -> Option<String> {
        let failed = self.failed.borrow();
        failed.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe).map(io::Error::to_string)
    }

    /// Prints what went wrong.
    pub(super) fn err(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.styled("2", text)
    }

    pub(super) fn good(&self, text: &str) -> String {
        self.styled("32", text)
    }

    pub(super) fn bad(&self, text: &str) -> String {
        self.styled("31", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A text that somebody else wrote, in one line: a control character could steer the terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Whether a terminal does something else than to show it: controls, ends of lines, and what turns the direction of the
/// text that follows (Unicode's Bidi_Control).
pub(super) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
