//! What is counted, and the names it is counted under (feature `metrics`).
//!
//! Through the [`metrics`](https://docs.rs/metrics) facade: any exporter's recorder receives it; without one, nothing is counted and a
//! call costs a few instructions more. Install the recorder first, then call [`describe`] once, so that the exporter
//! shows what each name means.
//!
//! | name | kind | labels beside `provider` and `operation` | counts |
//! | --- | --- | --- | --- |
//! | `redial_calls_total` | counter | `outcome` | calls that ended |
//! | `redial_attempts_total` | counter | `outcome`, `error_type` | attempts that ended, a first try included |
//! | `redial_retries_total` | counter | `error_type` | retries that were decided, by what the attempt before them died of |
//! | `redial_stops_total` | counter | `stop` | calls that ended short of success with a refused retry, by [`StopReason`](crate::StopReason) |
//! | `redial_wait_seconds` | histogram | `by` | waits before a retry, in seconds |
//! | `redial_budget_level` | gauge | | retries or tokens that are left in the budget, when a call ends |
//! | `redial_unclassified_total` | counter | `error_type` | outcomes that nobody listed (S1): the list to mend |
//! | `redial_unmatched_total` | counter | | requests that no route matched (D27) |
//!
//! | label | values |
//! | --- | --- |
//! | `provider`, `operation` | as the policy was given them, so as many as there are policies |
//! | `outcome` | `success`, `transient`, `permanent`, `verify`; of attempts also `unclassified`, of calls also `cancelled` |
//! | `error_type` | a registered status, such as `503`, one that is not by its class, such as `5xx`, a code of gRPC by name, such as `UNAVAILABLE`, or a [`FaultKind`](crate::FaultKind); empty for a success |
//! | `stop` | the names of [`StopReason`](crate::StopReason); `stacked` counts every request that a second layer passed on, and every call within a block of code, which is none of its own otherwise |
//! | `by` | whose wait it was: `policy`, `server` or `hold` |
//!
//! The conventions are Prometheus's: `_total` for counters, base units in the name. OpenTelemetry's `error.type` is
//! written `error_type`, since a label there has no dot. A budget without a limit has no level.
//!
//! ```
//! # // A recorder that keeps nothing stands for an exporter's.
//! # metrics::set_global_recorder(metrics::NoopRecorder)?;
//! redial::metrics::describe();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Calls that ended.
pub const CALLS: &str = "redial_calls_total";
/// Attempts that ended.
pub const ATTEMPTS: &str = "redial_attempts_total";
/// Retries that were decided.
pub const RETRIES: &str = "redial_retries_total";
/// Retries that were refused, by reason.
pub const STOPS: &str = "redial_stops_total";
/// Waits before a retry, in seconds.
pub const WAIT: &str = "redial_wait_seconds";
/// What is left of a budget.
pub const BUDGET: &str = "redial_budget_level";
/// Outcomes that nobody listed.
pub const UNCLASSIFIED: &str = "redial_unclassified_total";
/// Requests that no route matched.
pub const UNMATCHED: &str = "redial_unmatched_total";

/// Tells the recorder that is installed now what each name means.
pub fn describe() {
    describe_counter!(CALLS, Unit::Count, "Calls that ended, by outcome");
    describe_counter!(ATTEMPTS, Unit::Count, "Attempts that ended, by outcome and type of error");
    describe_counter!(RETRIES, Unit::Count, "Retries that were decided, by the error before them");
    describe_counter!(STOPS, Unit::Count, "Retries that were refused, by reason");
    describe_histogram!(WAIT, Unit::Seconds, "Waits before a retry, by whose wait it was");
    describe_gauge!(BUDGET, Unit::Count, "What is left of the retry budget");
    describe_counter!(UNCLASSIFIED, Unit::Count, "Outcomes that nobody listed, and so not repeated");
    describe_counter!(UNMATCHED, Unit::Count, "Requests that no route matched, sent once");
}
