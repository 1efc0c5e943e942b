//! What the SDKs of several vendors repeat, by status and method: each vendor's documented set, as a policy.

use std::ops::RangeInclusive;

use http::{HeaderName, Method, Response};
use redial::{FaultKind, StandardPolicy, Transient, policy::StandardPolicyBuilder};
use serde_json::Value;

use crate::{
    engine::{self, First},
    table::{self, Outcome, outcome},
};

/// One vendor's documented set.
struct Vendor {
    /// The rows' `src`.
    src: &'static str,
    statuses: &'static [RangeInclusive<u16>],
    faults: &'static [FaultKind],
    /// A header of the vendor's own that says whether to repeat.
    should_retry: Option<&'static str>,
    evidence: Evidence,
    /// What its rows may hold.
    keys: &'static [&'static str],
}

/// What makes a repeat safe for this vendor.
enum Evidence {
    /// Its SDK sends a key with each request.
    Key,
    /// It asks for none: the set is about answers alone.
    NotAsked,
    /// The method, but for these.
    MethodBut(&'static [Method]),
    /// Exactly these methods, where a row does not say otherwise.
    Methods(&'static [Method]),
}

const VENDORS: &[Vendor] = &[
    // https://docs.stripe.com/error-low-level: conflicts and 5xx, and the header outweighs the status.
    Vendor {
        src: "stripe-python",
        statuses: &[409..=409, 500..=599],
        faults: &[],
        should_retry: Some("stripe-should-retry"),
        evidence: Evidence::Key,
        keys: &["src", "status", "headers", "retry"],
    },
    // https://learn.microsoft.com/dotnet/core/resilience/http-resilience: 408, 429 and 5xx, 505 too.
    Vendor {
        src: "dotnet/extensions HttpClientResiliencePredicatesTests",
        statuses: &[408..=408, 429..=429, 500..=599],
        faults: &[],
        should_retry: None,
        evidence: Evidence::NotAsked,
        keys: &["src", "status", "retry"],
    },
    // The same page, "Disable retries for unsafe methods": more than RFC 9110 calls unsafe.
    Vendor {
        src: "dotnet/extensions DisableForUnsafeHttpMethods",
        statuses: &[408..=408, 429..=429, 500..=599],
        faults: &[],
        should_retry: None,
        evidence: Evidence::MethodBut(&[Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::CONNECT]),
        keys: &["src", "method", "status", "retry"],
    },
    // https://urllib3.readthedocs.io/en/stable/reference/urllib3.util.html: no status but what the caller lists.
    Vendor {
        src: "urllib3 is_retry",
        statuses: &[],
        faults: &[],
        should_retry: None,
        evidence: Evidence::Methods(URLLIB3),
        keys: &["src", "method", "status", "status_forcelist", "allowed_methods", "retry"],
    },
    // The same page: errors while connecting are repeated for any method, errors while reading are not.
    Vendor {
        src: "urllib3",
        statuses: &[],
        faults: &[FaultKind::Connect, FaultKind::Timeout],
        should_retry: None,
        evidence: Evidence::Methods(URLLIB3),
        keys: &["src", "method", "error", "retry"],
    },
];

/// `Retry.DEFAULT_ALLOWED_METHODS`.
const URLLIB3: &[Method] = &[Method::HEAD, Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE];

#[test]
fn status_method_table() {
    let json = include_str!("status_method.json");
    table::run("status_method", json, &[], |case| engine::paused(judge(case)));
}

async fn judge(case: &Value) -> Outcome {
    let vendor = VENDORS.iter().find(|vendor| case["src"] == vendor.src).expect("a vendor of the table above");
    table::only(case, vendor.keys);
    let method = match case["method"].as_str() {
        Some(method) => method.parse().expect("a method"),
        // Where a row has none, nothing may come from the method.
        None => Method::POST,
    };
    let mut request = engine::request(method.clone());
    if let Evidence::Key = vendor.evidence {
        request.headers_mut().insert("idempotency-key", "7f".parse().expect("a value"));
    }
    let call = engine::call(vendor.policy(case, method), request, first(case).await).await;
    outcome(case["retry"].as_bool().expect("yes or no"), call.repeated)
}

impl Vendor {
    fn policy(&self, case: &Value, method: Method) -> StandardPolicy {
        let listed = case["status_forcelist"].as_array().into_iter().flatten().map(status);
        let statuses = self.statuses.iter().cloned().flatten().chain(listed);
        let transient =
            statuses.fold(Transient::none(), |set, status| set.status_because(status, "the vendor says so"));
        let transient = self.faults.iter().fold(transient, |set, fault| set.fault(*fault));
        let mut builder = engine::builder(self.src, transient);
        if let Some(name) = self.should_retry {
            builder = builder.should_retry_header(HeaderName::from_static(name));
        }
        self.evidence.state(builder, case, method).build().expect("a policy")
    }
}

impl Evidence {
    fn state(&self, builder: StandardPolicyBuilder, case: &Value, method: Method) -> StandardPolicyBuilder {
        let allowed = match (self, &case["allowed_methods"]) {
            (Evidence::Key, _) => return builder,
            (Evidence::NotAsked, _) => true,
            (Evidence::MethodBut(except), _) => {
                return except.iter().cloned().fold(builder, StandardPolicyBuilder::not_idempotent);
            }
            // Absent, or by name: the vendor's own. `null`: any method.
            (Evidence::Methods(usual), Value::String(name)) if name == "default" => usual.contains(&method),
            (Evidence::Methods(usual), _) if case.get("allowed_methods").is_none() => usual.contains(&method),
            (Evidence::Methods(_), Value::Null) => true,
            (Evidence::Methods(_), Value::Array(methods)) => methods.iter().any(|allowed| allowed == method.as_str()),
            (Evidence::Methods(_), other) => panic!("methods that nothing reads: {other}"),
        };
        if allowed { builder.idempotent("the vendor allows it") } else { builder.not_idempotent(method) }
    }
}

async fn first(case: &Value) -> First {
    match case["error"].as_str() {
        Some("connect_timeout") => return First::Fails(engine::connect_timeout().await),
        // The attempt's own timer.
        Some("read_timeout") => return First::Silence,
        Some(error) => panic!("an error that nothing makes: {error}"),
        None => {}
    }
    let mut response = Response::builder().status(status(&case["status"]));
    for (name, value) in case["headers"].as_object().into_iter().flatten() {
        response = response.header(name, value.as_str().expect("text"));
    }
    First::Answer(response.body(Default::default()).expect("a response"))
}

fn status(value: &Value) -> u16 {
    value.as_u64().and_then(|status| status.try_into().ok()).expect("a status")
}
