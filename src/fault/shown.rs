//! The one place that reads a representation, for what has neither a type that can be named nor a predicate.
//!
//! Whoever uses it says what follows when the representation changes: it must be the careful side.

use std::fmt::{self, Write as _};

/// Whether an error's `Debug` begins with this. Nothing of it is kept.
pub(super) fn shows<E: fmt::Debug + ?Sized>(error: &E, prefix: &'static str) -> bool {
    let mut shown = Prefix(prefix);
    // Stops itself with an error as soon as it knows, and so never formats what lies beneath.
    let _ = write!(shown, "{error:?}");
    shown.0.is_empty()
}

/// What is still to be matched; the formatting ends at the first difference, or with the match.
struct Prefix(&'static str);

impl fmt::Write for Prefix {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.len().min(self.0.len());
        match self.0.strip_prefix(text.get(..length).ok_or(fmt::Error)?) {
            Some(rest) if !rest.is_empty() => {
                self.0 = rest;
                Ok(())
            }
            Some(rest) => {
                self.0 = rest;
                Err(fmt::Error)
            }
            None => Err(fmt::Error),
        }
    }
}
