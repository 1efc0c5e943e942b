//! Text and targets without their secrets.

use std::fmt;

use http::Uri;

/// How much of a foreign text is shown.
const LONGEST: usize = 300;

/// A text that we did not write, in one line: URLs lose userinfo, query and fragment, control characters become
/// spaces, and it is cut where it grows long.
pub(crate) struct Redacted<'a>(pub(crate) &'a str);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut left = LONGEST;
        for word in self.0.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')) {
            let (front, rest) = match word.find("://") {
                Some(scheme) => word.split_at(scheme + 3),
                None => ("", word),
            };
            let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let rest = match rest[..authority_end].rfind('@') {
                Some(at) if !front.is_empty() => &rest[at + 1..],
                _ => rest,
            };
            let path_end =
                rest.find(['?', '#']).filter(|end| rest.len() > end + 1 && !rest[end + 1..].trim().is_empty());
            let (shown, cut) = match path_end {
                Some(end) => (&rest[..end], "?… "),
                None => (rest, ""),
            };
            for c in front.chars().chain(shown.chars()).chain(cut.chars()) {
                if left == 0 {
                    return f.write_str("…");
                }
                left -= 1;
                f.write_char(if c.is_control() || c.is_whitespace() { ' ' } else { c })?;
            }
        }
        Ok(())
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
