//! The rules by their numbers, in a sentence each: for whoever meets one in a finding.

/// A rule of the retry standard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// `S1` to `S20`.
    pub(crate) number: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

const fn rule(number: &'static str, name: &'static str, text: &'static str) -> Rule {
    Rule { number, name, text }
}

/// Those that a contract is held against.
pub(crate) const RULES: &[Rule] = &[
    rule("S1", "only-what-is-named", "Only what the contract names is repeated; what nobody knows never is."),
    rule("S5", "business-is-final", "Business answers are final: a 4xx that passes by itself needs a written reason."),
    rule(
        "S6",
        "documented",
        "What an answer means is documented: the source, the day of its review, its owner, and each rule's basis.",
    ),
    rule("S7", "evidence-first", "What may have had an effect is repeated only with evidence that this is safe."),
    rule("S8", "never-without-a-timeout", "An attempt and a call have a timeout each, and the waits fit in."),
    rule("S9", "no-immediate-repeat", "Every wait has a floor above zero."),
    rule("S10", "jitter", "Waits are spread, or it is said why not."),
    rule("S11", "bounded-backoff", "Initial wait, multiplier and maximum are stated."),
    rule("S12", "few-attempts", "Two or three attempts; more need a reason, and ten cannot be built."),
    rule("S13", "one-retry-per-path", "Whatever else retries on the path is declared, or switched off."),
    rule("S15", "observable", "Every operation has a name, by which it is found in events and metrics."),
    rule("S17", "the-server-wins", "Never earlier than the provider says."),
    rule(
        "S18",
        "per-provider",
        "One provider's rules stand in one place, and no two of them speak of the same request.",
    ),
    rule("S19", "what-instead", "Each operation says what happens instead when it has failed, or that nothing does."),
    rule("S20", "no-storm", "A budget bounds the load of retries."),
];

/// Where the rules are explained.
pub(crate) const HELP: &str = "https://docs.rs/redial/latest/redial/contract/index.html#rules";

/// The rule of this number.
pub(crate) fn find(number: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.number == number)
}
