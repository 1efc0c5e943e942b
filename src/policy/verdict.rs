//! What a policy answers.

use std::{borrow::Cow, time::Duration};

/// How far a failed request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reach {
    /// It provably never reached processing: read from the client's error, never claimed by a policy.
    NotSent,
    /// It was answered, and the provider documents that this answer means "not processed".
    Rejected,
    /// It may have taken effect.
    Unknown,
    /// It was answered, and the answer says what became of it.
    Answered,
}

/// What the server asked for beside its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// Not to be repeated earlier than this, counted from the answer's arrival.
    pub wait: Option<Duration>,
    /// `Some(false)`: the server said not to repeat, whatever the status.
    pub retry: Option<bool>,
}

impl Hint {
    /// The server asked to wait this long.
    pub fn wait(wait: Duration) -> Self {
        Hint { wait: Some(wait), retry: None }
    }

    /// The server said in so many words that this is not to be repeated.
    pub fn never() -> Self {
        Hint { wait: None, retry: Some(false) }
    }
}

/// The kinds of verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// What the caller asked for.
    Success,
    /// A failure that a repeat would not mend, or that nobody listed: final.
    Permanent,
    /// A failure that passes: a candidate for a repeat, no more.
    Transient,
    /// Final, and the caller looks before repeating: an earlier attempt may have worked.
    Verify,
}

/// What an outcome means, as a policy judges it.
///
/// There is deliberately no way to say "never sent" here: that is read from the client's error alone (D13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    class: Class,
    rejected: Option<Cow<'static, str>>,
    hint: Hint,
    listed: bool,
    look: bool,
}

impl Verdict {
    const fn of(class: Class, listed: bool) -> Self {
        Verdict { class, rejected: None, hint: Hint { wait: None, retry: None }, listed, look: false }
    }

    /// What the caller asked for.
    pub const fn success() -> Self {
        Self::of(Class::Success, true)
    }

    /// Final: a business answer, a validation error, a refusal.
    pub const fn permanent() -> Self {
        Self::of(Class::Permanent, true)
    }

    /// Final because nobody listed it (S1). Counted, so that the list can be mended.
    pub const fn unclassified() -> Self {
        Self::of(Class::Permanent, false)
    }

    /// Passing: a repeat may be considered. The request may have taken effect, so evidence is needed.
    pub const fn transient() -> Self {
        Self::of(Class::Transient, true)
    }

    /// Passing, and documented by the provider to mean "not processed", so that no evidence is needed. The reason
    /// says where that is documented. It is a statement about an answer: where there was none, or where
    /// the reason is blank, this is [`transient`](Self::transient).
    pub fn rejected(reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Verdict { rejected: (!reason.trim().is_empty()).then_some(reason), ..Self::transient() }
    }

    /// Final; the caller looks before repeating.
    pub const fn verify() -> Self {
        Self::of(Class::Verify, true)
    }

    /// Not yet to be said: the beginning of the answer's body has to be known first. The policy is asked again, and then
    /// finds it in [`Outcome::body`](super::Outcome::body). It is read within the attempt's timeout, and the caller gets it all the same.
    /// Granted once, and for statuses from 400 on; else it is read as [`unclassified`](Self::unclassified).
    pub const fn look_into_body() -> Self {
        let mut verdict = Self::unclassified();
        verdict.look = true;
        verdict
    }

    /// Whether it asks for the answer's body.
    pub fn asks_for_body(&self) -> bool {
        self.look
    }

    /// The same verdict with what the server asked for.
    pub fn with_hint(mut self, hint: Hint) -> Self {
        self.hint = hint;
        self
    }

    /// The same verdict on an attempt that got no answer, of which no document can speak.
    pub(crate) fn without_rejection(mut self) -> Self {
        self.rejected = None;
        self
    }

    /// Its kind.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What the server asked for.
    pub fn hint(&self) -> Hint {
        self.hint
    }

    /// Why this answer means "not processed", where it does.
    pub fn rejected_because(&self) -> Option<&str> {
        self.rejected.as_deref()
    }

    /// Whether somebody listed this outcome; an unlisted one is counted as `unclassified`.
    pub fn is_listed(&self) -> bool {
        self.listed
    }
}
