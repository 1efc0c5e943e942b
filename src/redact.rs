//! Text and targets without their secrets.

use std::fmt;

use http::Uri;

/// How much of a foreign text is shown.
const LONGEST: usize = 300;

/// A text that we did not write, in one line: URLs lose userinfo, query and fragment, control characters become
/// spaces, and it is cut where it grows long.
///
/// A text is not parsed, so this hides too much rather than too little: of each word, what stands between `//` (or the
/// word's start) and its last `@` where that looks like userinfo, and all that follows its first `?` or `#`.
pub(crate) struct Redacted<'a>(pub(crate) &'a str);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut left = LONGEST;
        // Neither of these can stand in a URL. Apostrophes and brackets can.
        let ends_word = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`');
        for word in self.0.split_inclusive(ends_word) {
            let end = word.find(ends_word).unwrap_or(word.len());
            let (word, separator) = word.split_at(end);
            let (front, rest) = without_userinfo(word);
            let shown = rest.find(['?', '#']).filter(|at| rest.len() > at + 1).map_or(rest, |at| &rest[..at]);
            let cut = if shown.len() < rest.len() { "?…" } else { "" };
            for c in [front, shown, cut, separator].into_iter().flat_map(str::chars) {
                if left == 0 {
                    return f.write_str("…");
                }
                left -= 1;
                f.write_char(if moves_cursor(c) || c.is_whitespace() { ' ' } else { c })?;
            }
        }
        Ok(())
    }
}

/// A foreign text as this crate would show it: one line, at most 300 characters, without the secrets of its URLs. For
/// `redial-jobs`, which stores such texts.
pub fn redacted(text: &str) -> String {
    Redacted(text).to_string()
}

/// Whether a terminal would do something with it rather than show it: control characters, and those that turn the
/// direction of the text around.
pub(crate) fn moves_cursor(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text that we did not write, as it may go to a terminal, a log or a page: what moves a cursor is blank.
#[cfg(feature = "contract")]
pub(crate) fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains(moves_cursor) { text.replace(moves_cursor, " ").into() } else { text.into() }
}

/// What stands before userinfo, and what follows it.
fn without_userinfo(word: &str) -> (&str, &str) {
    let Some(at) = word.rfind('@') else { return ("", word) };
    let (before, after) = (&word[..at], &word[at + 1..]);
    match before.find("//") {
        Some(slashes) => (&word[..slashes + 2], after),
        // `user:word@host`; a plain address of mail has no colon before its sign.
        None if before.contains(':') => ("", after),
        None => ("", word),
    }
}

/// A target without userinfo, query and fragment.
pub(crate) struct Target<'a>(pub(crate) &'a Uri);

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = self.0.scheme_str() {
            write!(f, "{scheme}://")?;
        }
        if let Some(host) = self.0.host() {
            f.write_str(host)?;
        }
        if let Some(port) = self.0.port_u16() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.0.path())
    }
}

#[cfg(test)]
mod tests;
