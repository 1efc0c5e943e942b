//! Durations as people write them: `"500ms"`, `"2s"`, `"1m30s"`.

use std::time::Duration;

/// Above this, a duration in a contract is a slip: 400 days. What a policy allows is far less, and says so itself.
const LONGEST: Duration = Duration::from_secs(400 * 24 * 60 * 60);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// What was written instead of a duration, and how to write it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoDuration {
    pub(crate) what: &'static str,
    pub(crate) help: String,
}

/// Whole numbers with their units, the longer unit first, each once: `d`, `h`, `m`, `s`, `ms`.
pub(crate) fn parse(text: &str) -> Result<Duration, NoDuration> {
    let no = |what, help: String| Err(NoDuration { what, help });
    let form = || "write whole numbers with units, such as \"500ms\", \"2s\" or \"1m30s\"".to_owned();
    if text.is_empty() {
        return no("the duration is empty", form());
    }
    if text.starts_with(['-', '+']) {
        return no("the duration has a sign", form());
    }
    let (mut rest, mut millis, mut smaller) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        if number.is_empty() {
            return no("the duration does not begin with a number", form());
        }
        if unit.is_empty() {
            let help = format!("which unit? \"{text}s\" are seconds, \"{text}ms\" milliseconds");
            return no("the duration has a number without a unit", if text == number { help } else { form() });
        }
        if unit.starts_with('.') || unit.starts_with(',') {
            return no("the duration has a fraction", "write it in a smaller unit: \"1500ms\" for 1.5 s".to_owned());
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return no("the duration has a unit that is not known", "units are d, h, m, s and ms".to_owned());
        };
        if *factor >= smaller {
            return no(
                "the duration's units are not in order",
                "the longer unit comes first, each once: \"1m30s\"".to_owned(),
            );
        }
        smaller = *factor;
        let part = number.parse().ok().and_then(|number: u64| number.checked_mul(*factor));
        millis = part.and_then(|part| millis.checked_add(part)).unwrap_or(u64::MAX);
        rest = tail;
    }
    let duration = Duration::from_millis(millis);
    if duration > LONGEST {
        return no("the duration is above 400 days", "what takes so long is no matter of a call".to_owned());
    }
    Ok(duration)
}

/// As it would be written in a contract.
pub(crate) fn shown(duration: Duration) -> String {
    let mut millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, factor) in UNITS.iter().rev() {
        if millis >= *factor {
            out.push_str(&format!("{}{unit}", millis / factor));
            millis %= factor;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        let cases = [("500ms", 500), ("2s", 2_000), ("1500ms", 1_500), ("1m30s", 90_000), ("1h", 3_600_000), ("0s", 0)];
        for (text, millis) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["500ms", "2s", "1m30s", "1d2h3m4s5ms"] {
            assert_eq!(shown(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, words) in [
            ("", "empty"),
            ("30", "without a unit"),
            ("1m30", "without a unit"),
            ("-1s", "sign"),
            ("+1s", "sign"),
            ("1.5s", "fraction"),
            ("1e9h", "not known"),
            ("2 s", "not known"),
            ("s", "number"),
            ("1s1m", "order"),
            ("1s1s", "order"),
            ("1us", "not known"),
            ("99999999999999999999h", "400 days"),
            ("401d", "400 days"),
            ("1é", "not known"),
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.what.contains(words), "{text}: {}", refused.what);
        }
        assert_eq!(parse("30").unwrap_err().help, "which unit? \"30s\" are seconds, \"30ms\" milliseconds");
    }
}
