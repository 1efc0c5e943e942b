//! Rules that read more of an answer than its number (S6).

use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Hint, Outcome, Unit, Verdict, WaitHeader, rules::Broken};

/// How much of an error answer's body a rule may read, in bytes.
pub const PEEK: usize = 8 * 1024;

/// What an answer means, told by its status together with headers, an earlier attempt, or a bounded look into its body.
///
/// Rules are tried in their order, before the lists of [`Transient`](super::Transient) and of business statuses; the
/// first that matches wins. All conditions of a rule have to hold; a rule without a status is refused.
///
/// ```
/// use redial::policy::{AnswerRule, Unit};
/// use http::HeaderName;
/// use std::time::Duration;
///
/// // GitHub says "rate limit spent" with a 403 or a 429, and when it resets.
/// let limited = AnswerRule::rejected("GitHub REST API docs, 'Rate limits for the REST API'")
///     .status([403, 429])
///     .header(HeaderName::from_static("x-ratelimit-remaining"), "0")
///     .wait_header(HeaderName::from_static("x-ratelimit-reset"), Unit::EpochSeconds);
/// // A repeat's 409 may mean that the first attempt worked.
/// let conflict = AnswerRule::verify().status([409, 422]).after_unknown();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerRule {
    statuses: Vec<u16>,
    headers: Vec<(HeaderName, HeaderTest)>,
    #[cfg(feature = "contract")]
    body: Vec<JsonTest>,
    after_unknown: bool,
    means: Meaning,
    because: Option<Cow<'static, str>>,
    wait: Option<WaitHeader>,
    at_least: Duration,
    /// Where the header says nothing that can be read.
    otherwise: Duration,
}

/// What an [`AnswerRule`] says an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meaning {
    /// A failure that passes; repeating it needs evidence.
    Transient,
    /// It was not processed, and passes: repeating it needs no evidence.
    Rejected,
    /// Known and final.
    Business,
    /// What the caller asked for.
    Success,
    /// Final: the caller looks before repeating.
    Verify,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeaderTest {
    Present,
    Equals(Box<str>),
}

/// A test of one value in a JSON body.
#[cfg(feature = "contract")]
#[derive(Clone, Debug, PartialEq)]
struct JsonTest {
    pointer: Box<str>,
    test: TextTest,
}

#[cfg(feature = "contract")]
#[derive(Clone, Debug, PartialEq, Eq)]
enum TextTest {
    Contains(Box<str>),
    Equals(Box<str>),
}

impl AnswerRule {
    fn meaning(means: Meaning, because: Option<Cow<'static, str>>) -> Self {
        AnswerRule {
            statuses: Vec::new(),
            headers: Vec::new(),
            #[cfg(feature = "contract")]
            body: Vec::new(),
            after_unknown: false,
            means,
            because,
            wait: None,
            at_least: Duration::ZERO,
            otherwise: Duration::ZERO,
        }
    }

    /// The answer is a failure that passes. A 4xx other than 408, 425 and 429 needs a reason (S5), see
    /// [`because`](Self::because).
    pub fn transient() -> Self {
        Self::meaning(Meaning::Transient, None)
    }

    /// The answer means "not processed", as is documented here: it passes, and a repeat needs no evidence (D11).
    pub fn rejected(documented: impl Into<Cow<'static, str>>) -> Self {
        Self::meaning(Meaning::Rejected, Some(documented.into()))
    }

    /// The answer is known and final.
    pub fn business() -> Self {
        Self::meaning(Meaning::Business, None)
    }

    /// The answer is what the caller asked for: a 404 that means "absent", say.
    pub fn success() -> Self {
        Self::meaning(Meaning::Success, None)
    }

    /// The answer is final, and may mean that an earlier attempt worked: the caller looks before repeating.
    pub fn verify() -> Self {
        Self::meaning(Meaning::Verify, None)
    }

    /// Why, where a reason is asked for.
    pub fn because(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.because = Some(reason.into());
        self
    }

    /// The answer has one of these statuses.
    pub fn status(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.statuses.extend(statuses);
        self
    }

    /// And a line of this header is exactly this text, surrounding whitespace aside.
    pub fn header(mut self, name: HeaderName, value: impl Into<Box<str>>) -> Self {
        self.headers.push((name, HeaderTest::Equals(value.into())));
        self
    }

    /// And this header is there, whatever it says.
    pub fn header_present(mut self, name: HeaderName) -> Self {
        self.headers.push((name, HeaderTest::Present));
        self
    }

    /// And the text at this JSON pointer (RFC 6901) of the body contains this one. Of the body, the first [`PEEK`] bytes
    /// are read; the caller gets them all the same. A body that is no JSON, or longer, matches nothing.
    #[cfg(feature = "contract")]
    pub fn json_contains(mut self, pointer: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        self.body.push(JsonTest { pointer: pointer.into(), test: TextTest::Contains(text.into()) });
        self
    }

    /// And the value at this JSON pointer (RFC 6901) of the body is this text, number or boolean, written as JSON writes
    /// it but for a text's quotes. See [`json_contains`](Self::json_contains) for what is read.
    #[cfg(feature = "contract")]
    pub fn json_equals(mut self, pointer: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        self.body.push(JsonTest { pointer: pointer.into(), test: TextTest::Equals(text.into()) });
        self
    }

    /// And an earlier attempt of the same call may have taken effect.
    pub fn after_unknown(mut self) -> Self {
        self.after_unknown = true;
        self
    }

    /// How long to wait is in this header. `Retry-After` and the policy's own headers are read all the same; the longest
    /// wins.
    pub fn wait_header(mut self, name: HeaderName, unit: Unit) -> Self {
        self.wait = Some(WaitHeader::new(name, unit));
        self
    }

    /// The provider documents that a repeat has to wait at least this long.
    pub fn at_least(mut self, wait: Duration) -> Self {
        self.at_least = wait;
        self
    }

    /// The wait where its header is not there, or cannot be read. Default: none, so that the backoff alone decides.
    pub fn otherwise(mut self, wait: Duration) -> Self {
        self.otherwise = wait;
        self
    }

    /// What it says the answer means.
    pub fn means(&self) -> Meaning {
        self.means
    }
}

impl AnswerRule {
    /// The verdict, where this rule speaks of this answer; one that asks for the body, where that has to be known first.
    pub(crate) fn judge(
        &self,
        status: StatusCode,
        outcome: &Outcome<'_>,
        now: impl FnOnce() -> std::time::SystemTime,
    ) -> Option<Verdict> {
        let headers = outcome.headers()?;
        let matches = self.statuses.contains(&status.as_u16())
            && (!self.after_unknown || outcome.earlier_unknown())
            && self.headers.iter().all(|(name, test)| test.holds(headers, name));
        if !matches {
            return None;
        }
        #[cfg(feature = "contract")]
        if !self.body.is_empty() {
            let Some(body) = outcome.body() else { return Some(Verdict::look_into_body()) };
            let body: serde_json::Value = serde_json::from_slice(body).ok()?;
            if !self.body.iter().all(|test| test.holds(&body)) {
                return None;
            }
        }
        let verdict = match (self.means, &self.because) {
            (Meaning::Rejected, Some(documented)) => Verdict::rejected(documented.clone()),
            (Meaning::Transient | Meaning::Rejected, _) => Verdict::transient(),
            (Meaning::Business, _) => Verdict::permanent(),
            (Meaning::Success, _) => Verdict::success(),
            (Meaning::Verify, _) => Verdict::verify(),
        };
        let asked = self.wait.as_ref().and_then(|header| header.read(headers, now()));
        let stated = |wait: Duration| (!wait.is_zero()).then_some(wait);
        let asked = asked.or(stated(self.otherwise));
        Some(verdict.with_hint(Hint { wait: asked.max(stated(self.at_least)), retry: None }))
    }

    /// What may not be said, and how to mend it.
    pub(crate) fn broken(&self) -> Vec<Broken> {
        let mut broken = Vec::new();
        let blank = self.because.as_ref().is_none_or(|reason| reason.trim().is_empty());
        if self.statuses.is_empty() {
            broken.push(("S6", "an answer rule without a status: say which statuses it speaks of".to_owned()));
        }
        if self.means == Meaning::Rejected && blank {
            let how = "an answer rule says `rejected` without a source: say where that is documented";
            broken.push(("S7", how.to_owned()));
        }
        for status in &self.statuses {
            let repeats = matches!(self.means, Meaning::Transient | Meaning::Rejected);
            match status {
                100..=611 if !repeats => {}
                408 | 425 | 429 | 500..=611 => {}
                400..500 if !blank => {}
                400..500 => broken.push((
                    "S5",
                    format!("an answer rule calls status {status} transient without a reason: say why with `because`"),
                )),
                100..400 => {
                    broken.push(("S5", format!("an answer rule calls status {status} transient: it is no failure")))
                }
                _ => broken.push(("S5", format!("an answer rule names {status}, which is no status of HTTP"))),
            }
        }
        let longest = self.at_least.max(self.otherwise);
        if longest > super::rules::LONGEST {
            let how = format!("an answer rule waits {longest:?}: at most a day; what takes longer belongs to a job");
            broken.push(("S11", how));
        }
        broken
    }
}

impl HeaderTest {
    fn holds(&self, headers: &HeaderMap, name: &HeaderName) -> bool {
        let equals = |value: &HeaderValue, text: &str| value.as_bytes().trim_ascii() == text.trim().as_bytes();
        match self {
            HeaderTest::Present => headers.contains_key(name),
            HeaderTest::Equals(text) => headers.get_all(name).iter().any(|value| equals(value, text)),
        }
    }
}

#[cfg(feature = "contract")]
impl JsonTest {
    fn holds(&self, body: &serde_json::Value) -> bool {
        use serde_json::Value;
        let Some(value) = body.pointer(&self.pointer) else { return false };
        match (value, &self.test) {
            (Value::String(found), TextTest::Contains(text)) => found.contains(&**text),
            (Value::String(found), TextTest::Equals(text)) => **found == **text,
            (Value::Number(_) | Value::Bool(_) | Value::Null, TextTest::Equals(text)) => {
                let found = value.to_string();
                *found == **text
            }
            _ => false,
        }
    }
}
