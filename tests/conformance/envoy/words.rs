//! Envoy's words, said by our policies.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use redial::{Class, FaultKind, Outcome, Plan, Policy, RequestHead, StandardPolicy, Transient, Verdict};
use serde_json::Value;

use super::limit::{InFlight, Limit};
use crate::{engine, table::only};

/// A request's own list of statuses.
pub const CODES_HEADER: &str = "x-envoy-retriable-status-codes";

/// One word of `retry_on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    AnyServerError,
    GatewayError,
    ConnectFailure,
    Conflict,
    Codes,
    Headers,
    /// A code of gRPC, with its number.
    Grpc(&'static str, &'static str),
}

const WORDS: &[Word] = &[
    Word::AnyServerError,
    Word::GatewayError,
    Word::ConnectFailure,
    Word::Conflict,
    Word::Codes,
    Word::Headers,
    Word::Grpc("grpc:cancelled", "1"),
    Word::Grpc("grpc:deadline-exceeded", "4"),
    Word::Grpc("grpc:internal", "13"),
    Word::Grpc("grpc:unavailable", "14"),
];

/// What a `retry_on` holds.
pub struct Words {
    pub known: Vec<Word>,
    pub all_valid: bool,
}

impl Words {
    pub fn read(text: &str) -> Self {
        let mut words = Words { known: Vec::new(), all_valid: true };
        for name in text.split(',').map(str::trim) {
            match WORDS.iter().find(|word| word.name() == name) {
                Some(word) => words.known.push(*word),
                None => words.all_valid = false,
            }
        }
        words
    }
}

impl Word {
    pub fn name(self) -> &'static str {
        match self {
            Word::AnyServerError => "5xx",
            Word::GatewayError => "gateway-error",
            Word::ConnectFailure => "connect-failure",
            Word::Conflict => "retriable-4xx",
            Word::Codes => "retriable-status-codes",
            Word::Headers => "retriable-headers",
            Word::Grpc(name, _) => name,
        }
    }

    /// What the word lists; the rest is [`Route::also`].
    fn add(self, set: Transient) -> Transient {
        use FaultKind::{Closed, Connect, RefusedStream, Reset, Timeout};
        let no_answer = [Closed, Connect, RefusedStream, Reset, Timeout];
        match self {
            Word::AnyServerError => {
                no_answer.into_iter().fold((500..600).fold(set, Transient::status), Transient::fault)
            }
            Word::GatewayError => no_answer.into_iter().fold((502..505).fold(set, Transient::status), Transient::fault),
            Word::ConnectFailure => set.fault(Connect),
            Word::Conflict => set.status_because(409, "Envoy's manual: the one 4xx of this word"),
            Word::Codes | Word::Headers | Word::Grpc(..) => set,
        }
    }
}

/// What Envoy is told about one route. A policy: a plan is made for each request, since a request may bring its own list
/// of statuses.
#[derive(Clone)]
pub struct Route {
    pub words: Vec<Word>,
    pub codes: Vec<u16>,
    pub matchers: Vec<Matcher>,
    /// The methods that may be repeated; `None`: any.
    pub methods: Option<Vec<String>>,
    pub retries: u64,
    pub limit: Option<(Limit, InFlight)>,
}

impl Policy for Route {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        let mut route = self.clone();
        let listed = head.headers().get(CODES_HEADER).and_then(|codes| codes.to_str().ok()).unwrap_or_default();
        // As Envoy reads them: what is no number is no code.
        route.codes.extend(listed.split(',').filter_map(|code| code.trim().parse::<u16>().ok()));
        route.policy(head).plan(head)
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        // The plan holds the operation that it was made for.
        StandardPolicy::judge(&plain(), plan, outcome)
    }
}

fn plain() -> StandardPolicy {
    engine::builder("envoy", Transient::none()).build().expect("a policy")
}

impl Route {
    fn policy(self, head: &RequestHead<'_>) -> StandardPolicy {
        let transient = self.words.iter().fold(Transient::none(), |set, word| word.add(set));
        let attempts = u32::try_from(self.retries + 1).expect("few");
        let builder = engine::builder("envoy", transient).attempts(attempts);
        // To Envoy a method is repeatable because its configuration says so, and for no other reason.
        let method = head.method();
        let may = self.methods.as_ref().is_none_or(|methods| methods.iter().any(|may| may == method.as_str()));
        let builder = match may {
            true => builder.idempotent("the route's configuration allows it"),
            false => builder.not_idempotent(method.clone()),
        };
        builder.judge_with(move |_, outcome, verdict| self.also(outcome, verdict)).build().expect("a policy")
    }

    /// What a list of failures cannot say: answers that are none by their status, and how much is in flight.
    fn also(&self, outcome: &Outcome<'_>, verdict: Verdict) -> Verdict {
        let matches = |status: StatusCode, headers: &HeaderMap| {
            self.words.iter().any(|word| match word {
                Word::Codes => self.codes.contains(&status.as_u16()),
                Word::Headers => self.matchers.iter().any(|matcher| matcher.matches(status, headers)),
                Word::Grpc(_, code) => headers.get("grpc-status").is_some_and(|status| status == code),
                _ => false,
            })
        };
        let also = outcome.status().zip(outcome.headers()).is_some_and(|(status, headers)| matches(status, headers));
        let verdict = if also { Verdict::transient() } else { verdict };
        match &self.limit {
            Some((limit, flight)) if verdict.class() == Class::Transient && !limit.allows(flight) => {
                Verdict::permanent()
            }
            _ => verdict,
        }
    }
}

/// A condition on an answer's headers.
#[derive(Clone)]
pub struct Matcher {
    /// `None`: Envoy's `:status`.
    name: Option<HeaderName>,
    how: How,
}

#[derive(Clone)]
enum How {
    Present,
    Exact(String),
    Prefix(String),
    Range(i64, i64),
}

impl Matcher {
    pub fn read(row: &Value) -> Self {
        only(row, &["name", "present", "exact", "prefix", "range"]);
        let name = row["name"].as_str().expect("a name");
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let range = || Some(How::Range(row["range"][0].as_i64()?, row["range"][1].as_i64()?));
        let how = text("exact").map(How::Exact).or_else(|| text("prefix").map(How::Prefix)).or_else(range);
        let how = how.or_else(|| (row["present"] == true).then_some(How::Present)).expect("a condition");
        Matcher { name: (name != ":status").then(|| name.parse().expect("a header name")), how }
    }

    fn matches(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let holds = |value: &str| match &self.how {
            How::Present => true,
            How::Exact(text) => value == text,
            How::Prefix(text) => value.starts_with(text),
            // The end is not in it.
            How::Range(from, to) => value.parse().is_ok_and(|number: i64| (*from..*to).contains(&number)),
        };
        match &self.name {
            None => holds(status.as_str()),
            Some(name) => headers.get(name).map(HeaderValue::to_str).is_some_and(|value| value.is_ok_and(holds)),
        }
    }
}
