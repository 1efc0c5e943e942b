//! A file's text as it may be shown: what might be a secret is covered, byte for byte, so that places stay true.
//!
//! A contract has no secrets, but people paste: a URL with userinfo or a query, a header with a token. Diagnostics show
//! lines of the file, and CI shows diagnostics to everybody.

/// Words of keys whose values are covered.
const SECRET: [&str; 7] = ["authorization", "cookie", "token", "secret", "password", "api-key", "api_key"];

/// The same text, of the same length, with `*` for what might be a secret.
pub(crate) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match secret_value(line) {
            Some(at) => {
                out.push_str(&line[..at]);
                cover(&mut out, &line[at..]);
            }
            None => urls(&mut out, line),
        }
    }
    out
}

/// Where the value begins, if the line gives one to a key whose name says that it is secret.
fn secret_value(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    SECRET
        .iter()
        .filter_map(|word| lower.find(word))
        .filter_map(|word| line[word..].find('=').map(|at| word + at + 1))
        .min()
}

/// All but quotes, brackets and what separates, which the shape of the line needs.
fn cover(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' | '\'' | '{' | '}' | '[' | ']' | '=' | ',' | ' ' | '\r' | '\n' | '\t' => out.push(c),
            // One for each byte.
            _ => out.extend(std::iter::repeat_n('*', c.len_utf8())),
        }
    }
}

/// Userinfo and query of every URL in the line.
fn urls(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(at) = rest.find("//") {
        let (before, url) = rest.split_at(at + 2);
        out.push_str(before);
        let end =
            url.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')).unwrap_or(url.len());
        let (url, after) = url.split_at(end);
        let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
        let path = match url[..authority].rfind('@') {
            Some(sign) => {
                cover(out, &url[..sign]);
                &url[sign..]
            }
            None => url,
        };
        let query = path.find('?').map_or(path.len(), |at| at + 1);
        out.push_str(&path[..query]);
        cover(out, &path[query..]);
        rest = after;
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn urls_lose_userinfo_and_query() {
        let text = "url = \"https://ann:s3cret@docs.example/rest?key=K123#é\" # http://x@y\nname = \"a?b\"";
        let shown = masked(text);
        assert_eq!(shown.len(), text.len());
        assert!(!shown.contains("s3cret") && !shown.contains("ann") && !shown.contains("K123"), "{shown}");
        assert!(shown.contains("@docs.example/rest?***") && shown.ends_with("name = \"a?b\""), "{shown}");
    }

    #[test]
    fn values_of_secret_keys_are_covered() {
        let text = "header = { Authorization = \"Bearer abcé\" }\n";
        assert_eq!(masked(text), "header = { Authorization = \"****** *****\" }\n");
    }
}
