//! One random call: what is sent, under which policy, and what becomes of each attempt.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};
use proptest::{collection::vec, option, prelude::*, sample::select};
use redial::{
    Backoff, Budget, CallReport, Deadline, Jitter, RequestOptions, RetryLayer, StandardPolicy, Timeouts, Transient,
    policy::budget::BudgetSetting,
};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::script::{Failure, Readiness, Script, ScriptBody, Seen, Step, fail, hang, ms, request, secs, status};

/// The policies' longest own wait.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ends {
    Answer { code: u16, retry_after: Option<&'static str>, silent: bool },
    Fail(Failure),
    Hang,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub steps: Vec<(u64, Ends)>,
    pub readiness: Vec<Readiness>,
    pub method: &'static str,
    pub evidence: Stated,
    pub attempts: u32,
    pub attempt: Duration,
    pub total: Duration,
    pub outer: Option<Duration>,
    pub floor: Duration,
    pub initial: Duration,
    pub jitter: Jitter,
    /// 429 is documented to mean "rejected".
    pub rejecting: bool,
    pub longest_server_wait: Duration,
    pub budget: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stated {
    Nothing,
    Key,
    ByPolicy,
    ByRequest,
    NotEvenByMethod,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Observed {
    pub start: Instant,
    pub elapsed: Duration,
    pub seen: Vec<Seen>,
    pub answer: Option<StatusCode>,
    pub report: Option<CallReport>,
}

fn ends() -> impl Strategy<Value = Ends> {
    let code = select(vec![200, 204, 404, 409, 408, 429, 429, 500, 503, 503, 503, 501]);
    let word = option::of(select(vec!["0", "1", "2", "0.5", "120", "99999999999999999999", "soon", "-1", ""]));
    prop_oneof![
        6 => (code, word, any::<bool>()).prop_map(|(code, retry_after, silent)| Ends::Answer { code, retry_after, silent }),
        3 => select(vec![Failure::Reset, Failure::Unsent, Failure::Strange]).prop_map(Ends::Fail),
        1 => Just(Ends::Hang),
    ]
}

fn readiness() -> impl Strategy<Value = Readiness> {
    prop_oneof![
        8 => Just(Readiness::Now),
        3 => (0_u64..400).prop_map(|millis| Readiness::After(ms(millis))),
        1 => Just(Readiness::Never),
        1 => Just(Readiness::Fails),
    ]
}

pub fn cases() -> impl Strategy<Value = Case> {
    let after = prop_oneof![Just(0_u64), 0..200_u64, 0..1_500_u64];
    let sent = (
        vec((after, ends()), 10),
        vec(readiness(), 9),
        select(vec!["GET", "PUT", "DELETE", "POST", "POST", "PATCH", "CONNECT"]),
        select(vec![
            Stated::Nothing,
            Stated::Nothing,
            Stated::Key,
            Stated::ByPolicy,
            Stated::ByRequest,
            Stated::NotEvenByMethod,
        ]),
        option::of(0..6_000_u64),
    );
    let times = (1..1_000_u64, 1..6_000_u64, 1..100_u64, 1..500_u64);
    let jitter =
        select(vec![Jitter::Full, Jitter::Equal, Jitter::Around { percent: 20 }, Jitter::Decorrelated, Jitter::None]);
    let rest = (1..=9_u32, jitter, any::<bool>(), select(vec![1_u64, 3_600]), option::of(0..5_u32));
    (sent, times, rest).prop_map(|(sent, times, rest)| {
        let (steps, mut readiness, method, evidence, outer) = sent;
        let (attempt, more, floor, above) = times;
        let (attempts, jitter, rejecting, longest, budget) = rest;
        // The first readiness is the caller's business, before the call begins.
        readiness.insert(0, Readiness::Now);
        Case {
            steps,
            readiness,
            method,
            evidence,
            attempts,
            attempt: ms(attempt),
            total: ms(attempt + more),
            outer: outer.map(ms),
            floor: ms(floor),
            // Jitter around less than that leaves no room.
            initial: ms((floor + above).max(3)),
            jitter,
            rejecting,
            longest_server_wait: secs(longest),
            budget,
        }
    })
}

impl Case {
    fn policy(&self) -> StandardPolicy {
        let timeouts = Timeouts { attempt: self.attempt, total: self.total };
        let mut transient = Transient::usual();
        if self.rejecting {
            transient = transient.rejected(429, "documented");
        }
        let backoff = Backoff::exponential(self.initial).max(LONGEST_WAIT).floor(self.floor);
        let backoff = match self.jitter {
            Jitter::None => backoff.unjittered("also without"),
            jitter => backoff.jitter(jitter),
        };
        let budget = match self.budget {
            Some(tokens) => Budget::custom(BudgetSetting::bucket(f64::from(tokens))).unwrap(),
            None => Budget::unlimited("the attempts bound it"),
        };
        let mut builder = StandardPolicy::builder("any", timeouts, transient)
            .attempts_because(self.attempts, "whatever")
            .backoff(backoff)
            .budget(budget)
            .longest_server_wait(self.longest_server_wait);
        if self.evidence == Stated::ByPolicy {
            builder = builder.idempotent("by policy");
        }
        if self.evidence == Stated::NotEvenByMethod {
            builder = ["GET", "PUT", "DELETE"].iter().fold(builder, |b, m| b.not_idempotent(m.parse().unwrap()));
        }
        builder.build().unwrap()
    }

    fn request(&self) -> http::Request<http_body_util::Full<bytes::Bytes>> {
        let mut request = request(self.method.parse::<Method>().unwrap());
        if self.evidence == Stated::Key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static("k"));
        }
        if self.evidence == Stated::ByRequest {
            request.extensions_mut().insert(RequestOptions::new().idempotent("by request"));
        }
        if let Some(outer) = self.outer {
            request.extensions_mut().insert(Deadline::after(outer));
        }
        request
    }

    fn script(&self) -> Script {
        let steps = self.steps.iter().map(|(after, ends)| {
            let step = match ends {
                Ends::Answer { code, retry_after, silent } => {
                    let body = if *silent { ScriptBody::silent() } else { ScriptBody::text("text") };
                    let step: Step = status(*code).body(body);
                    retry_after.map_or(step.clone(), |word| step.retry_after(word))
                }
                Ends::Fail(failure) => fail(*failure),
                Ends::Hang => hang(),
            };
            step.after(ms(*after))
        });
        Script::new(steps).readiness(self.readiness.clone())
    }

    pub fn run(&self) -> Observed {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let script = self.script();
            let retry = RetryLayer::new(self.policy()).layer(script.clone());
            let request = self.request();
            let start = Instant::now();
            let result = retry.oneshot(request).await;
            let elapsed = start.elapsed();
            let (answer, report) = match &result {
                Ok(response) => (Some(response.status()), response.extensions().get::<CallReport>().cloned()),
                Err(error) => (None, error.report().cloned()),
            };
            drop(result);
            assert_eq!((script.in_flight(), script.bodies_held()), (0, 0), "nothing is left behind");
            Observed { start, elapsed, seen: script.seen(), answer, report }
        })
    }
}
