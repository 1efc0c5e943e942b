//! Parameters of a request's query, compared as they were meant and not as they were written.

#[cfg(test)]
mod tests;

/// Whether the query has this parameter, and never without a value.
///
/// Of a parameter that is repeated, one server takes the first and another the last: with an empty one among them,
/// nobody knows whether there is a value.
pub(crate) fn is_filled(query: &str, name: &str) -> bool {
    let mut found = false;
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !decoded(key).eq(name.bytes()) {
            continue;
        }
        if decoded(value).all(|byte| byte.is_ascii_whitespace()) {
            return false;
        }
        found = true;
    }
    found
}

/// Percent-encoding undone, and `+` for a space, as forms are written; what is malformed stands for itself.
fn decoded(text: &str) -> impl Iterator<Item = u8> {
    let mut bytes = text.bytes();
    std::iter::from_fn(move || match bytes.next()? {
        b'+' => Some(b' '),
        b'%' => {
            let mut ahead = bytes.clone();
            let (high, low) = (ahead.next().and_then(hex), ahead.next().and_then(hex));
            let Some((high, low)) = high.zip(low) else { return Some(b'%') };
            bytes = ahead;
            Some(high << 4 | low)
        }
        byte => Some(byte),
    })
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
