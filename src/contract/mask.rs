//! A file's text as it may be shown: what might be a secret is covered, and what would move a reader's cursor is blank,
//! byte for byte, so that places stay true.
//!
//! A contract has no secrets, but people paste: a URL with userinfo or a query, a header with a token. Diagnostics show
//! lines of the file, and CI shows diagnostics to everybody. The file may be no TOML at all: nothing here relies on it.

use std::ops::Range;

use crate::redact::moves_cursor;

/// Words of keys whose values are covered.
const SECRET: [&str; 8] = ["authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "api_key"];
/// An editor's mark of UTF-8, at the beginning of a file.
pub(crate) const MARK: char = '\u{feff}';
/// Keys of the format that count tokens.
const COUNTS: [&str; 2] = ["max_tokens", "token_ratio"];

/// The same text, of the same length, with `*` for what might be a secret.
pub(crate) fn masked(text: &str) -> String {
    let mut covered = Vec::new();
    urls(text, &mut covered);
    values(text, &mut covered);
    covered.sort_by_key(|range: &Range<usize>| range.start);
    let mut covered = covered.into_iter().peekable();
    let (mut out, mut until) = (String::with_capacity(text.len()), 0);
    for (at, c) in text.char_indices() {
        while let Some(range) = covered.next_if(|range| range.start <= at) {
            until = range.end.max(until);
        }
        // One for each byte.
        match c {
            '\n' | '\t' => out.push(c),
            _ if moves_cursor(c) => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
            _ if at >= until || shapes(c) => out.push(c),
            _ => out.extend(std::iter::repeat_n('*', c.len_utf8())),
        }
    }
    out
}

/// Quotes, brackets and what separates: the shape of the line needs them.
fn shapes(c: char) -> bool {
    matches!(c, '"' | '\'' | '{' | '}' | '[' | ']' | '=' | ',' | ' ')
}

/// Userinfo and query of every URL.
fn urls(text: &str, covered: &mut Vec<Range<usize>>) {
    let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '<' | '>' | '`');
    let mut start = 0;
    for word in text.split_inclusive(ends) {
        let begin = word.find("//").map(|at| at + 2);
        if let Some(sign) = word.rfind('@') {
            let authority =
                begin.map_or(0, |begin| word[begin..].find(['/', '?', '#']).map_or(word.len(), |at| begin + at));
            let from = begin.filter(|begin| *begin <= sign).unwrap_or(0);
            // A plain address of mail has no colon before its sign; a path may have a sign.
            if word[from..sign].contains(':') || word[..authority].contains('@') {
                covered.push(start + from..start + sign);
            }
        }
        if let Some(query) = begin.and_then(|begin| word[begin..].find('?').map(|at| begin + at)) {
            let end = word.find(ends).unwrap_or(word.len());
            covered.push(start + query + 1..start + end);
        }
        start += word.len();
    }
}

/// A piece of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Keys, brackets, numbers.
    Code,
    Text,
    Comment,
}

/// The values of keys whose name says that they are secret.
fn values(text: &str, covered: &mut Vec<Range<usize>>) {
    let (mut at, mut last, mut known) = (0, 0..0, 0);
    while at < text.len() {
        let (piece, end) = piece(&text[at..]);
        let range = at..at + end;
        match piece {
            Piece::Code => {
                let mut from = at;
                for (sign, _) in text[range.clone()].match_indices('=') {
                    let sign = at + sign;
                    let bare = text[from..sign].trim_end();
                    let key = bare.rsplit(|c: char| !is_key(c)).next().unwrap_or_default();
                    // Where nothing stands before the sign, the key is the text in quotes before it.
                    let key = if bare.trim().is_empty() && from == at { &text[last.clone()] } else { key };
                    from = sign + 1;
                    // What lies in a value that is covered needs no look of its own.
                    if sign < known || !is_secret(key) {
                        continue;
                    }
                    let value = value(text, sign + 1);
                    if !is_count(key, &text[value.clone()]) {
                        known = value.end;
                        covered.push(value);
                    }
                }
            }
            Piece::Text | Piece::Comment => within(text, range.clone(), covered),
        }
        last = range.clone();
        at = range.end;
    }
}

/// What stands at the beginning, and how long it is.
fn piece(text: &str) -> (Piece, usize) {
    if text.starts_with('#') {
        return (Piece::Comment, text.find('\n').unwrap_or(text.len()));
    }
    match quoted(text) {
        Some(end) => (Piece::Text, end),
        None => (Piece::Code, text.find(['"', '\'', '#']).unwrap_or(text.len())),
    }
}

/// Where a text in quotes ends, if one begins here. What is not closed ends with its line, or with the file.
fn quoted(text: &str) -> Option<usize> {
    for (quotes, escapes, lines) in
        [("\"\"\"", true, true), ("'''", false, true), ("\"", true, false), ("'", false, false)]
    {
        let Some(inner) = text.strip_prefix(quotes) else { continue };
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            if c == '\n' && !lines {
                return Some(quotes.len() + at);
            }
            if !escaped && inner[at..].starts_with(quotes) {
                return Some(2 * quotes.len() + at);
            }
            escaped = escapes && c == '\\' && !escaped;
        }
        return Some(text.len());
    }
    None
}

/// Where the value lies that begins after this sign.
fn value(text: &str, from: usize) -> Range<usize> {
    let rest = &text[from..];
    let from = from + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let rest = &text[from..];
    if let Some(end) = quoted(rest) {
        return from..from + end;
    }
    if !rest.starts_with(['[', '{']) {
        // One that is no TOML may be anything, to the end of its line.
        let line = rest.find('\n').unwrap_or(rest.len());
        let number = rest[..line].split([',', '}', ']', '#']).next().unwrap_or_default();
        return from..from + if number.trim().parse::<f64>().is_ok() { number.len() } else { line };
    }
    let (mut at, mut depth) = (0, 0_u32);
    while let Some(c) = rest[at..].chars().next() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return from..from + at + 1;
        }
        at += match piece(&rest[at..]) {
            (Piece::Code, _) => c.len_utf8(),
            (_, end) => end.max(1),
        };
    }
    from..text.len()
}

/// `token=…` and `password: …` within a text or a comment, to the end of the line.
fn within(text: &str, range: Range<usize>, covered: &mut Vec<Range<usize>>) {
    let mut start = range.start;
    for line in text[range].split_inclusive('\n') {
        let signs = line.match_indices(['=', ':']).filter(|(at, sign)| *sign == "=" || line[at + 1..].starts_with(' '));
        for (at, _) in signs {
            let before = line[..at].trim_end_matches([' ', '"', '\'', '\\']);
            let key = before.rsplit(|c: char| !is_key(c)).next().unwrap_or_default();
            if is_secret(key)
                && !is_count(
                    key,
                    line[at + 1..].split([',', '}', ' ']).find(|word| !word.is_empty()).unwrap_or_default(),
                )
            {
                covered.push(start + at + 1..start + line.len());
                break;
            }
        }
        start += line.len();
    }
}

fn is_key(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_secret(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    SECRET.iter().any(|word| lower.contains(word))
}

/// What counts tokens is none.
fn is_count(key: &str, value: &str) -> bool {
    let key = key.trim_matches(['"', '\'']).rsplit('.').next().unwrap_or_default();
    COUNTS.contains(&key) && value.trim().parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::masked;

    fn hides(text: &str, secrets: &[&str]) -> String {
        let shown = masked(text);
        assert_eq!(shown.len(), text.len(), "{shown}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        shown
    }

    #[test]
    fn urls_lose_userinfo_and_query() {
        let text = "url = \"https://ann:s3cret@docs.example/rest?key=K123#é\" # http://x@y\nname = \"a?b\"";
        let shown = hides(text, &["s3cret", "ann", "K123"]);
        assert!(shown.contains("@docs.example/rest?***") && shown.ends_with("name = \"a?b\""), "{shown}");
        for text in [
            "url = \"https://ann:s3cret@docs.example/rest?token=abc\"",
            "# token=1 https://ann:s3cret@docs.example/?api_key=abc",
            "password = 1\nurl = 'https:ann:s3cret@docs.example'",
            "url = 'https://ann:s3/cret@docs.example'",
        ] {
            hides(text, &["s3cret", "ann", "abc", "cret"]);
        }
        let text = "see https://packages.example/@scope/name, or ann@mail.example: POST /token:revoke";
        assert_eq!(masked(text), text);
    }

    #[test]
    fn values_of_secret_keys_are_covered() {
        let text = "header = { Authorization = \"Bearer abcé\" }\n";
        assert_eq!(masked(text), "header = { Authorization = \"****** *****\" }\n");
        for text in [
            "authorization = \"\"\"\nBearer s3cret\"\"\"\na = 1",
            "\"x-token\" = '''\n\ns3cret'''\na = 1",
            "tokens = [\n  \"x]\", # ]\n  \"s3cret\",\n]\na = 1",
            "password = { of = { ann = \"s3cret\" } }\na = 1",
            "a.b.secret = my s3cret, or so\na = 1",
            "why = \"the token: s3cret\"\na = 1",
            "# password = my s3cret\na = 1",
            "why = \"\\\"token\\\": s3cret\"\na = 1",
            "max_tokens = \"s3cret\"\na = 1",
        ] {
            let shown = hides(text, &["s3cret"]);
            assert!(shown.ends_with("a = 1"), "{shown}");
        }
        hides("secret = \"\"\"never closed\ns3cret", &["s3cret"]);
        hides("secret = [\"never closed\", \n's3cret'", &["s3cret"]);
    }

    #[test]
    fn what_counts_is_shown() {
        let text = "budget = { max_tokens = -7.0, token_ratio = 0.1, cost = 1 } # max_tokens = 3\n";
        assert_eq!(masked(text), text);
        let text = "a = { token = \"abc\", cost = 1 }";
        assert_eq!(masked(text), "a = { token = \"***\", cost = 1 }");
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(masked("a\u{1b}[2J\u{9b}b\u{202e}\r\n\tc"), "a [2J  b    \n\tc");
    }
}
